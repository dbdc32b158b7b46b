// SPDX-License-Identifier: MIT OR Apache-2.0
// A small system around VexRiscv_Min: 4 KiB of block RAM, area_pins, and what an interrupt controller is at the least: a bit per pin, set by a
// request and cleared by writing a one to it.
`default_nettype none

module area_vexriscv #(
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
  wire fetch, access, write_enable;
  wire [29:0] fetch_address, access_address;
  wire [31:0] write_data;
  wire [3:0] write_bytes;
  logic fetched, accessed;
  logic [31:0] fetch_data, access_data;

  logic [31:0] ram[1024];
  wire write = access && write_enable && !accessed;
  wire device = access_address[26];
  always_ff @(posedge clk_i) begin
    fetched  <= fetch && !fetched && !rst_i;
    accessed <= access && !accessed && !rst_i;
    fetch_data  <= ram[fetch_address[9:0]];
    access_data <= ram[access_address[9:0]];
    for (int b = 0; b < 4; b++) if (write && !device && write_bytes[b]) ram[access_address[9:0]][8*b+:8] <= write_data[8*b+:8];
  end

  wire [PINS-1:0] request;
  wire [PINS-1:0] claimed = write && device && access_address[2:0] == 3'd1 ? write_data[PINS-1:0] : '0;
  logic [PINS-1:0] pending = '0;
  always_ff @(posedge clk_i) pending <= request | (pending & ~claimed);

  area_pins #(
      .PINS(PINS),
      .LIMITED(LIMITED),
      .PHASE_BITS(PHASE_BITS),
      .RATE_BITS(RATE_BITS)
  ) u_pins (
      .clk_i,
      .write_i(write && device),
      .register_i(access_address[2:0]),
      .data_i(write_data),
      .pins_i,
      .output_o,
      .request_o(request)
  );

  wire fetch_cycle, fetch_strobe, access_cycle, access_strobe;
  assign fetch  = fetch_cycle && fetch_strobe;
  assign access = access_cycle && access_strobe;
  VexRiscv u_cpu (
      .clk(clk_i),
      .reset(rst_i),
      .externalResetVector(32'h0),
      .timerInterrupt(1'b0),
      .softwareInterrupt(1'b0),
      .externalInterruptArray(32'(pending)),
      .iBusWishbone_CYC(fetch_cycle),
      .iBusWishbone_STB(fetch_strobe),
      .iBusWishbone_ACK(fetched),
      .iBusWishbone_ADR(fetch_address),
      .iBusWishbone_DAT_MISO(fetch_data),
      .iBusWishbone_ERR(1'b0),
      .dBusWishbone_CYC(access_cycle),
      .dBusWishbone_STB(access_strobe),
      .dBusWishbone_ACK(accessed),
      .dBusWishbone_WE(write_enable),
      .dBusWishbone_ADR(access_address),
      .dBusWishbone_DAT_MISO(access_data),
      .dBusWishbone_DAT_MOSI(write_data),
      .dBusWishbone_SEL(write_bytes),
      .dBusWishbone_ERR(1'b0)
  );
endmodule

`default_nettype wire
