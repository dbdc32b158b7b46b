// SPDX-License-Identifier: MIT OR Apache-2.0
// A small system around PicoRV32 as it is by default, but with interrupts: 4 KiB of block RAM and area_pins. The processor latches requests itself.
`default_nettype none

module area_picorv32 #(
    parameter int PINS = 1,
    parameter int LIMITED = 0,
    parameter int PHASE_BITS = 14,
    parameter int RATE_BITS = 10
) (
    input wire clk_i,
    input wire rst_i,
    input wire [PINS-1:0] pins_i,
    output wire [7:0] output_o
);
  wire valid;
  wire [31:0] address, write_data;
  wire [3:0] write_bytes;
  logic ready;
  logic [31:0] read_data;

  logic [31:0] ram[1024];
  wire device = address[28];
  always_ff @(posedge clk_i) begin
    ready <= valid && !ready;
    read_data <= ram[address[11:2]];
    for (int b = 0; b < 4; b++) if (valid && !device && write_bytes[b]) ram[address[11:2]][8*b+:8] <= write_data[8*b+:8];
  end

  wire [PINS-1:0] request;
  area_pins #(
      .PINS(PINS),
      .LIMITED(LIMITED),
      .PHASE_BITS(PHASE_BITS),
      .RATE_BITS(RATE_BITS)
  ) u_pins (
      .clk_i,
      .write_i(valid && !ready && device && write_bytes != 0),
      .register_i(address[4:2]),
      .data_i(write_data),
      .pins_i,
      .output_o,
      .request_o(request)
  );

  // Lines 0 to 2 are the processor's own.
  picorv32 #(
      .ENABLE_IRQ (1),
      .MASKED_IRQ (32'hffff_fff8 << PINS)
  ) u_cpu (
      .clk(clk_i),
      .resetn(!rst_i),
      .mem_valid(valid),
      .mem_ready(ready),
      .mem_addr(address),
      .mem_wdata(write_data),
      .mem_wstrb(write_bytes),
      .mem_rdata(read_data),
      .pcpi_wr(1'b0),
      .pcpi_rd(32'h0),
      .pcpi_wait(1'b0),
      .pcpi_ready(1'b0),
      .irq(32'({request, 3'b000}))
  );
endmodule

`default_nettype wire
