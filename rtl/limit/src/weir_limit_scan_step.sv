// SPDX-License-Identifier: MIT OR Apache-2.0
// The effect of a visit of the scan on the limiter of one source (regehr2005 §3.4, §4). This is weir_limit_source with a visit in place of a clock;
// its state comes from a memory and goes back there.
`default_nettype none

module weir_limit_scan_step #(
    parameter  int PHASE_BITS = 24,
    // The width of the rate, at most PHASE_BITS.
    parameter  int RATE_BITS  = 24,
    // The width of the burst. 0: strict only.
    parameter  int BURST_BITS = 0,
    localparam int LeftBits   = BURST_BITS == 0 ? 1 : BURST_BITS
) (
    input wire [PHASE_BITS-1:0] phase_i,
    // The number of requests that may still pass.
    input wire [LeftBits-1:0] left_i,
    input wire [RATE_BITS-1:0] rate_i,
    // The burst, at least 1. It has no meaning if BURST_BITS is 0.
    input wire [LeftBits-1:0] burst_i,
    // 0: everything passes, but still uses up the burst.
    input wire limit_i,
    // 1: an overflow gives the whole burst back (bursty, one-shot); 0: one request (bucket). It has no meaning if BURST_BITS is 0.
    input wire bursty_i,
    // High if there is a request that only the limit can stop.
    input wire asks_i,
    output wire deliver_o,
    // High if the next request passes the limit.
    output wire open_o,
    // High if nothing of the burst is used and nothing passes.
    output wire rests_o,
    // The next phase is `grown_o`, or 0 if `clear_o`.
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
    // A request that passes while nothing is left (because LIMIT is off) starts a new interval.
    assign clear_o = deliver_o ? !left_i : left_i || overflows;
    assign left_o  = !deliver_o && (left_i || overflows);
    wire unused = &{1'b0, bursty_i, burst_i};
  end else begin : g_burst
    logic full, restarts;
    logic [LeftBits-1:0] left;
    // A smaller burst takes effect at once, even if there is a delivery at each visit.
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
