// SPDX-License-Identifier: MIT OR Apache-2.0
// The RAM, as block RAM of an FPGA. It has a port for instructions and a port for data. Read data
// is valid one clock later.
`default_nettype none

module soc_ram #(
    parameter int WORDS = 16384
) (
    input wire clk_i,
    input wire fetch_i,
    input wire [$clog2(WORDS)-1:0] fetch_address_i,
    output logic [31:0] instruction_o,
    input wire access_i,
    input wire write_i,
    input wire [3:0] select_i,
    input wire [$clog2(WORDS)-1:0] address_i,
    input wire [31:0] wdata_i,
    output logic [31:0] rdata_o
);
  // The simulator loads the firmware's image into this array.
  logic [31:0] words[WORDS];

  always_ff @(posedge clk_i) begin
    if (fetch_i) instruction_o <= words[fetch_address_i];
  end

  always_ff @(posedge clk_i) begin
    if (access_i) begin
      rdata_o <= words[address_i];
      for (int lane = 0; lane < 4; lane++) if (write_i && select_i[lane]) words[address_i][8*lane+:8] <= wdata_i[8*lane+:8];
    end
  end
endmodule

`default_nettype wire
