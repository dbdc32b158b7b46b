// SPDX-License-Identifier: MIT OR Apache-2.0
// Sends the numbers of the waiting sources one after the other. It looks at one source per clock, in turn. So each number is sent within SOURCES
// clocks plus those in which the receiver is not ready, whatever the other sources do.
`default_nettype none

module weir_limit_msi #(
    parameter int SOURCES = 1,
    parameter int RESET = 1,
    localparam int NumberBits = SOURCES == 1 ? 1 : $clog2(SOURCES)
) (
    input wire clk_i,
    input wire rst_ni,
    input wire [SOURCES-1:0] waiting_i,
    // High for a source whose number is stored here from the next clock on.
    output wire [SOURCES-1:0] taken_o,
    output wire msi_valid_o,
    output wire [9:0] msi_number_o,
    input wire msi_ready_i
);
  wire [NumberBits-1:0] turn, number;
  wire valid;
  wire moves = !valid || msi_ready_i;
  wire waits = waiting_i[turn];

  weir_limit_ff #(
      .WIDTH(NumberBits),
      .RESET(RESET)
  ) u_turn (
      .clk_i,
      .rst_ni,
      .d_i(!moves ? turn : turn == NumberBits'(SOURCES - 1) ? '0 : turn + 1'b1),
      .q_o(turn)
  );
  weir_limit_ff #(
      .WIDTH(1 + NumberBits),
      .RESET(RESET)
  ) u_sent (
      .clk_i,
      .rst_ni,
      .d_i(moves ? {waits, turn} : {valid, number}),
      .q_o({valid, number})
  );
  for (genvar s = 0; s < SOURCES; s++) begin : g_taken
    assign taken_o[s] = moves && waits && turn == NumberBits'(s);
  end
  assign msi_valid_o  = valid;
  assign msi_number_o = 10'(number);
endmodule

`default_nettype wire
