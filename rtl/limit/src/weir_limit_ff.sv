// SPDX-License-Identifier: MIT OR Apache-2.0
// A register. It holds all state of rtl/limit except synchronisers and memories, so that the kind of reset is chosen in one place.
`default_nettype none

module weir_limit_ff #(
    parameter int WIDTH = 1,
    // 0: no reset, and INIT is the value at power-up (FPGAs); 1: synchronous; 2: asynchronous.
    parameter int RESET = 1,
    parameter logic [WIDTH-1:0] INIT = '0
) (
    input wire clk_i,
    input wire rst_ni,
    input wire [WIDTH-1:0] d_i,
    output wire [WIDTH-1:0] q_o
);
  if (RESET == 0) begin : g_power_up
    // Not by an `initial` block: nothing but the always_ff may write what it writes, and there are tools that see to it.
    // verilator lint_off PROCASSINIT
    logic [WIDTH-1:0] q = INIT;
    // verilator lint_on PROCASSINIT
    always_ff @(posedge clk_i) q <= d_i;
    assign q_o = q;
    wire unused = rst_ni;
  end else if (RESET == 1) begin : g_synchronous
    logic [WIDTH-1:0] q;
    always_ff @(posedge clk_i) q <= rst_ni ? d_i : INIT;
    assign q_o = q;
  end else begin : g_asynchronous
    logic [WIDTH-1:0] q;
    always_ff @(posedge clk_i or negedge rst_ni)
      if (!rst_ni) q <= INIT;
      else q <= d_i;
    assign q_o = q;
  end
endmodule

`default_nettype wire
