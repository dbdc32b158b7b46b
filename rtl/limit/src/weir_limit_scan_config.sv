// SPDX-License-Identifier: MIT OR Apache-2.0
// CONTROL, RATE and BURST of the memory form. Only the bus writes them, in its clock after each row, so it never conflicts with the scan.
//
// A read takes one bus clock. A write first checks whether the source is locked (if there are locks), and writes in the next bus clock. It is
// complete when the last delivery that was decided before it has left the scan.
`default_nettype none

module weir_limit_scan_config #(
    parameter int SOURCES = 64,
    parameter int RATE_BITS = 16,
    parameter int BURST_BITS = 0,
    parameter int GROUP = 8,
    parameter int ROWS = 8,
    parameter int RESET = 1,
    parameter int READBACK = 1,
    parameter int ENABLES = 1,
    parameter int LIMITS = 1,
    parameter int NOTIFY = 1,
    parameter int LOCK = 1,
    localparam int LeftBits = BURST_BITS == 0 ? 1 : BURST_BITS,
    parameter logic [SOURCES*RATE_BITS-1:0] RATE_RESET = '0,
    parameter logic [SOURCES*LeftBits-1:0] BURST_RESET = '0,
    parameter logic [SOURCES-1:0] ENABLE_RESET = '0,
    parameter logic [SOURCES-1:0] LIMIT_RESET = '0,
    parameter logic [SOURCES-1:0] POLICY_RESET = '0,
    localparam int IndexBits = $clog2(ROWS) + $clog2(GROUP)
) (
    input wire clk_i,
    input wire rst_ni,
    input wire [IndexBits-1:0] index_i,
    input wire [IndexBits-1:0] index_b_i,
    // High in the clock of the bus. index_i is then its source.
    input wire slot_i,
    input wire init_i,
    input wire scan_b_i,
    input wire init_b_i,
    output wire [RATE_BITS-1:0] rate_o,
    output wire [LeftBits-1:0] burst_o,
    output wire enable_o,
    output wire limit_o,
    output wire bursty_o,
    output wire notify_o,
    output wire [SOURCES-1:0] enables_o,
    input wire active_i,
    input wire write_i,
    // The register: CONTROL, RATE or BURST.
    input wire [2:0] which_i,
    input wire [31:0] wdata_i,
    output wire ready_o,
    output logic [31:0] rdata_o,
    output wire error_o
);
  // The bits LOCK, NOTIFY, POLICY, LIMIT and ENABLE of CONTROL, without the unused bit between them.
  localparam int ControlBits = 5;
  localparam int WordBits = ControlBits + LeftBits + RATE_BITS;
  localparam logic [ControlBits-1:0] Exist = {LOCK != 0, NOTIFY != 0, BURST_BITS != 0, LIMITS != 0, ENABLES != 0};

  localparam bit Alike = RATE_RESET == {SOURCES{RATE_RESET[RATE_BITS-1:0]}} && BURST_RESET == {SOURCES{BURST_RESET[LeftBits-1:0]}} &&
      ENABLE_RESET == {SOURCES{ENABLE_RESET[0]}} && LIMIT_RESET == {SOURCES{LIMIT_RESET[0]}} && POLICY_RESET == {SOURCES{POLICY_RESET[0]}};
  localparam logic [WordBits-1:0] First = {
    2'b0, POLICY_RESET[0], LIMIT_RESET[0], ENABLE_RESET[0], BURST_RESET[LeftBits-1:0], RATE_RESET[RATE_BITS-1:0]
  };

  // ---- The phases of a write: check (a clock after the address), write, and wait for deliveries on their way. An abandoned access must leave none
  // of them behind: otherwise the next access would write without checking whether its source is locked.
  logic look, checked, writes, changes, lock_error;
  logic [2:0] drain;
  assign writes = slot_i && !init_i && active_i && write_i && (checked || LOCK == 0) && drain == '0;
  weir_limit_ff #(
      .WIDTH(5),
      .RESET(RESET)
  ) u_turns (
      .clk_i,
      .rst_ni,
      .d_i({
        slot_i && !init_i && active_i && !ready_o && !(write_i && (checked || LOCK == 0)),
        active_i && (checked || (look && write_i && !lock_error)) && !ready_o,
        active_i ? drain[1:0] : 2'b0,
        writes
      }),
      .q_o({look, checked, drain})
  );
  assign ready_o = active_i && (look && (!write_i || lock_error) || drain[2]);
  assign error_o = look && lock_error;

  // ---- The memories, which the scan writes in the first round after reset.
  logic [WordBits-1:0] fill, data;
  logic [ControlBits-1:0] control, control_new;
  logic [31:0] shown;
  logic [2:0] chosen, write;
  logic [IndexBits-1:0] address;
  assign chosen = {which_i == weir_limit_map::RegBurst, which_i == weir_limit_map::RegRate, which_i == weir_limit_map::RegControl};
  assign fill   = {control_new, wdata_i[LeftBits-1:0], wdata_i[RATE_BITS-1:0]};
  if (Alike) begin : g_alike
    weir_limit_ff #(
        .WIDTH(WordBits),
        .RESET(RESET),
        .INIT (First)
    ) u_data (
        .clk_i,
        .rst_ni,
        .d_i(init_i ? First : fill),
        .q_o(data)
    );
    for (genvar i = 0; i < 3; i++) begin : g_write
      assign write[i] = (init_i && !slot_i) || (writes && chosen[i]);
    end
    assign address = index_i;
    wire unused = &{1'b0, index_b_i, scan_b_i, init_b_i};
  end else begin : g_each
    // These are gates instead of a memory with power-up values, because an ASIC has none.
    localparam int Cells = 2 ** IndexBits;
    logic [WordBits-1:0] value_next, value;
    logic [Cells*WordBits-1:0] values;
    for (genvar source = 0; source < Cells; source++) begin : g_value
      localparam int Source = source < SOURCES ? source : 0;
      localparam logic [WordBits-1:0] Value = {
        2'b0,
        POLICY_RESET[Source],
        LIMIT_RESET[Source],
        ENABLE_RESET[Source],
        BURST_RESET[Source*LeftBits+:LeftBits],
        RATE_RESET[Source*RATE_BITS+:RATE_BITS]
      };
      // The memory is arranged by bits, with all sources side by side: the source's number alone selects a bit.
      for (genvar b = 0; b < WordBits; b++) begin : g_bit
        assign values[b*Cells+source] = Value[b];
      end
    end
    for (genvar b = 0; b < WordBits; b++) begin : g_look_up
      logic [Cells-1:0] of_source;
      assign of_source = values[b*Cells+:Cells];
      assign value_next[b] = of_source[index_i];
    end
    weir_limit_ff #(
        .WIDTH(WordBits),
        .RESET(RESET)
    ) u_value (
        .clk_i,
        .rst_ni,
        .d_i(value_next),
        .q_o(value)
    );
    assign data = init_b_i ? value : fill;
    for (genvar i = 0; i < 3; i++) begin : g_write
      assign write[i] = (init_b_i && scan_b_i) || (writes && chosen[i]);
    end
    assign address = init_b_i ? index_b_i : index_i;
  end
  weir_limit_scan_memory #(
      .WIDTH(RATE_BITS),
      .ADDRESS_BITS(IndexBits)
  ) u_rate (
      .clk_i,
      .write_i(write[1]),
      .write_address_i(address),
      .write_data_i(data[RATE_BITS-1:0]),
      .read_address_i(index_i),
      .read_data_o(rate_o)
  );
  if (BURST_BITS == 0) begin : g_strict
    assign burst_o = 1'b1;
  end else begin : g_burst
    weir_limit_scan_memory #(
        .WIDTH(LeftBits),
        .ADDRESS_BITS(IndexBits)
    ) u_burst (
        .clk_i,
        .write_i(write[2]),
        .write_address_i(address),
        .write_data_i(data[RATE_BITS+:LeftBits]),
        .read_address_i(index_i),
        .read_data_o(burst_o)
    );
  end
  weir_limit_scan_memory #(
      .WIDTH(ControlBits),
      .ADDRESS_BITS(IndexBits)
  ) u_control (
      .clk_i,
      .write_i(write[0]),
      .write_address_i(address),
      .write_data_i(data[WordBits-1-:ControlBits]),
      .read_address_i(index_i),
      .read_data_o(control)
  );
  assign control_new = {
    wdata_i[weir_limit_map::ControlLock],
    wdata_i[weir_limit_map::ControlNotify],
    wdata_i[weir_limit_map::ControlPolicy],
    wdata_i[weir_limit_map::ControlLimit],
    wdata_i[weir_limit_map::ControlEnable]
  };
  assign enable_o = ENABLES == 0 || control[0];
  assign limit_o = LIMITS == 0 || control[1];
  assign bursty_o = BURST_BITS != 0 && control[2];
  assign notify_o = control[3];
  // High if the write changes a bit of CONTROL other than ENABLE.
  assign changes = which_i != weir_limit_map::RegControl || ((control_new ^ control) & Exist & 5'b11110) != '0;
  assign lock_error = LOCK != 0 && control[4] && write_i && changes;

  assign shown = 32'(LOCK != 0 && control[4]) << weir_limit_map::ControlLock | 32'(NOTIFY != 0 && control[3]) << weir_limit_map::ControlNotify |
      32'(bursty_o) << weir_limit_map::ControlPolicy | 32'(limit_o) << weir_limit_map::ControlLimit | 32'(enable_o) << weir_limit_map::ControlEnable;
  always_comb begin
    case (which_i)
      weir_limit_map::RegControl: rdata_o = shown;
      weir_limit_map::RegRate: rdata_o = 32'(rate_o);
      default: rdata_o = 32'(burst_o);
    endcase
    if (READBACK == 0) rdata_o = '0;
  end

  // ---- A copy of the enable bits, for outputs that hold deliveries or have a bypass.
  if (ENABLES == 0) begin : g_always
    assign enables_o = '1;
  end else begin : g_enables
    for (genvar source = 0; source < SOURCES; source++) begin : g_source
      logic mine;
      assign mine = writes && which_i == weir_limit_map::RegControl && index_i == IndexBits'(source);
      weir_limit_ff #(
          .RESET(RESET),
          .INIT (ENABLE_RESET[source])
      ) u_enable (
          .clk_i,
          .rst_ni,
          .d_i(mine ? wdata_i[weir_limit_map::ControlEnable] : enables_o[source]),
          .q_o(enables_o[source])
      );
    end
  end
  wire unused_bits = &{1'b0, control, data, write, wdata_i};
endmodule

`default_nettype wire
