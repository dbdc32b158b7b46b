// SPDX-License-Identifier: MIT OR Apache-2.0
// The limiter of one source (regehr2005 §3.4, §4), with its state in registers.
//
// `left` requests may still pass. A strict limit is a burst of one, whose `left` is called `open`. A phase grows by `rate` each clock, and gives
// requests back when it overflows: the whole burst (bursty, one-shot) or one request (bucket). It is 0 while nothing is used, and starts from 0 again
// after an overflow. So from the delivery that starts it to the first clock that may deliver again there are exactly
//
//     T = ceil(2**PHASE_BITS / rate) clocks.
//
// There is neither a comparator nor a register that reloads a counter, which keeps the limiter small. After reset the burst is used up, so that a
// system that resets again and again gets no interrupts beyond the curve.
`default_nettype none

module weir_limit_source #(
    // The width of the phase. The interval is 2**PHASE_BITS / rate.
    parameter int PHASE_BITS = 24,
    // The width of the rate, at most PHASE_BITS.
    parameter int RATE_BITS = 24,
    // The width of the burst. 0: strict only.
    parameter int BURST_BITS = 0,
    // 0: limit_i is always 1.
    parameter int LIMITS = 1,
    parameter int RESET = 1,
    localparam int LeftBits = BURST_BITS == 0 ? 1 : BURST_BITS
) (
    input wire clk_i,
    input wire rst_ni,
    // High while the source has a request that was not delivered.
    input wire noted_i,
    // The programmer's enable bit. The other enable bit of §4 is `open_o`.
    input wire enable_i,
    // 0: everything passes, but still uses up the burst. What passes while nothing is left starts a new interval.
    input wire limit_i,
    // 1: an overflow gives the whole burst back (bursty, one-shot); 0: one request (bucket). It has no meaning if BURST_BITS is 0.
    input wire bursty_i,
    input wire [RATE_BITS-1:0] rate_i,
    // The burst, at least 1. It has no meaning if BURST_BITS is 0.
    input wire [LeftBits-1:0] burst_i,
    // High for one clock when the request passes.
    output wire deliver_o,
    // High if a request may pass; the second output is the value in the next clock.
    output wire open_o,
    output wire opens_o,
    // High if nothing of the burst is used and nothing passes.
    output wire rests_o
);
  logic [PHASE_BITS-1:0] phase, grown;
  logic overflows, clears;

  assign deliver_o = noted_i && enable_i && (open_o || (LIMITS != 0 && !limit_i));

  assign {overflows, grown} = {1'b0, phase} + {{(PHASE_BITS + 1 - RATE_BITS) {1'b0}}, rate_i};
  weir_limit_ff #(
      .WIDTH(PHASE_BITS),
      .RESET(RESET)
  ) u_phase (
      .clk_i,
      .rst_ni,
      .d_i(clears ? '0 : grown),
      .q_o(phase)
  );

  if (BURST_BITS == 0) begin : g_strict
    logic open;
    assign open_o  = open;
    assign rests_o = open && !deliver_o;
    if (LIMITS == 0) begin : g_always
      // The phase is cleared exactly when `open` is set: one gate after the carry. (While `open` is set the phase is 0 and cannot overflow.)
      assign clears  = deliver_o ? 1'b0 : open || overflows;
      assign opens_o = clears;
    end else begin : g_switched
      // `deliver_o` comes first in this expression, so that synthesis shares its gate instead of building it twice.
      assign clears  = deliver_o ? !open : open || overflows;
      assign opens_o = deliver_o ? 1'b0 : open || overflows;
    end
    weir_limit_ff #(
        .RESET(RESET)
    ) u_open (
        .clk_i,
        .rst_ni,
        .d_i(opens_o),
        .q_o(open)
    );
    wire unused = &{1'b0, limit_i, bursty_i, burst_i};
  end else begin : g_burst
    logic [LeftBits-1:0] left, left_next;
    logic full, restarts;
    assign open_o = left != '0;
    assign opens_o = left_next != '0;
    assign full = left >= burst_i;
    assign rests_o = full && !deliver_o;
    assign restarts = LIMITS != 0 && deliver_o && !open_o;
    assign clears = overflows || rests_o || restarts;
    always_comb begin
      if (restarts) left_next = '0;
      // A smaller burst takes effect at once.
      else if (rests_o || (overflows && bursty_i)) left_next = burst_i;
      else if (overflows == deliver_o) left_next = full ? burst_i : left;
      else if (overflows) left_next = left + 1'b1;
      else left_next = (full ? burst_i : left) - 1'b1;
    end
    weir_limit_ff #(
        .WIDTH(LeftBits),
        .RESET(RESET)
    ) u_left (
        .clk_i,
        .rst_ni,
        .d_i(left_next),
        .q_o(left)
    );
    wire unused = limit_i;
  end
endmodule

`default_nettype wire
