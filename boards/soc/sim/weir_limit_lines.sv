// SPDX-License-Identifier: MIT OR Apache-2.0
// The register form of rtl/limit, rewritten for fast simulation. Every register has the same value
// in every clock as in rtl/limit/src/weir_limit_lines.sv with the board's parameters;
// tests/test_limiter.py proves this.
//
// The original consists of many small modules, and Verilator evaluates all their gates in every
// clock. Here one operation handles the bits of all sources, and rare events (an access, an edge, a
// delivery, an overflow) are behind a branch. This is five times as fast.
`default_nettype none

module weir_limit_lines #(
    parameter int SOURCES = 8,
    parameter int PHASE_BITS = 32,
    parameter int RATE_BITS = 32,
    parameter int BURST_BITS = 8,
    parameter int HELD_BITS = 16,
    parameter logic [SOURCES-1:0] LEVEL = '0,
    parameter int RESET = 1,
    parameter int READBACK = 1,
    parameter int ENABLES = 1,
    parameter int LIMITS = 1,
    parameter int OVERLOAD = 1,
    parameter int LOCK = 1,
    parameter int MSI = 0,
    parameter logic [SOURCES*RATE_BITS-1:0] RATE_RESET = {SOURCES{RATE_BITS'(1)}},
    parameter logic [SOURCES*BURST_BITS-1:0] BURST_RESET = {SOURCES{BURST_BITS'(1)}},
    parameter logic [SOURCES-1:0] ENABLE_RESET = '0,
    parameter logic [SOURCES-1:0] LIMIT_RESET = '0,
    parameter logic [SOURCES-1:0] POLICY_RESET = '0
) (
    input wire clk_i,
    input wire rst_ni,
    input wire [SOURCES-1:0] level_i,
    input wire [SOURCES-1:0] edge_i,
    input wire msi_valid_i,
    input wire [9:0] msi_number_i,
    input wire [SOURCES-1:0] held_i,
    output wire [SOURCES-1:0] deliver_o,
    output wire [SOURCES-1:0] enable_o,
    output wire overload_irq_o,
    output wire [31:0] tick_o,
    input wire reg_valid_i,
    input wire reg_write_i,
    input wire [2:0] reg_which_i,
    input wire [9:0] reg_source_i,
    input wire [31:0] reg_wdata_i,
    output wire reg_ready_o,
    output logic [31:0] reg_rdata_o,
    output logic reg_error_o
);
  // Parameters that the board does not use are not supported. Every tool stops at a module that
  // does not exist.
  localparam bit Fits = SOURCES >= 2 && SOURCES <= 32 && RATE_BITS == PHASE_BITS && BURST_BITS != 0 && HELD_BITS != 0 && LEVEL == '0 && RESET == 1;
  localparam bit FitsToo = READBACK != 0 && ENABLES != 0 && LIMITS != 0 && OVERLOAD != 0 && LOCK != 0 && MSI == 0;
  if (!Fits || !FitsToo) begin : g_wrong
    weir_limit_parameter_out_of_range u_wrong ();
  end

  // One bit per source. `open` means that the source may still deliver.
  logic [SOURCES-1:0] noted, open, enable, limit, bursty, notify, lock, overload, began;
  logic [RATE_BITS-1:0] rate[SOURCES];
  logic [BURST_BITS-1:0] burst[SOURCES];
  wire [SOURCES*HELD_BITS-1:0] held;
  // A register access.
  logic writes_control, writes_rate, writes_burst;
  logic [SOURCES-1:0] writes_held, clears;

  // ---------------------------------------------------------------------------------------------- limiters
  wire [SOURCES-1:0] found = noted & limit & ~open;
  assign deliver_o = noted & ~held_i & enable & (open | ~limit);

  always_ff @(posedge clk_i) noted <= rst_ni ? edge_i | (noted & ~deliver_o) : '0;

  for (genvar s = 0; s < SOURCES; s++) begin : g_line
    logic [PHASE_BITS-1:0] phase;
    logic [BURST_BITS-1:0] left;
    logic [ HELD_BITS-1:0] held_count;
    assign held[s*HELD_BITS+:HELD_BITS] = held_count;

    always_ff @(posedge clk_i) begin : step
      logic [PHASE_BITS-1:0] grown;
      logic [BURST_BITS-1:0] left_next;
      logic overflows, full, counts;
      {overflows, grown} = {1'b0, phase} + {1'b0, rate[s]};
      full = left >= burst[s];
      left_next = left;
      if (full && !deliver_o[s]) begin
        // The values of a source at rest.
        phase <= '0;
        left_next = burst[s];
        if (!noted[s]) overload[s] <= 1'b0;
      end else if (overflows || deliver_o[s]) begin
        phase <= overflows || left == '0 ? '0 : grown;
        if (deliver_o[s] && left == '0) left_next = '0;
        else if (overflows && bursty[s]) left_next = burst[s];
        else if (overflows && !deliver_o[s]) left_next = left + 1'b1;
        else left_next = (full ? burst[s] : left) - BURST_BITS'(!overflows);
      end else begin
        phase <= grown;
      end
      if (left_next != left) begin
        left <= left_next;
        open[s] <= left_next != '0;
      end
      if (found[s]) overload[s] <= 1'b1;
      if (edge_i[s] || writes_held[s]) begin
        counts = edge_i[s] && ((noted[s] && !deliver_o[s]) || (limit[s] && left_next == '0));
        if (writes_held[s]) held_count <= HELD_BITS'(counts);
        else if (held_count != '1) held_count <= held_count + HELD_BITS'(counts);
      end
      if (!rst_ni) begin
        phase <= '0;
        left <= '0;
        open[s] <= 1'b0;
        overload[s] <= 1'b0;
        held_count <= '0;
      end
    end
  end

  // ---------------------------------------------------------------------------------------------- registers
  wire [$clog2(SOURCES)-1:0] source = reg_source_i[$clog2(SOURCES)-1:0];
  // The write changes no bit of CONTROL except ENABLE.
  wire same = reg_wdata_i[weir_limit_map::ControlLimit] == limit[source] && reg_wdata_i[weir_limit_map::ControlPolicy] == bursty[source] &&
      reg_wdata_i[weir_limit_map::ControlNotify] == notify[source] && reg_wdata_i[weir_limit_map::ControlLock];

  always_comb begin
    reg_rdata_o = '0;
    reg_error_o = 1'b0;
    writes_control = 1'b0;
    writes_rate = 1'b0;
    writes_burst = 1'b0;
    writes_held = '0;
    clears = '0;
    if (reg_which_i == weir_limit_map::RegBegan) begin
      if (reg_source_i[4:0] == '0) begin
        reg_rdata_o = 32'(began);
        if (reg_valid_i && reg_write_i) clears = reg_wdata_i[SOURCES-1:0];
      end
    end else if (reg_valid_i && reg_source_i < 10'(SOURCES)) begin
      case (reg_which_i)
        weir_limit_map::RegControl: begin
          reg_rdata_o[weir_limit_map::ControlEnable] = enable[source];
          reg_rdata_o[weir_limit_map::ControlLimit] = limit[source];
          reg_rdata_o[weir_limit_map::ControlPolicy] = bursty[source];
          reg_rdata_o[weir_limit_map::ControlNotify] = notify[source];
          reg_rdata_o[weir_limit_map::ControlLock] = lock[source];
          reg_error_o = reg_write_i && lock[source] && !same;
          writes_control = reg_write_i && !reg_error_o;
        end
        weir_limit_map::RegRate: begin
          reg_rdata_o[RATE_BITS-1:0] = rate[source];
          reg_error_o = reg_write_i && lock[source];
          writes_rate = reg_write_i && !reg_error_o;
        end
        weir_limit_map::RegBurst: begin
          reg_rdata_o[BURST_BITS-1:0] = burst[source];
          reg_error_o = reg_write_i && lock[source];
          writes_burst = reg_write_i && !reg_error_o;
        end
        weir_limit_map::RegStatus: begin
          reg_rdata_o[weir_limit_map::StatusOpen] = open[source] || !limit[source];
          reg_rdata_o[weir_limit_map::StatusNoted] = noted[source];
          reg_rdata_o[weir_limit_map::StatusOverload] = overload[source];
        end
        weir_limit_map::RegHeld: begin
          reg_rdata_o[HELD_BITS-1:0] = held[source*HELD_BITS+:HELD_BITS];
          writes_held[source] = reg_write_i;
        end
        default: ;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if ((found | began) != '0) began <= (found & ~overload) | (began & ~clears);
    if (writes_control) begin
      enable[source] <= reg_wdata_i[weir_limit_map::ControlEnable];
      limit[source]  <= reg_wdata_i[weir_limit_map::ControlLimit];
      bursty[source] <= reg_wdata_i[weir_limit_map::ControlPolicy];
      notify[source] <= reg_wdata_i[weir_limit_map::ControlNotify];
      if (reg_wdata_i[weir_limit_map::ControlLock]) lock[source] <= 1'b1;
    end
    if (writes_rate) rate[source] <= reg_wdata_i[RATE_BITS-1:0];
    if (writes_burst) burst[source] <= reg_wdata_i[BURST_BITS-1:0];
    if (!rst_ni) begin
      began  <= '0;
      enable <= ENABLE_RESET;
      limit  <= LIMIT_RESET;
      bursty <= POLICY_RESET;
      notify <= '0;
      lock   <= '0;
      for (int s = 0; s < SOURCES; s++) begin
        rate[s]  <= RATE_RESET[s*RATE_BITS+:RATE_BITS];
        burst[s] <= BURST_RESET[s*BURST_BITS+:BURST_BITS];
      end
    end
  end

  assign enable_o = enable;
  assign overload_irq_o = (began & notify) != '0;
  assign reg_ready_o = reg_valid_i;
  assign tick_o = 32'd1;
  wire unused = &{1'b0, level_i, msi_valid_i, msi_number_i};
endmodule

`default_nettype wire
