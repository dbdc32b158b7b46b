// SPDX-License-Identifier: MIT OR Apache-2.0
// Takes the place of weir_limit_source in the proofs of the memory form. A clock here stands for a
// visit of the scan. scan.sv proves that the scan visits each source once in S clocks, and finds
// the state that its last visit left.
`default_nettype none

module weir_limit_source #(
    parameter int PHASE_BITS = 24,
    parameter int RATE_BITS = 24,
    parameter int BURST_BITS = 0,
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
    input wire [LeftBits-1:0] burst_i,
    output wire deliver_o,
    output wire open_o,
    output wire opens_o,
    output wire rests_o
);
  logic [PHASE_BITS-1:0] phase;
  logic [LeftBits-1:0] left;
  wire [PHASE_BITS-1:0] grown;
  wire [LeftBits-1:0] left_next;
  wire clear;
  weir_limit_scan_step #(
      .PHASE_BITS(PHASE_BITS),
      .RATE_BITS (RATE_BITS),
      .BURST_BITS(BURST_BITS)
  ) step (
      .phase_i(phase),
      .left_i (left),
      .rate_i,
      .burst_i,
      .limit_i(LIMITS == 0 || limit_i),
      .bursty_i,
      .asks_i (noted_i && enable_i),
      .deliver_o,
      .open_o,
      .rests_o,
      .grown_o(grown),
      .clear_o(clear),
      .left_o (left_next)
  );
  assign opens_o = left_next != '0;
  always_ff @(posedge clk_i) begin
    phase <= clear || !rst_ni ? '0 : grown;
    left  <= rst_ni ? left_next : '0;
  end
endmodule

`default_nettype wire
