// SPDX-License-Identifier: MIT OR Apache-2.0
// The part of the scan that exists once per source: a flip-flop that keeps a request until the scan takes it, and the path of a delivery back to its
// source.
//
// In the same clock, the scan takes the requests of a whole row of GROUP sources and outputs the deliveries of the row before. So a decoder needs one
// line per row, a flip-flop needs one gate, and the time of a delivery does not depend on the source's place in its row.
`default_nettype none

module weir_limit_scan_requests #(
    parameter int SOURCES = 1,
    parameter int GROUP = 8,
    parameter int ROWS = 2,
    parameter logic [SOURCES-1:0] LEVEL = '0,
    // 1: edges of LEVEL sources are needed, too.
    parameter int COUNTS = 0,
    parameter int MSI = 0,
    parameter int RESET = 1,
    localparam int RowBits = $clog2(ROWS)
) (
    input wire clk_i,
    input wire rst_ni,
    input wire [SOURCES-1:0] level_i,
    input wire [SOURCES-1:0] edge_i,
    input wire msi_valid_i,
    input wire [9:0] msi_number_i,
    input wire [SOURCES-1:0] held_i,
    output wire [SOURCES-1:0] deliver_o,
    // High in the clock in which the requests of row_i are taken and the deliveries of the row before are output.
    input wire turn_i,
    input wire [RowBits-1:0] row_i,
    // The row that is taken in that clock.
    input wire [RowBits-1:0] look_i,
    input wire [GROUP-1:0] given_i,
    // About row look_i: what has come since the last turn, the levels (LEVEL sources), which sources are LEVEL, and which cannot be delivered.
    output wire [GROUP-1:0] came_o,
    output wire [GROUP-1:0] level_o,
    output wire [GROUP-1:0] is_level_o,
    output wire [GROUP-1:0] busy_o
);
  localparam int Padded = ROWS * GROUP;

  logic [Padded-1:0] came, levels, kinds, busy, deliver;
  logic [ROWS-1:0] turns;

  for (genvar row = 0; row < ROWS; row++) begin : g_row
    assign turns[row] = turn_i && row_i == RowBits'(row);
    weir_limit_ff #(
        .WIDTH(GROUP),
        .RESET(RESET)
    ) u_deliver (
        .clk_i,
        .rst_ni,
        .d_i(turns[(row+1)%ROWS] ? given_i : '0),
        .q_o(deliver[row*GROUP+:GROUP])
    );
  end

  for (genvar source = 0; source < Padded; source++) begin : g_source
    if (source >= SOURCES) begin : g_none
      assign {came[source], levels[source], kinds[source], busy[source]} = '0;
    end else begin : g_some
      assign kinds[source]  = LEVEL[source];
      assign levels[source] = LEVEL[source] && level_i[source];
      assign busy[source]   = held_i[source];
      if (LEVEL[source] && COUNTS == 0) begin : g_level_only
        assign came[source] = 1'b0;
      end else begin : g_keep
        logic msi;
        assign msi = MSI != 0 && !LEVEL[source] && msi_valid_i && msi_number_i == 10'(source);
        // A request in the clock of the turn waits for the next turn.
        weir_limit_ff #(
            .RESET(RESET)
        ) u_came (
            .clk_i,
            .rst_ni,
            .d_i(edge_i[source] || msi || (came[source] && !turns[source/GROUP])),
            .q_o(came[source])
        );
      end
    end
  end
  wire unused = &{1'b0, level_i, edge_i, msi_valid_i, msi_number_i, deliver};

  assign deliver_o = deliver[SOURCES-1:0];
  assign came_o = came[{look_i, {$clog2(GROUP) {1'b0}}}+:GROUP];
  assign level_o = levels[{look_i, {$clog2(GROUP) {1'b0}}}+:GROUP];
  assign is_level_o = kinds[{look_i, {$clog2(GROUP) {1'b0}}}+:GROUP];
  assign busy_o = busy[{look_i, {$clog2(GROUP) {1'b0}}}+:GROUP];
endmodule

`default_nettype wire
