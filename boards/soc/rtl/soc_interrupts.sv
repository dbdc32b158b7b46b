// SPDX-License-Identifier: MIT OR Apache-2.0
// The interrupt controller. It has 32 lines. A rising edge sets the line's bit of PENDING, and
// writing a one clears the bit.
//
//   +0x00 PENDING, write one to clear    +0x04 ENABLE
//
// If a line rises in the clock in which its bit is cleared, the bit stays set, so that no request
// is lost. After a reset both registers are 0.
`default_nettype none

module soc_interrupts (
    input wire clk_i,
    input wire rst_ni,
    input wire [31:0] raised_i,
    input wire access_i,
    input wire write_i,
    input wire [15:0] address_i,
    input wire [31:0] wdata_i,
    output logic [31:0] rdata_o,
    output logic error_o,
    // High for a line that rose while its bit was already pending. This request is lost.
    output wire [31:0] merged_o,
    output wire [31:0] interrupts_o
);
  logic [31:0] pending, enabled, raised_before, rises, cleared;
  logic is_pending, is_enable;

  assign is_pending = address_i == 16'h0000;
  assign is_enable = address_i == 16'h0004;
  assign rdata_o = is_pending ? pending : enabled;
  assign error_o = !(is_pending || is_enable);
  assign interrupts_o = pending & enabled;
  assign cleared = access_i && write_i && is_pending ? wdata_i : '0;
  assign rises = raised_i & ~raised_before;
  assign merged_o = rises & pending & ~cleared;

  always_ff @(posedge clk_i) begin
    raised_before <= raised_i;
    pending <= (pending & ~cleared) | rises;
    if (access_i && write_i && is_enable) enabled <= wdata_i;
    if (!rst_ni) begin
      raised_before <= '1;
      pending <= '0;
      enabled <= '0;
    end
  end
endmodule

`default_nettype wire
