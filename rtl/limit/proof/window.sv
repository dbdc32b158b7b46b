// SPDX-License-Identifier: MIT OR Apache-2.0
// Ghost code for LIMIT-SILICON-2. The solver chooses any window that begins with a delivery, and
// the most permissive rate and burst that are in force in it.
//
// `spare` is the number of deliveries that the curve still allows. With k = floor(t / T) at t
// clocks after the beginning, and c deliveries since then, it is
//
//     bucket N + k - c,    bursty N * (k + 2) - 1 - c.
//
// A window is abandoned when `spare` has its initial value again: if the source broke the curve
// later, the window that begins at its next delivery would show it, too. So the ghost state is
// finite although windows can have any length.
`default_nettype none

module window #(
    parameter int PHASE_BITS = 24,
    parameter int RATE_BITS = 24,
    parameter int BURST_BITS = 1
) (
    input wire clk_i,
    input wire step_i,
    input wire deliver_i,
    input wire limit_i,
    input wire bursty_i,
    input wire [RATE_BITS-1:0] rate_i,
    input wire [BURST_BITS-1:0] burst_i,
    // High in the clock in which the window begins.
    output wire begin_o,
    // High in a window, from the clock after its beginning.
    output logic watch_o,
    output logic [BURST_BITS+1:0] spare_o,
    output wire [PHASE_BITS-1:0] gathered_o,
    output wire over_o,
    // An upper bound on what can be left.
    output wire [BURST_BITS-1:0] settled_o,
    // The parameters of the curve: bursty, the rate of T, and N.
    output wire bursty_o,
    output wire [RATE_BITS-1:0] rate_o,
    output wire [BURST_BITS-1:0] burst_o
);
  (* anyconst *) logic most_bursty;
  (* anyconst *) logic [RATE_BITS-1:0] most_rate;
  (* anyconst *) logic [BURST_BITS-1:0] most_burst;
  (* anyseq *) logic start;

  typedef logic [BURST_BITS+1:0] count_t;
  wire permitted = rate_i <= most_rate && burst_i <= most_burst && bursty_i <= most_bursty;
  wire count_t full = most_bursty ? 2 * count_t'(most_burst) - 1'b1 : count_t'(most_burst);
  wire count_t back = !over_o ? '0 : most_bursty ? count_t'(most_burst) : count_t'(1);
  wire count_t spare_next = (begin_o ? full : spare_o) - count_t'(deliver_i) + back;

  assign begin_o  = start && !watch_o && deliver_i && permitted && burst_before <= most_burst;
  assign bursty_o = most_bursty;
  assign rate_o   = most_rate;
  assign burst_o  = most_burst;

  // The burst in the clock before a window counts as being in force in the window.
  logic [BURST_BITS-1:0] burst_before;
  logic known;
  initial known = 1'b0;
  assign settled_o = known ? burst_before : '1;

  initial watch_o = 1'b0;
  always_ff @(posedge clk_i) begin
    burst_before <= burst_i;
    known <= 1'b1;
    // A delivery that passed because LIMIT was off may begin a window, but must not be inside one.
    watch_o <= begin_o || (watch_o && limit_i && permitted && spare_next < full);
    spare_o <= spare_next;
  end

  interval #(
      .PHASE_BITS(PHASE_BITS),
      .RATE_BITS (RATE_BITS)
  ) u_interval (
      .clk_i,
      .restart_i(begin_o),
      .step_i,
      .rate_i(most_rate),
      .gathered_o,
      .over_o
  );

  // High in the clock of a delivery that is one too many.
  always_comb
    if (watch_o && limit_i && permitted && deliver_i) begin
      p_window : assert (spare_o != '0);
    end
endmodule

`default_nettype wire
