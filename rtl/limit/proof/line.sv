// SPDX-License-Identifier: MIT OR Apache-2.0
// One source of the register form, for any behaviour of its line and of the bus: LIMIT-SILICON-4 to
// -8 and -10. The ghost code models what software and the source may rely on: registers that change
// only by an accepted write, and one waiting request.
`default_nettype none

module line #(
    parameter int PHASE_BITS = 4,
    parameter int RATE_BITS = 4,
    parameter int BURST_BITS = 2,
    parameter int HELD_BITS = 2,
    parameter int LOCK = 1,
    parameter logic LEVEL = 1'b0,
    localparam int BurstBits = BURST_BITS == 0 ? 1 : BURST_BITS
) (
    input wire clk_i,
    input wire rst_ni,
    input wire level_i,
    input wire edge_i,
    input wire request_i,
    input wire held_i,
    input wire [2:0] which_i,
    input wire write_i,
    input wire [31:0] wdata_i
);
  localparam logic [RATE_BITS-1:0] RateReset = 5;
  localparam logic [BurstBits-1:0] BurstReset = 1;

  wire deliver, enable, begins, notify, refuses;
  wire [31:0] rdata;
  weir_limit_line #(
      .PHASE_BITS(PHASE_BITS),
      .RATE_BITS(RATE_BITS),
      .BURST_BITS(BURST_BITS),
      .HELD_BITS(HELD_BITS),
      .LEVEL(LEVEL),
      .LOCK(LOCK),
      .RATE_RESET(RateReset),
      .BURST_RESET(BurstReset),
      .ENABLE_RESET(1'b1),
      .LIMIT_RESET(1'b1)
  ) dut (
      .clk_i,
      .rst_ni,
      .level_i,
      .edge_i,
      .request_i,
      .held_i,
      .deliver_o(deliver),
      .enable_o (enable),
      .begins_o (begins),
      .notify_o (notify),
      .which_i,
      .write_i,
      .wdata_i,
      .rdata_o  (rdata),
      .refuses_o(refuses)
  );

  // The state of the machine. The runner connects these wires.
  (* keep *)
  wire open, noted, limit, bursty, lock;
  (* keep *)
  wire [RATE_BITS-1:0] rate_held;
  (* keep *)
  wire [BurstBits-1:0] burst_held;
  (* keep *)
  wire [31:0] held_count;

  wire to_control = which_i == weir_limit_map::RegControl;
  wire to_rate = which_i == weir_limit_map::RegRate;
  wire to_burst = which_i == weir_limit_map::RegBurst;
  wire to_held = which_i == weir_limit_map::RegHeld;
  wire [4:0] bits = {wdata_i[31], wdata_i[3:0]};

  // What the bus has already rejected (bus.sv).
  always_comb
    if (write_i) begin
      assume (which_i <= weir_limit_map::RegHeld && which_i != weir_limit_map::RegStatus);
      if (to_control)
        assume ((wdata_i & 32'h7FFFFFF0) == '0 && (BURST_BITS != 0 || !wdata_i[weir_limit_map::ControlPolicy]) && (LOCK != 0 || !wdata_i[31]));
      if (to_rate) assume (wdata_i != '0 && wdata_i >> RATE_BITS == '0);
      if (to_burst) assume (wdata_i != '0 && wdata_i >> BurstBits == '0);
    end

  // LOCK, NOTIFY, POLICY, LIMIT, ENABLE.
  logic [4:0] control;
  logic [RATE_BITS-1:0] rate;
  logic [BurstBits-1:0] burst;
  wire refused = control[4] && (to_rate || to_burst || (to_control && bits[4:1] != control[4:1]));
  wire takes = write_i && !refused;
  // A waiting request; a request that came in the clock before, and the state that it found.
  logic pending, came, found_pending, found_limit;
  logic [HELD_BITS-1:0] count_before;
  wire held_back = came && (found_pending || (found_limit && !open));
  wire [HELD_BITS-1:0] count = held_back && count_before != '1 ? count_before + 1'b1 : count_before;
  logic delivered_before;

  wire request = LEVEL ? edge_i : request_i;
  always_ff @(posedge clk_i) begin
    delivered_before <= deliver;
    if (takes && to_control) control <= bits;
    if (takes && to_rate) rate <= wdata_i[RATE_BITS-1:0];
    if (takes && to_burst && BURST_BITS != 0) burst <= wdata_i[BurstBits-1:0];
    pending <= request || (pending && !deliver);
    came <= request;
    found_pending <= !LEVEL && pending && !deliver;
    found_limit <= control[1];
    // The bus writes in a clock in which a request may come, so that one request may be counted
    // already.
    count_before <= write_i && to_held ? '0 : count;
    if (!rst_ni) begin
      control <= 5'b00011;
      rate <= RateReset;
      burst <= BurstReset;
      {pending, came} <= '0;
      count_before <= '0;
    end
  end

  wire [4:0] control_read = {rdata[31], rdata[3:0]};
  wire asks = LEVEL ? level_i : pending;

  initial assume (!rst_ni);
  always_comb
    if (rst_ni) begin
      if (LEVEL)
        p_asked :
        assert (!deliver || (level_i && !held_i));
        else p_requested : assert (!deliver || (pending && !held_i));
      p_kept : assert (!(asks && control[0] && (open || !control[1]) && !held_i) || deliver);
      p_disable : assert (control[0] || (!deliver && !enable));
      p_limit : assert (!control[1] || open || !deliver);
      p_lock : assert (!write_i || refuses == refused);
      if (to_control) p_control : assert (control_read == control && rdata[30:4] == '0);
      if (to_rate) p_rate : assert (rdata == 32'(rate) && rate != '0);
      if (to_burst) p_burst : assert (rdata == 32'(burst) && burst != '0);
      if (to_held) p_count : assert (rdata == 32'(count));

      i_noted : assert (noted == (!LEVEL && pending));
      i_control : assert ({lock, notify, bursty, limit, enable} == control);
      i_registers : assert (rate_held == rate && burst_held == burst && rate != '0 && burst != '0 && (BURST_BITS != 0 || burst == 1));
      i_count : assert (held_count == 32'(count));

      c_level : cover (LEVEL && deliver && control[1] && !edge_i && count != '0);
      c_requested : cover (deliver && came && delivered_before);
      c_kept : cover (deliver && !came && count != '0);
      c_disable : cover (asks && open && !control[0] && !held_i);
      c_limit : cover (asks && !open && control[1:0] == 2'b11);
      c_lock : cover (write_i && refuses && to_control);
      c_control : cover (to_control && control == 5'b11111 || (BURST_BITS == 0 && control == 5'b11011));
      c_rate : cover (to_rate && rdata == '1 >> (32 - RATE_BITS));
      c_burst : cover (to_burst && (rdata == '1 >> (32 - BurstBits)));
      c_count : cover (to_held && rdata == '1 >> (32 - HELD_BITS) && held_back);
    end
endmodule

`default_nettype wire
