// SPDX-License-Identifier: MIT OR Apache-2.0
// What a visit of the scan does to the limiter of one source (regehr2005 §3.4, §4): weir_limit_source with the scan's period for a clock, the state
// coming from a memory and going back.
`default_nettype none

module weir_limit_scan_step #(
    parameter  int PHASE_BITS = 24,
    // At most PHASE_BITS.
    parameter  int RATE_BITS  = 24,
    // 0: strict only.
    parameter  int BURST_BITS = 0,
    localparam int LeftBits   = BURST_BITS == 0 ? 1 : BURST_BITS
) (
    input wire [PHASE_BITS-1:0] phase_i,
    // What may still pass.
    input wire [LeftBits-1:0] left_i,
    input wire [RATE_BITS-1:0] rate_i,
    // At least 1; of no meaning if BURST_BITS is 0.
    input wire [LeftBits-1:0] burst_i,
    // 0: everything passes, and uses up what is left all the same.
    input wire limit_i,
    // 1: an overflow gives back all (bursty, one-shot), else one (bucket). Of no meaning if BURST_BITS is 0.
    input wire bursty_i,
    // A request is there, and nothing but the limit is in its way.
    input wire asks_i,
    output wire deliver_o,
    // The next request passes the limit.
    output wire open_o,
    // Nothing is used, and nothing passes.
    output wire rests_o,
    // The next phase: `grown_o`, or 0 if `clear_o`.
    output wire [PHASE_BITS-1:0] grown_o,
    output wire clear_o,
    output logic [LeftBits-1:0] left_o
);
  logic overflows;

  assign {overflows, grown_o} = {1'b0, phase_i} + {{(PHASE_BITS + 1 - RATE_BITS) {1'b0}}, rate_i};
  assign open_o = left_i != '0 || !limit_i;
  assign deliver_o = asks_i && open_o;

  if (BURST_BITS == 0) begin : g_strict
    assign rests_o = left_i && !deliver_o;
    // What passes while nothing is left (LIMIT is off) starts the interval anew.
    assign clear_o = deliver_o ? !left_i : left_i || overflows;
    assign left_o  = !deliver_o && (left_i || overflows);
    wire unused = &{1'b0, bursty_i, burst_i};
  end else begin : g_burst
    logic full, restarts;
    logic [LeftBits-1:0] left;
    // A burst that became smaller counts at once, even if there is a delivery at each visit.
    assign full = left_i >= burst_i;
    assign left = full ? burst_i : left_i;
    assign rests_o = full && !deliver_o;
    assign restarts = deliver_o && left_i == '0;
    assign clear_o = overflows || rests_o || restarts;
    always_comb begin
      if (restarts) left_o = '0;
      else if (overflows && bursty_i) left_o = burst_i;
      else if (overflows && !rests_o && !deliver_o) left_o = left + 1'b1;
      else if (!overflows && deliver_o) left_o = left - 1'b1;
      else left_o = left;
    end
  end
endmodule

`default_nettype wire
