// SPDX-License-Identifier: MIT OR Apache-2.0
// LIMIT-SILICON-2 of one source in registers.
`default_nettype none

module source_window #(
    parameter int PHASE_BITS = 24,
    parameter int RATE_BITS = 24,
    parameter int BURST_BITS = 3,
    parameter int LIMITS = 1,
    localparam int LeftBits = BURST_BITS == 0 ? 1 : BURST_BITS
) (
    input wire clk_i,
    input wire rst_ni,
    input wire noted_i,
    input wire enable_i,
    input wire limit_i,
    input wire bursty_i,
    input wire [RATE_BITS-1:0] rate_i,
    input wire [LeftBits-1:0] burst_i
);
  wire deliver, begins, watch, over, most_bursty;
  wire [  LeftBits+1:0] spare;
  wire [PHASE_BITS-1:0] gathered;
  wire [ RATE_BITS-1:0] most_rate;
  wire [LeftBits-1:0] most_burst, settled;
  wire limited = LIMITS == 0 || limit_i;

  weir_limit_source #(
      .PHASE_BITS(PHASE_BITS),
      .RATE_BITS(RATE_BITS),
      .BURST_BITS(BURST_BITS),
      .LIMITS(LIMITS)
  ) dut (
      .clk_i,
      .rst_ni,
      .noted_i,
      .enable_i,
      .limit_i(limited),
      .bursty_i,
      .rate_i,
      .burst_i,
      .deliver_o(deliver),
      .open_o(),
      .opens_o(),
      .rests_o()
  );

  window #(
      .PHASE_BITS(PHASE_BITS),
      .RATE_BITS (RATE_BITS),
      .BURST_BITS(LeftBits)
  ) u_window (
      .clk_i,
      .step_i(1'b1),
      .deliver_i(deliver),
      .limit_i(limited),
      .bursty_i(BURST_BITS != 0 && bursty_i),
      .rate_i,
      .burst_i,
      .begin_o(begins),
      .watch_o(watch),
      .spare_o(spare),
      .gathered_o(gathered),
      .over_o(over),
      .settled_o(settled),
      .bursty_o(most_bursty),
      .rate_o(most_rate),
      .burst_o(most_burst)
  );

  initial assume (!rst_ni);
  always_comb begin
    assume (rate_i != '0);
    assume (BURST_BITS == 0 ? burst_i == 1'b1 : burst_i != '0);
  end

  // The state of the machine. The runner connects these wires.
  (* keep *)
  wire [PHASE_BITS-1:0] phase;
  (* keep *)
  wire overflows, rests;
  (* keep *)
  wire [LeftBits-1:0] left;

  localparam int Bits = 2 * LeftBits + 4;
  // The number of refills that the curve has given and the limiter has not. It is one more if the
  // window began within an interval.
  logic signed [Bits-1:0] lead_before;
  logic first;
  wire signed [Bits-1:0] lead = !first ? lead_before : phase > gathered ? 1 : 0;
  wire signed [Bits-1:0] unit = most_bursty ? $signed(Bits'(most_burst)) : 1;
  wire refill = overflows && !rests && rst_ni;
  always_ff @(posedge clk_i) begin
    first <= begins;
    lead_before <= lead + $signed(Bits'(over)) - $signed(Bits'(refill));
  end
  always_comb
    if (rst_ni) begin
      i_settled : assert (left <= settled);
    end
  always_comb
    if (watch && limited) begin
      i_lead : assert (lead >= 0 && (lead != 0 || phase <= gathered) && lead <= 2 ** LeftBits);
      i_spare : assert ($signed(Bits'(spare)) >= unit * lead + $signed(Bits'(left)));
    end
  always_comb begin
    // A case with N + 1 deliveries within T, and one with 2 * N - 1 within 2 clocks.
    c_bucket :
    cover (watch && !most_bursty && intervals == 1 && spare == 0 && deliver_before && most_burst == 2 && most_rate == 3 << (PHASE_BITS - 4));
    c_bursty :
    cover (watch && most_bursty && intervals == 1 && spare == 0 && deliver_before && most_burst == 2 && most_rate == 3 << (PHASE_BITS - 4));
  end

  // The number of intervals in the window.
  logic [2:0] intervals;
  logic deliver_before;
  always_ff @(posedge clk_i) begin
    intervals <= begins ? 3'(over) : intervals + 3'(over);
    deliver_before <= deliver;
  end
endmodule

`default_nettype wire
