// SPDX-License-Identifier: MIT OR Apache-2.0
// As placed: ../../src has it as it is; README.md of experiments/regehr2005/table3 says why both are there.
// A register. All state of rtl/limit is in these, so that the way of resetting is chosen in one place.
`default_nettype none

module weir_limit_ff #(
    parameter int WIDTH = 1,
    // 0: none, the value at power-up is INIT (FPGAs); 1: synchronous; 2: asynchronous.
    parameter int RESET = 1,
    parameter logic [WIDTH-1:0] INIT = '0
) (
    input wire clk_i,
    input wire rst_ni,
    input wire [WIDTH-1:0] d_i,
    output logic [WIDTH-1:0] q_o
);
  if (RESET == 0) begin : g_power_up
    initial q_o = INIT;
    always_ff @(posedge clk_i) q_o <= d_i;
    wire unused = rst_ni;
  end else if (RESET == 1) begin : g_synchronous
    always_ff @(posedge clk_i) q_o <= rst_ni ? d_i : INIT;
  end else begin : g_asynchronous
    always_ff @(posedge clk_i or negedge rst_ni)
      if (!rst_ni) q_o <= INIT;
      else q_o <= d_i;
  end
endmodule

`default_nettype wire
