// SPDX-License-Identifier: MIT OR Apache-2.0
// The machine timer and the software interrupt of the privileged architecture. mtime counts clocks,
// and timerInterrupt is high while mtime >= mtimecmp.
//
//   +0x00 mtime, low
//   +0x04 mtime, high
//   +0x08 mtimecmp, low
//   +0x0C mtimecmp, high
//   +0x10 msip (bit 0)
//
// After a reset mtime is 0, mtimecmp is all ones, and msip is 0.
`default_nettype none

module soc_timer (
    input wire clk_i,
    input wire rst_ni,
    input wire access_i,
    input wire write_i,
    input wire [15:0] address_i,
    input wire [31:0] wdata_i,
    output logic [31:0] rdata_o,
    output logic error_o,
    output logic timer_interrupt_o,
    output logic software_interrupt_o
);
  logic [63:0] now, compare;
  logic is_low, is_high, is_compare_low, is_compare_high, is_software, known;

  assign is_low = address_i == 16'h0000;
  assign is_high = address_i == 16'h0004;
  assign is_compare_low = address_i == 16'h0008;
  assign is_compare_high = address_i == 16'h000c;
  assign is_software = address_i == 16'h0010;

  always_comb begin
    known = 1'b1;
    unique case (address_i)
      16'h0000: rdata_o = now[31:0];
      16'h0004: rdata_o = now[63:32];
      16'h0008: rdata_o = compare[31:0];
      16'h000c: rdata_o = compare[63:32];
      16'h0010: rdata_o = {31'h0, software_interrupt_o};
      default: begin
        rdata_o = '0;
        known   = 1'b0;
      end
    endcase
  end
  // A value that does not fit is rejected, not truncated.
  assign error_o = !known || (write_i && is_software && wdata_i[31:1] != '0);

  always_ff @(posedge clk_i) begin
    now <= now + 64'd1;
    timer_interrupt_o <= now >= compare;
    if (access_i && write_i) begin
      if (is_low) now[31:0] <= wdata_i;
      if (is_high) now[63:32] <= wdata_i;
      if (is_compare_low) compare[31:0] <= wdata_i;
      if (is_compare_high) compare[63:32] <= wdata_i;
      if (is_software && !error_o) software_interrupt_o <= wdata_i[0];
    end
    if (!rst_ni) begin
      now <= '0;
      compare <= '1;
      timer_interrupt_o <= 1'b0;
      software_interrupt_o <= 1'b0;
    end
  end
endmodule

`default_nettype wire
