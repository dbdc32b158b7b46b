// SPDX-License-Identifier: MIT OR Apache-2.0
// A memory with a write port and a read port, whose data comes a clock later: block RAM on iCE40 and ECP5. Data that is read in the clock in which
// its address is written is never used, so the families' different results do not matter (and no gates make them equal).
`default_nettype none

module weir_limit_scan_memory #(
    parameter int WIDTH = 1,
    parameter int ADDRESS_BITS = 1
) (
    input wire clk_i,
    input wire write_i,
    input wire [ADDRESS_BITS-1:0] write_address_i,
    input wire [WIDTH-1:0] write_data_i,
    input wire [ADDRESS_BITS-1:0] read_address_i,
    output logic [WIDTH-1:0] read_data_o
);
  (* no_rw_check, ram_style = "block" *)
  logic [WIDTH-1:0] cells[2**ADDRESS_BITS];

  always_ff @(posedge clk_i) begin
    if (write_i) cells[write_address_i] <= write_data_i;
    read_data_o <= cells[read_address_i];
`ifdef __ICARUS__
    // In simulation, make a use of this data visible.
    if (write_i && write_address_i == read_address_i) read_data_o <= 'x;
`endif
  end
endmodule

`default_nettype wire
