// SPDX-License-Identifier: MIT OR Apache-2.0
// LIMIT-SILICON-1 and -3 for one source in registers: how long its limiter is closed.
`default_nettype none

module source_gap #(
    parameter int PHASE_BITS = 24,
    parameter int RATE_BITS = 24,
    parameter int BURST_BITS = 0,
    parameter int LIMITS = 1,
    // 1: also checks the formula by a multiplication. Use it with few PHASE_BITS.
    parameter int FORMULA = 0,
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
  wire deliver, open;
  wire limited = LIMITS == 0 || limit_i;
  wire asks = noted_i && enable_i;

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
      .open_o(open),
      .opens_o(),
      .rests_o()
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
  wire [LeftBits-1:0] left;

  // The sum of the rates since the last delivery, including its own clock, up to 2**PHASE_BITS.
  logic [PHASE_BITS:0] sum;
  wire [PHASE_BITS:0] base = deliver ? '0 : sum;
  logic delivered;
  initial delivered = 1'b0;
  always_ff @(posedge clk_i) begin
    delivered <= delivered || deliver;
    sum <= base[PHASE_BITS] ? base : base + (PHASE_BITS + 1)'(rate_i);
  end

  // Constant parameters since the source began to use its limit. An interval is then T clocks.
  (* anyconst *) logic [RATE_BITS-1:0] rate;
  (* anyconst *) logic [LeftBits-1:0] burst;
  (* anyconst *) logic bursty;
  wire same = rst_ni && limited && rate_i == rate && burst_i == burst && bursty_i == bursty;
  logic open_before;
  logic ran_out;
  always_ff @(posedge clk_i) open_before <= open;

  // High from a delivery on.
  logic runs;
  wire starts = same && deliver && (BURST_BITS == 0 || !open_before);
  wire over;
  wire [PHASE_BITS-1:0] gathered;
  initial runs = 1'b0;
  always_ff @(posedge clk_i) begin
    // A strict interval runs whether the source requests or not. Other intervals run in overload
    // only.
    runs <= starts || (runs && same && !ran_out && (BURST_BITS == 0 || asks));
    ran_out <= (starts || runs) && over;
  end
  interval #(
      .PHASE_BITS(PHASE_BITS),
      .RATE_BITS (RATE_BITS)
  ) u_interval (
      .clk_i,
      .restart_i(starts),
      .step_i(1'b1),
      .rate_i(rate),
      .gathered_o(gathered),
      .over_o(over)
  );

  if (FORMULA != 0) begin : g_formula
    // The clocks since the delivery, and the sum of their rates.
    logic [  PHASE_BITS:0] clocks;
    wire  [2*PHASE_BITS:0] worth = clocks * rate;
    always_ff @(posedge clk_i) clocks <= starts ? 1 : clocks + 1'b1;
    always_comb
      if (rst_ni && runs && same) begin
        // The limiter opens in the T-th clock, where T = ceil(2**PHASE_BITS / rate).
        p_formula : assert (open == (worth >= 2 ** PHASE_BITS));
        i_formula : assert (open || worth == (2 * PHASE_BITS + 1)'(phase));
        c_formula : cover (open && deliver && rate == 3);
      end
  end

  // While a request waits, the time is bounded by the smallest rate in force.
  (* anyconst *) logic [RATE_BITS-1:0] least;
  wire waits = rst_ni && asks && !deliver && limited && rate_i >= least && burst_i == burst;
  logic waited, late;
  wire due;
  wire [PHASE_BITS-1:0] at_least;
  initial waited = 1'b0;
  always_ff @(posedge clk_i) begin
    waited <= waits;
    late   <= waits && due;
  end
  interval #(
      .PHASE_BITS(PHASE_BITS),
      .RATE_BITS (RATE_BITS)
  ) u_due (
      .clk_i,
      .restart_i(!waited),
      .step_i(1'b1),
      .rate_i(least),
      .gathered_o(at_least),
      .over_o(due)
  );

  always_comb
    if (rst_ni) begin
      if (BURST_BITS == 0 && deliver && delivered && limited) p_gap : assert (sum[PHASE_BITS]);
      // The limiter is closed for T clocks from the delivery on, and not for one more.
      if (runs && (BURST_BITS == 0 || asks) && same && !open_before) p_interval : assert (open == ran_out);
      if (waited && late && asks && limited && rate_i >= least && burst_i == burst) p_live : assert (deliver);

      if (BURST_BITS == 0 && left == '0) i_sum : assert (!delivered || sum >= {1'b0, phase});
      if (BURST_BITS == 0 && left != '0) i_enough : assert (phase == '0 && (!delivered || sum[PHASE_BITS]));
      if (runs && !ran_out && (BURST_BITS == 0 || asks) && same) i_runs : assert (phase == gathered);
      if (waited && !open) i_waited : assert (phase >= at_least);
    end
  always_comb begin
    // A case at the bound: T is no power of two, and the next delivery comes T clocks after the
    // first.
    c_interval : cover (rst_ni && runs && ran_out && deliver && rate == 3 << (PHASE_BITS - 4));
    c_gap : cover (rst_ni && delivered && deliver && limited && sum == {1'b1, {PHASE_BITS{1'b0}}});
    c_live : cover (rst_ni && late && deliver && least == 3 << (PHASE_BITS - 4));
  end
endmodule

`default_nettype wire
