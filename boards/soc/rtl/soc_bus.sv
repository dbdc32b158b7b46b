// SPDX-License-Identifier: MIT OR Apache-2.0
// Connects both buses of the processor to the devices, and decodes addresses.
//
// An access takes two clocks. In the first it is carried out; in the second it is acknowledged and
// read data is valid. The limiter, an APB device, takes one clock more for its set-up phase. An
// access to no device reads 0 and is an error. An access that its device rejects, or that covers a
// part of a register, is an error, too. A fetch from outside the RAM returns 0, which is an illegal
// instruction.
`default_nettype none

module soc_bus #(
    parameter int RAM_WORDS = 16384
) (
    input wire clk_i,
    input wire rst_ni,

    input wire ibus_request_i,
    input wire [29:0] ibus_address_i,
    output logic ibus_ack_o,
    output logic [31:0] ibus_data_o,
    input wire dbus_request_i,
    input wire dbus_write_i,
    input wire [29:0] dbus_address_i,
    input wire [3:0] dbus_select_i,
    output logic dbus_ack_o,
    output logic [31:0] dbus_data_o,

    output logic ram_fetch_o,
    input wire [31:0] ram_instruction_i,
    output logic ram_access_o,
    input wire [31:0] ram_rdata_i,
    output logic uart_access_o,
    // Each access signal is high for one clock, and read data is valid in the same clock.
    output logic timer_access_o,
    input wire [31:0] timer_rdata_i,
    input wire timer_error_i,
    output logic interrupts_access_o,
    input wire [31:0] interrupts_rdata_i,
    input wire interrupts_error_i,
    output logic events_access_o,
    input wire [31:0] events_rdata_i,
    input wire events_error_i,
    output logic system_access_o,
    input wire [31:0] system_rdata_i,
    input wire system_error_i,
    // PSEL and PENABLE.
    output logic limit_access_o,
    output logic limit_enable_o,
    input wire limit_ready_i,
    input wire [31:0] limit_rdata_i,
    input wire limit_error_i,

    output logic error_o,
    output logic [31:0] error_address_o,
    output logic error_write_o
);
  localparam logic [29:0] RamWords = 30'(RAM_WORDS);

  // --------------------------------------------------------------------------------------------- instructions

  logic fetch_hits, fetched_hits;
  assign fetch_hits  = ibus_address_i < RamWords;
  assign ram_fetch_o = ibus_request_i && !ibus_ack_o && fetch_hits;
  assign ibus_data_o = fetched_hits ? ram_instruction_i : '0;

  always_ff @(posedge clk_i) begin
    ibus_ack_o   <= rst_ni && ibus_request_i && !ibus_ack_o;
    fetched_hits <= fetch_hits;
  end

  // --------------------------------------------------------------------------------------------- data

  // High in the clock in which the access is carried out. For the limiter it is this clock or the
  // next one.
  logic begins, whole, is_ram, is_limit, registers, refused, done;
  logic [15:0] page;
  logic [31:0] rdata, rdata_kept;
  logic was_ram;

  assign begins = dbus_request_i && !dbus_ack_o;
  assign whole = dbus_select_i == 4'b1111;
  assign page = dbus_address_i[29:14];

  assign is_ram = dbus_address_i < RamWords;
  assign is_limit = page == 16'h1100;
  // Registers have no parts smaller than a word. The limiter checks this itself, and the UART needs
  // only the byte of its character.
  assign registers = begins && whole;

  assign ram_access_o = begins && is_ram;
  assign uart_access_o = begins && dbus_address_i == 30'h0400_0000 && dbus_select_i[0];
  assign timer_access_o = registers && page == 16'h1001;
  assign interrupts_access_o = registers && page == 16'h1002;
  assign events_access_o = registers && page == 16'h1003;
  assign system_access_o = registers && page == 16'h1fff;
  assign limit_access_o = begins && is_limit;

  always_comb begin
    rdata   = '0;
    refused = 1'b1;
    if (ram_access_o || uart_access_o) begin
      refused = 1'b0;
    end else if (timer_access_o) begin
      rdata   = timer_rdata_i;
      refused = timer_error_i;
    end else if (interrupts_access_o) begin
      rdata   = interrupts_rdata_i;
      refused = interrupts_error_i;
    end else if (events_access_o) begin
      rdata   = events_rdata_i;
      refused = events_error_i;
    end else if (system_access_o) begin
      rdata   = system_rdata_i;
      refused = system_error_i;
    end else if (limit_access_o) begin
      rdata   = limit_rdata_i;
      refused = limit_error_i;
    end
  end

  assign done = begins && (!is_limit || (limit_enable_o && limit_ready_i));
  assign error_o = done && refused;
  assign error_address_o = {dbus_address_i, 2'b00};
  assign error_write_o = dbus_write_i;
  assign dbus_data_o = was_ram ? ram_rdata_i : rdata_kept;

  always_ff @(posedge clk_i) begin
    dbus_ack_o <= rst_ni && done;
    limit_enable_o <= rst_ni && limit_access_o && !done;
    was_ram <= is_ram;
    rdata_kept <= refused ? '0 : rdata;
  end
endmodule

`default_nettype wire
