// SPDX-License-Identifier: MIT OR Apache-2.0
// The latency K of the register form, for the whole block: from irq_i to irq_o if nothing holds the
// request back. Source 0 is EDGE, and source 1 is LEVEL.
`default_nettype none

module late #(
    parameter int SYNC  = 2,
    parameter int PULSE = 0
) (
    input wire clk_i,
    input wire psel_i,
    input wire penable_i,
    input wire pwrite_i,
    input wire [15:0] paddr_i,
    input wire [31:0] pwdata_i,
    input wire [3:0] pstrb_i,
    input wire [1:0] irq_i,
    input wire [1:0] ack_i
);
  localparam int K = SYNC + 1 + (PULSE == 0 ? 1 : 0);
  wire [1:0] irq;
  weir_limit #(
      .SOURCES(2),
      .PHASE_BITS(3),
      .RATE_BITS(3),
      .LEVEL(2'b10),
      .SYNC(SYNC),
      .PULSE(PULSE)
  ) dut (
      .clk_i,
      .rst_ni(1'b1),
      .psel_i,
      .penable_i,
      .pwrite_i,
      .paddr_i,
      .pwdata_i,
      .pstrb_i,
      .pready_o(),
      .prdata_o(),
      .pslverr_o(),
      .irq_i,
      .ack_i,
      .irq_o(irq),
      .msi_valid_i(1'b0),
      .msi_number_i(10'd0),
      .msi_ready_o(),
      .msi_valid_o(),
      .msi_number_o(),
      .msi_ready_i(1'b0),
      .bypass_i(1'b0),
      .overload_irq_o()
  );

  // The enable bits of the user and of the limit. The runner connects them.
  (* keep *)
  wire [1:0] enable, open, limit, held;
  wire [1:0] free = enable & (open | ~limit) & ~held;

  // Histories with a bit per clock, the newest in bit 0.
  logic [K:0] rose, stood, edge_free, level_free, clocks;
  logic irq_before;
  initial clocks = '0;
  wire [K+1:0] rose_now = {rose, irq_i[0] && !irq_before};
  wire [K+1:0] stood_now = {stood, irq_i[1]};
  always_ff @(posedge clk_i) begin
    irq_before <= irq_i[0];
    rose <= rose_now[K:0];
    stood <= stood_now[K:0];
    clocks <= {clocks[K-1:0], 1'b1};
    edge_free <= {edge_free[K-1:0], free[0]};
    level_free <= {level_free[K-1:0], free[1]};
  end
  // These hold in the clock in which the request must be delivered.
  wire edge_passes = PULSE != 0 ? free[0] : edge_free[0];
  wire level_passes = PULSE != 0 ? free[1] : level_free[0];
  always_comb
    if (&clocks) begin
      if (rose_now[K] && edge_passes && enable[0]) p_edge : assert (irq[0]);
      if (&stood_now[K-1:0] && level_passes && enable[1]) p_level : assert (irq[1]);
      c_edge : cover (rose_now[K] && edge_passes && irq[0] && rose_now[K-1:0] == '0);
      c_level : cover (stood_now == {2'b00, {K{1'b1}}} && irq[1]);
    end
endmodule

`default_nettype wire
