// SPDX-License-Identifier: MIT OR Apache-2.0
// The flip-flops of a synchroniser: a weir_limit_ff with attributes that tools read at the declaration of a register. The flip-flops must be placed
// close together (async_reg) and must not be optimised (keep). In particular they must not become a shift register (shreg_extract), whose stages are
// memory cells and do not resolve metastability.
`default_nettype none

module weir_limit_sync_ff #(
    parameter int WIDTH = 1,
    // The same as RESET of weir_limit_ff.
    parameter int RESET = 1
) (
    input wire clk_i,
    input wire rst_ni,
    input wire [WIDTH-1:0] d_i,
    output wire [WIDTH-1:0] q_o
);
  if (RESET == 0) begin : g_power_up
    // verilator lint_off PROCASSINIT
    (* async_reg = "true", keep = "true", shreg_extract = "no" *)
    logic [WIDTH-1:0] settling = '0;
    // verilator lint_on PROCASSINIT
    always_ff @(posedge clk_i) settling <= d_i;
    assign q_o = settling;
    wire unused = rst_ni;
  end else if (RESET == 1) begin : g_synchronous
    (* async_reg = "true", keep = "true", shreg_extract = "no" *)
    logic [WIDTH-1:0] settling;
    always_ff @(posedge clk_i) settling <= rst_ni ? d_i : '0;
    assign q_o = settling;
  end else begin : g_asynchronous
    (* async_reg = "true", keep = "true", shreg_extract = "no" *)
    logic [WIDTH-1:0] settling;
    always_ff @(posedge clk_i or negedge rst_ni)
      if (!rst_ni) settling <= '0;
      else settling <= d_i;
    assign q_o = settling;
  end
endmodule

`default_nettype wire
