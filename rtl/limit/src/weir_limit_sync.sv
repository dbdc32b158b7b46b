// SPDX-License-Identifier: MIT OR Apache-2.0
// Synchronises lines from another clock, or from none, to this clock, and finds their rising edges.
`default_nettype none

module weir_limit_sync #(
    parameter int WIDTH = 1,
    // The number of flip-flops in a row: 0 if the lines belong to this clock, otherwise 2 or 3.
    parameter int SYNC  = 2,
    parameter int RESET = 1
) (
    input wire clk_i,
    input wire rst_ni,
    input wire [WIDTH-1:0] line_i,
    output wire [WIDTH-1:0] level_o,
    // High for one clock per rising edge. If a line is high when the reset ends, this counts as a rising edge.
    output wire [WIDTH-1:0] edge_o
);
  logic [WIDTH-1:0] previous;

  if (SYNC == 0) begin : g_same_clock
    assign level_o = line_i;
  end else begin : g_synchroniser
    logic [SYNC*WIDTH-1:0] stages;
    weir_limit_sync_ff #(
        .WIDTH(SYNC * WIDTH),
        .RESET(RESET)
    ) u_stages (
        .clk_i,
        .rst_ni,
        .d_i({stages[(SYNC-1)*WIDTH-1:0], line_i}),
        .q_o(stages)
    );
    assign level_o = stages[SYNC*WIDTH-1-:WIDTH];
  end
  weir_limit_ff #(
      .WIDTH(WIDTH),
      .RESET(RESET)
  ) u_previous (
      .clk_i,
      .rst_ni,
      .d_i(level_o),
      .q_o(previous)
  );
  assign edge_o = level_o & ~previous;
endmodule

`default_nettype wire
