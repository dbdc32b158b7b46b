// SPDX-License-Identifier: MIT OR Apache-2.0
// Registers of the system as a whole.
//
//   +0x00 EXIT: a write ends the simulation with this code
//   +0x04 RESET: a write resets all but the RAM; reads the number of such resets
//   +0x08 ERRORS: bus errors since the last write to it, saturating
//   +0x0C ERROR_ADDRESS: the address of the first of them; bit 0: it was a write
//   +0x10 LINES: the number of event wires
//   +0x14 CLOCK_HZ: clocks per second
`default_nettype none

module soc_system #(
    parameter int LINES = 8
) (
    input wire clk_i,
    input wire power_ni,
    output logic rst_no,
    input wire [31:0] clock_hz_i,
    input wire access_i,
    input wire write_i,
    input wire [15:0] address_i,
    input wire [31:0] wdata_i,
    output logic [31:0] rdata_o,
    output logic refused_o,
    input wire error_i,
    input wire [31:2] error_address_i,
    input wire error_write_i,
    output logic exit_valid_o,
    output logic [31:0] exit_code_o,
    output logic reset_o
);
  logic [31:0] errors, error_address, resets;
  logic clears;

  always_comb begin
    rdata_o   = '0;
    refused_o = 1'b0;
    unique case (address_i)
      16'h0000: refused_o = !write_i;
      16'h0004: rdata_o = resets;
      16'h0008: rdata_o = errors;
      16'h000c: begin
        rdata_o   = error_address;
        refused_o = write_i;
      end
      16'h0010: begin
        rdata_o   = 32'(LINES);
        refused_o = write_i;
      end
      16'h0014: begin
        rdata_o   = clock_hz_i;
        refused_o = write_i;
      end
      default:  refused_o = 1'b1;
    endcase
  end

  assign exit_valid_o = access_i && write_i && address_i == 16'h0000;
  assign exit_code_o = wdata_i;
  assign reset_o = access_i && write_i && address_i == 16'h0004;
  assign clears = access_i && write_i && address_i == 16'h0008;

  always_ff @(posedge clk_i) begin
    rst_no <= power_ni && !reset_o;
    if (!power_ni) resets <= '0;
    else if (reset_o) resets <= resets + 32'd1;
  end

  always_ff @(posedge clk_i) begin
    if (clears) begin
      errors <= '0;
      error_address <= '0;
    end else if (error_i && errors != '1) begin
      errors <= errors + 32'd1;
      if (errors == '0) error_address <= {error_address_i, 1'b0, error_write_i};
    end
    if (!rst_no) begin
      errors <= '0;
      error_address <= '0;
    end
  end
endmodule

`default_nettype wire
