// SPDX-License-Identifier: MIT OR Apache-2.0
// The limiter of one source (regehr2005 §3.4, §4), in registers.
//
// `left` requests may still pass; strict is a burst of one, and its `left` is called `open`. A phase that grows by `rate` each clock gives them
// back when it overflows: all (bursty, one-shot) or one (bucket). It stands at 0 while nothing is used, and starts there again when it overflows, so
// that from the delivery which starts it to the first clock that may deliver again there are exactly
//
//     T = ceil(2**PHASE_BITS / rate) clocks.
//
// There is neither a comparator nor a register that reloads a counter: that is why it is small. After reset everything is used: a system that
// resets again and again gets no interrupts beyond the curve by it.
`default_nettype none

module weir_limit_source #(
    // 2**PHASE_BITS / rate is the interval.
    parameter int PHASE_BITS = 24,
    // At most PHASE_BITS.
    parameter int RATE_BITS = 24,
    // 0: strict only.
    parameter int BURST_BITS = 0,
    // 0: limit_i is 1 always.
    parameter int LIMITS = 1,
    parameter int RESET = 1,
    localparam int LeftBits = BURST_BITS == 0 ? 1 : BURST_BITS
) (
    input wire clk_i,
    input wire rst_ni,
    // The source asks, until it is delivered.
    input wire noted_i,
    // The programmer's enable bit; the other one of §4 is `open_o`.
    input wire enable_i,
    // 0: everything passes, and uses up what is left all the same. The interval starts anew with what passes while nothing is left.
    input wire limit_i,
    // 1: an overflow gives back all (bursty, one-shot), else one (bucket). Of no meaning if BURST_BITS is 0.
    input wire bursty_i,
    input wire [RATE_BITS-1:0] rate_i,
    // At least 1; of no meaning if BURST_BITS is 0.
    input wire [LeftBits-1:0] burst_i,
    // One clock: the request passes.
    output wire deliver_o,
    // Something is left, and in the next clock.
    output wire open_o,
    output wire opens_o,
    // Nothing is used, and nothing passes.
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
      // The phase is cleared exactly when it opens: one gate, behind the adder's carry. (Where it is open the phase is 0, and nothing overflows.)
      assign clears  = deliver_o ? 1'b0 : open || overflows;
      assign opens_o = clears;
    end else begin : g_switched
      // Written with `deliver_o` in front, so that synthesis uses that gate and does not build it twice.
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
      // A burst that became smaller counts at once.
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
