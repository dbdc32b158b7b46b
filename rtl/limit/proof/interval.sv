// SPDX-License-Identifier: MIT OR Apache-2.0
// Ghost: intervals of T = ceil(2**PHASE_BITS / rate) steps, one after the other, by adding the rate up until it reaches 2**PHASE_BITS.
`default_nettype none

module interval #(
    parameter int PHASE_BITS = 24,
    parameter int RATE_BITS  = 24
) (
    input wire clk_i,
    // Begins anew; this clock is the first of the first interval.
    input wire restart_i,
    // The clock is a step. Register form: always.
    input wire step_i,
    input wire [RATE_BITS-1:0] rate_i,
    // What was gathered before this clock, if it does not begin anew.
    output logic [PHASE_BITS-1:0] gathered_o,
    // This clock is the last of an interval.
    output wire over_o
);
  logic [PHASE_BITS-1:0] grown;

  assign {over_o, grown} = (restart_i ? '0 : {1'b0, gathered_o}) + (step_i ? (PHASE_BITS + 1)'(rate_i) : '0);
  always_ff @(posedge clk_i) gathered_o <= over_o ? '0 : grown;
endmodule

`default_nettype wire
