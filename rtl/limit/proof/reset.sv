// SPDX-License-Identifier: MIT OR Apache-2.0
// LIMIT-SILICON-11 and K of the register form, for the whole block. Two copies start in two
// arbitrary states. After one clock of reset their outputs are the same.
`default_nettype none

module reset #(
    parameter int FORM = 0,
    parameter int SYNC = 2,
    parameter int PULSE = 0,
    localparam int Sources = 2
) (
    input wire clk_i,
    input wire rst_ni,
    input wire psel_i,
    input wire penable_i,
    input wire pwrite_i,
    input wire [15:0] paddr_i,
    input wire [31:0] pwdata_i,
    input wire [3:0] pstrb_i,
    input wire [Sources-1:0] irq_i,
    input wire [Sources-1:0] ack_i,
    input wire bypass_i
);
  wire [1:0] ready, error;
  wire [31:0] data[2];
  wire [Sources-1:0] irq[2];

  for (genvar copy = 0; copy < 2; copy++) begin : g_copy
    wire [31:0] prdata;
    wire [Sources-1:0] out;
    weir_limit #(
        .SOURCES(Sources),
        .FORM(FORM),
        .PHASE_BITS(3),
        .RATE_BITS(3),
        .BURST_BITS(2),
        .HELD_BITS(1),
        .LEVEL(2'b10),
        .SYNC(SYNC),
        .PULSE(PULSE),
        .RATE_RESET({3'd6, 3'd5}),
        .ENABLE_RESET('1)
    ) dut (
        .clk_i,
        .rst_ni,
        .psel_i,
        .penable_i,
        .pwrite_i,
        .paddr_i,
        .pwdata_i,
        .pstrb_i,
        .pready_o(ready[copy]),
        .prdata_o(prdata),
        .pslverr_o(error[copy]),
        .irq_i,
        .ack_i,
        .irq_o(out),
        .msi_valid_i(1'b0),
        .msi_number_i(10'd0),
        .msi_ready_o(),
        .msi_valid_o(),
        .msi_number_o(),
        .msi_ready_i(1'b0),
        .bypass_i,
        .overload_irq_o()
    );
    assign data[copy] = prdata;
    assign irq[copy]  = out;
  end

  // The first clock is a reset. The state before it is arbitrary.
  logic was_reset;
  initial was_reset = 1'b0;
  always_ff @(posedge clk_i) was_reset <= 1'b1;
  initial assume (!rst_ni);

  always_comb
    if (was_reset && rst_ni) begin
      p_reset : assert (irq[0] == irq[1] && ready[0] == ready[1] && error[0] == error[1] && (!ready[0] || data[0] == data[1]));
      c_reset : cover (irq[0] == '1 && !bypass_i && psel_i && penable_i && ready[0] && !error[0]);
    end
endmodule

`default_nettype wire
