// SPDX-License-Identifier: MIT OR Apache-2.0
// Weir's limiter in silicon. It stands between interrupt sources and the interrupt controller, and lets each source through at most as often as its
// limit allows, whatever the source does (regehr2005 §3.4, §8). README.md is the manual; core/CONTRACTS.md numbers the promises as LIMIT-SILICON-*.
`default_nettype none

module weir_limit #(
    // The number of sources, 1 to 1024.
    parameter int SOURCES = 1,
    // 0: each source has registers, and a tick is a clock. 1: the state is in memory that is scanned, and a tick is a scan.
    parameter int FORM = 0,
    // An interval is ceil(2**PHASE_BITS / RATE) ticks. PHASE_BITS is 1 to 32. RATE is a register of RATE_BITS <= PHASE_BITS.
    parameter int PHASE_BITS = 24,
    parameter int RATE_BITS = 24,
    // 0: strict only. 1 to 8: also bucket and bursty, with bursts of up to 2**BURST_BITS - 1.
    parameter int BURST_BITS = 0,
    // The width of the counter of requests that were held back, 0 to 16.
    parameter int HELD_BITS = 0,
    // For each source: 1: it requests as long as its line is high; 0: it requests by a rising edge.
    parameter logic [SOURCES-1:0] LEVEL = '0,
    // The number of synchroniser flip-flops: 0 (the lines belong to this clock), 2 or 3.
    parameter int SYNC = 2,
    // 0: no reset, but values at power-up (FPGAs); 1: synchronous; 2: asynchronous. The reset is active low.
    parameter int RESET = 1,
    // 1: irq_o is high for one clock per delivery; 0: it is high until ack_i.
    parameter int PULSE = 0,
    // A feature that is 0 costs no gate: reading what software wrote, the user's enable bits, the bits that switch limits off, overload detection,
    // and locks. MSI = 1 adds messages, and BYPASS = 1 adds the bypass.
    parameter int READBACK = 1,
    parameter int ENABLES = 1,
    parameter int LIMITS = 1,
    parameter int OVERLOAD = 1,
    parameter int LOCK = 1,
    parameter int MSI = 0,
    parameter int BYPASS = 1,
    localparam int BurstBits = BURST_BITS == 0 ? 1 : BURST_BITS,
    // The registers after reset, source 0 in the lowest bits. If RATE_RESET is 0, nothing passes before RATE is written, unless LIMIT is off.
    parameter logic [SOURCES*RATE_BITS-1:0] RATE_RESET = {SOURCES{RATE_BITS'(1)}},
    parameter logic [SOURCES*BurstBits-1:0] BURST_RESET = {SOURCES{BurstBits'(1)}},
    parameter logic [SOURCES-1:0] ENABLE_RESET = '0,
    parameter logic [SOURCES-1:0] LIMIT_RESET = '0,
    parameter logic [SOURCES-1:0] POLICY_RESET = '0
) (
    input wire clk_i,
    input wire rst_ni,
    // The APB4 bus.
    input wire psel_i,
    input wire penable_i,
    input wire pwrite_i,
    input wire [15:0] paddr_i,
    input wire [31:0] pwdata_i,
    input wire [3:0] pstrb_i,
    output wire pready_o,
    output wire [31:0] prdata_o,
    output wire pslverr_o,
    // The lines from the sources, and to the interrupt controller. ack_i is the controller's claim or completion, for one clock.
    input wire [SOURCES-1:0] irq_i,
    input wire [SOURCES-1:0] ack_i,
    output wire [SOURCES-1:0] irq_o,
    // Requests and deliveries as messages, which are numbers of sources.
    input wire msi_valid_i,
    input wire [9:0] msi_number_i,
    output wire msi_ready_o,
    output wire msi_valid_o,
    output wire [9:0] msi_number_o,
    input wire msi_ready_i,
    // 1: irq_i of the enabled sources goes to irq_o combinationally.
    input wire bypass_i,
    // High if an overload has begun at a source with NOTIFY.
    output wire overload_irq_o
);
  // Every tool stops at a module that does not exist.
  localparam bit Fits = SOURCES >= 1 && SOURCES <= 1024 && PHASE_BITS >= 1 && PHASE_BITS <= 32 && RATE_BITS >= 1 && RATE_BITS <= PHASE_BITS;
  localparam bit FitsToo = BURST_BITS >= 0 && BURST_BITS <= 8 && HELD_BITS >= 0 && HELD_BITS <= 16 && SYNC != 1 && SYNC >= 0 && SYNC <= 3;
  if (!Fits || !FitsToo) begin : g_wrong
    weir_limit_parameter_out_of_range u_wrong ();
  end

  wire [SOURCES-1:0] level, rises, held, deliver, enable;
  wire reg_valid, reg_write, reg_ready, reg_error;
  wire [2:0] reg_which;
  wire [9:0] reg_source;
  wire [31:0] reg_wdata, reg_rdata, tick;

  weir_limit_sync #(
      .WIDTH(SOURCES),
      .SYNC (SYNC),
      .RESET(RESET)
  ) u_sync (
      .clk_i,
      .rst_ni,
      .line_i (irq_i),
      .level_o(level),
      .edge_o (rises)
  );

  weir_limit_bus #(
      .SOURCES(SOURCES),
      .FORM(FORM),
      .PHASE_BITS(PHASE_BITS),
      .RATE_BITS(RATE_BITS),
      .BURST_BITS(BURST_BITS),
      .HELD_BITS(HELD_BITS),
      .PULSE(PULSE),
      .READBACK(READBACK),
      .ENABLES(ENABLES),
      .LIMITS(LIMITS),
      .OVERLOAD(OVERLOAD),
      .LOCK(LOCK),
      .MSI(MSI),
      .BYPASS(BYPASS)
  ) u_bus (
      .psel_i,
      .penable_i,
      .pwrite_i,
      .paddr_i,
      .pwdata_i,
      .pstrb_i,
      .pready_o,
      .prdata_o,
      .pslverr_o,
      .tick_i(tick),
      .reg_valid_o(reg_valid),
      .reg_write_o(reg_write),
      .reg_which_o(reg_which),
      .reg_source_o(reg_source),
      .reg_wdata_o(reg_wdata),
      .reg_ready_i(reg_ready),
      .reg_rdata_i(reg_rdata),
      .reg_error_i(reg_error)
  );

  if (FORM == 0) begin : g_registers
    weir_limit_lines #(
        .SOURCES(SOURCES),
        .PHASE_BITS(PHASE_BITS),
        .RATE_BITS(RATE_BITS),
        .BURST_BITS(BURST_BITS),
        .HELD_BITS(HELD_BITS),
        .LEVEL(LEVEL),
        .RESET(RESET),
        .READBACK(READBACK),
        .ENABLES(ENABLES),
        .LIMITS(LIMITS),
        .OVERLOAD(OVERLOAD),
        .LOCK(LOCK),
        .MSI(MSI),
        .RATE_RESET(RATE_RESET),
        .BURST_RESET(BURST_RESET),
        .ENABLE_RESET(ENABLE_RESET),
        .LIMIT_RESET(LIMIT_RESET),
        .POLICY_RESET(POLICY_RESET)
    ) u_array (
        .clk_i,
        .rst_ni,
        .level_i(level),
        .edge_i(rises),
        .msi_valid_i,
        .msi_number_i,
        .held_i(held),
        .deliver_o(deliver),
        .enable_o(enable),
        .overload_irq_o,
        .tick_o(tick),
        .reg_valid_i(reg_valid),
        .reg_write_i(reg_write),
        .reg_which_i(reg_which),
        .reg_source_i(reg_source),
        .reg_wdata_i(reg_wdata),
        .reg_ready_o(reg_ready),
        .reg_rdata_o(reg_rdata),
        .reg_error_o(reg_error)
    );
  end else begin : g_memory
    weir_limit_scan #(
        .SOURCES(SOURCES),
        .PHASE_BITS(PHASE_BITS),
        .RATE_BITS(RATE_BITS),
        .BURST_BITS(BURST_BITS),
        .HELD_BITS(HELD_BITS),
        .LEVEL(LEVEL),
        .RESET(RESET),
        .READBACK(READBACK),
        .ENABLES(ENABLES),
        .LIMITS(LIMITS),
        .OVERLOAD(OVERLOAD),
        .LOCK(LOCK),
        .MSI(MSI),
        .RATE_RESET(RATE_RESET),
        .BURST_RESET(BURST_RESET),
        .ENABLE_RESET(ENABLE_RESET),
        .LIMIT_RESET(LIMIT_RESET),
        .POLICY_RESET(POLICY_RESET)
    ) u_array (
        .clk_i,
        .rst_ni,
        .level_i(level),
        .edge_i(rises),
        .msi_valid_i,
        .msi_number_i,
        .held_i(held),
        .deliver_o(deliver),
        .enable_o(enable),
        .overload_irq_o,
        .tick_o(tick),
        .reg_valid_i(reg_valid),
        .reg_write_i(reg_write),
        .reg_which_i(reg_which),
        .reg_source_i(reg_source),
        .reg_wdata_i(reg_wdata),
        .reg_ready_o(reg_ready),
        .reg_rdata_o(reg_rdata),
        .reg_error_o(reg_error)
    );
  end

  assign msi_ready_o = 1'b1;
  weir_limit_output #(
      .SOURCES(SOURCES),
      .LEVEL(LEVEL),
      .PULSE(PULSE),
      .MSI(MSI),
      .BYPASS(BYPASS),
      .RESET(RESET)
  ) u_output (
      .clk_i,
      .rst_ni,
      .deliver_i(deliver),
      .enable_i(enable),
      .level_i(level),
      .raw_i(irq_i),
      .ack_i,
      .bypass_i,
      .held_o(held),
      .irq_o,
      .msi_valid_o,
      .msi_number_o,
      .msi_ready_i
  );
endmodule

`default_nettype wire
