// SPDX-License-Identifier: MIT OR Apache-2.0
// The board: a small RISC-V system with rtl/limit between its event wires and its interrupt
// controller. The README has the memory map.
`default_nettype none

module soc #(
    parameter int LINES = 8,
    parameter int RAM_WORDS = 16384
) (
    input wire clk_i,
    // The reset at power-up. The firmware resets everything except the RAM through the register
    // RESET.
    input wire rst_ni,
    // The wires into the event devices, which see them from the next clock on. A rising edge is an
    // event.
    input wire [LINES-1:0] wires_i,
    // The value of the register CLOCK_HZ, for the firmware.
    input wire [31:0] clock_hz_i,
    output logic uart_valid_o,
    output logic [7:0] uart_data_o,
    output logic exit_valid_o,
    output logic [31:0] exit_code_o,
    // High for one clock if an access went to no device, or its device rejected it.
    output logic error_o,
    output logic [31:0] error_address_o,
    output logic error_write_o,
    // High for one clock when the firmware resets the system. The reset itself comes in the next
    // clock.
    output logic reset_o,
    // What happens to the lines' requests: raised at the limiter's input, passed by the limiter, or
    // merged with one already pending in the interrupt controller.
    output logic [LINES-1:0] request_o,
    output logic [LINES-1:0] delivered_o,
    output logic [LINES-1:0] merged_o
);
  // The interrupt controller's further lines, after those of the event wires.
  localparam int OverloadLine = LINES;
  localparam int ErrorLine = LINES + 1;

  logic rst_n;

  // No output depends combinationally on an input: there is always a register in between.
  logic [LINES-1:0] wires;
  logic [31:0] clock_hz;
  always_ff @(posedge clk_i) begin
    wires <= wires_i;
    clock_hz <= clock_hz_i;
  end

  // ------------------------------------------------------------------------------ the processor

  logic ibus_request, ibus_ack;
  logic [29:0] ibus_address;
  logic [31:0] ibus_data;
  logic dbus_request, dbus_ack, dbus_write;
  logic [29:0] dbus_address;
  logic [31:0] dbus_wdata, dbus_rdata;
  logic [3:0] dbus_select;
  logic timer_interrupt, software_interrupt;
  logic [31:0] interrupts;

  VexRiscv u_cpu (
      .clk(clk_i),
      .reset(!rst_n),
      .externalResetVector(32'h0),
      .timerInterrupt(timer_interrupt),
      .softwareInterrupt(software_interrupt),
      .externalInterruptArray(interrupts),
      .iBusWishbone_CYC(),
      .iBusWishbone_STB(ibus_request),
      .iBusWishbone_ACK(ibus_ack),
      .iBusWishbone_WE(),
      .iBusWishbone_ADR(ibus_address),
      .iBusWishbone_DAT_MISO(ibus_data),
      .iBusWishbone_DAT_MOSI(),
      .iBusWishbone_SEL(),
      .iBusWishbone_ERR(1'b0),
      .iBusWishbone_CTI(),
      .iBusWishbone_BTE(),
      .dBusWishbone_CYC(),
      .dBusWishbone_STB(dbus_request),
      .dBusWishbone_ACK(dbus_ack),
      .dBusWishbone_WE(dbus_write),
      .dBusWishbone_ADR(dbus_address),
      .dBusWishbone_DAT_MISO(dbus_rdata),
      .dBusWishbone_DAT_MOSI(dbus_wdata),
      .dBusWishbone_SEL(dbus_select),
      // This processor ignores bus errors. The register ERRORS counts them.
      .dBusWishbone_ERR(1'b0),
      .dBusWishbone_CTI(),
      .dBusWishbone_BTE()
  );

  // ----------------------------------------------------------------------- memory and registers

  logic ram_access, ram_fetch;
  logic [31:0] ram_rdata, ram_instruction;
  logic timer_access, interrupts_access, events_access, system_access, uart_access, limit_access;
  logic timer_error, interrupts_error, events_error, system_error, limit_error;
  logic [31:0] timer_rdata, interrupts_rdata, events_rdata, system_rdata, limit_rdata;
  logic limit_enable, limit_ready;

  soc_bus #(
      .RAM_WORDS(RAM_WORDS)
  ) u_bus (
      .clk_i,
      .rst_ni(rst_n),
      .ibus_request_i(ibus_request),
      .ibus_address_i(ibus_address),
      .ibus_ack_o(ibus_ack),
      .ibus_data_o(ibus_data),
      .dbus_request_i(dbus_request),
      .dbus_write_i(dbus_write),
      .dbus_address_i(dbus_address),
      .dbus_select_i(dbus_select),
      .dbus_ack_o(dbus_ack),
      .dbus_data_o(dbus_rdata),
      .ram_fetch_o(ram_fetch),
      .ram_instruction_i(ram_instruction),
      .ram_access_o(ram_access),
      .ram_rdata_i(ram_rdata),
      .uart_access_o(uart_access),
      .timer_access_o(timer_access),
      .timer_rdata_i(timer_rdata),
      .timer_error_i(timer_error),
      .interrupts_access_o(interrupts_access),
      .interrupts_rdata_i(interrupts_rdata),
      .interrupts_error_i(interrupts_error),
      .events_access_o(events_access),
      .events_rdata_i(events_rdata),
      .events_error_i(events_error),
      .system_access_o(system_access),
      .system_rdata_i(system_rdata),
      .system_error_i(system_error),
      .limit_access_o(limit_access),
      .limit_enable_o(limit_enable),
      .limit_ready_i(limit_ready),
      .limit_rdata_i(limit_rdata),
      .limit_error_i(limit_error),
      .error_o,
      .error_address_o,
      .error_write_o
  );

  soc_ram #(
      .WORDS(RAM_WORDS)
  ) u_ram (
      .clk_i,
      .fetch_i(ram_fetch),
      .fetch_address_i(ibus_address[$clog2(RAM_WORDS)-1:0]),
      .instruction_o(ram_instruction),
      .access_i(ram_access),
      .write_i(dbus_write),
      .select_i(dbus_select),
      .address_i(dbus_address[$clog2(RAM_WORDS)-1:0]),
      .wdata_i(dbus_wdata),
      .rdata_o(ram_rdata)
  );

  soc_timer u_timer (
      .clk_i,
      .rst_ni(rst_n),
      .access_i(timer_access),
      .write_i(dbus_write),
      .address_i({dbus_address[13:0], 2'b00}),
      .wdata_i(dbus_wdata),
      .rdata_o(timer_rdata),
      .error_o(timer_error),
      .timer_interrupt_o(timer_interrupt),
      .software_interrupt_o(software_interrupt)
  );

  soc_system #(
      .LINES(LINES)
  ) u_system (
      .clk_i,
      .power_ni(rst_ni),
      .rst_no(rst_n),
      .clock_hz_i(clock_hz),
      .access_i(system_access),
      .write_i(dbus_write),
      .address_i({dbus_address[13:0], 2'b00}),
      .wdata_i(dbus_wdata),
      .rdata_o(system_rdata),
      .refused_o(system_error),
      .error_i(error_o),
      .error_address_i(error_address_o[31:2]),
      .error_write_i(error_write_o),
      .exit_valid_o,
      .exit_code_o,
      .reset_o
  );

  // A write to this address sends a character at once.
  assign uart_valid_o = uart_access && dbus_write;
  assign uart_data_o  = dbus_wdata[7:0];

  // -------------------------------------------------------------------- the way of an interrupt

  logic [31:0] raised, merged;
  logic overload;

  soc_events #(
      .LINES(LINES)
  ) u_events (
      .clk_i,
      .rst_ni(rst_n),
      .wires_i(wires),
      .access_i(events_access),
      .write_i(dbus_write),
      .address_i({dbus_address[13:0], 2'b00}),
      .wdata_i(dbus_wdata),
      .rdata_o(events_rdata),
      .error_o(events_error),
      .request_o
  );

  // Firmware with limits and firmware without limits have the same interrupt path of the same
  // length, because the limiter passes every request after a reset.
  weir_limit #(
      .SOURCES(LINES),
      .PHASE_BITS(32),
      .RATE_BITS(32),
      .BURST_BITS(8),
      .HELD_BITS(16),
      .SYNC(2),
      .RESET(1),
      .PULSE(1),
      .BYPASS(0),
      .ENABLE_RESET('1)
  ) u_limit (
      .clk_i,
      .rst_ni(rst_n),
      .psel_i(limit_access),
      .penable_i(limit_enable),
      .pwrite_i(dbus_write),
      .paddr_i({dbus_address[13:0], 2'b00}),
      .pwdata_i(dbus_wdata),
      .pstrb_i(dbus_write ? dbus_select : 4'b0000),
      .pready_o(limit_ready),
      .prdata_o(limit_rdata),
      .pslverr_o(limit_error),
      .irq_i(request_o),
      .ack_i('0),
      .irq_o(delivered_o),
      .msi_valid_i(1'b0),
      .msi_number_i('0),
      .msi_ready_o(),
      .msi_valid_o(),
      .msi_number_o(),
      .msi_ready_i(1'b0),
      .bypass_i(1'b0),
      .overload_irq_o(overload)
  );

  always_comb begin
    raised = '0;
    raised[LINES-1:0] = delivered_o;
    raised[OverloadLine] = overload;
    raised[ErrorLine] = error_o;
  end
  assign merged_o = merged[LINES-1:0];
  wire unused_merged = &{1'b0, merged[31:LINES]};

  soc_interrupts u_interrupts (
      .clk_i,
      .rst_ni(rst_n),
      .raised_i(raised),
      .access_i(interrupts_access),
      .write_i(dbus_write),
      .address_i({dbus_address[13:0], 2'b00}),
      .wdata_i(dbus_wdata),
      .rdata_o(interrupts_rdata),
      .error_o(interrupts_error),
      .merged_o(merged),
      .interrupts_o(interrupts)
  );
endmodule

`default_nettype wire
