// SPDX-License-Identifier: MIT OR Apache-2.0
// Ghost code: consecutive intervals of T = ceil(2**PHASE_BITS / rate) steps. It adds up the rate
// until the sum reaches 2**PHASE_BITS.
`default_nettype none

module interval #(
    parameter int PHASE_BITS = 24,
    parameter int RATE_BITS  = 24
) (
    input wire clk_i,
    // Starts again. This clock is the first of the first interval.
    input wire restart_i,
    // High if this clock is a step. In the register form it is always high.
    input wire step_i,
    input wire [RATE_BITS-1:0] rate_i,
    // The sum before this clock, if there is no restart.
    output logic [PHASE_BITS-1:0] gathered_o,
    // High in the last clock of an interval.
    output wire over_o
);
  logic [PHASE_BITS-1:0] grown;

  assign {over_o, grown} = (restart_i ? '0 : {1'b0, gathered_o}) + (step_i ? (PHASE_BITS + 1)'(rate_i) : '0);
  always_ff @(posedge clk_i) gathered_o <= over_o ? '0 : grown;
endmodule

`default_nettype wire
