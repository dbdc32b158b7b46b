// SPDX-License-Identifier: MIT OR Apache-2.0
// The APB4 interface. It decodes the address, answers reads of the parameters, and rejects every access that can be rejected without knowing the
// state of a source, so that nothing is ever truncated.
`default_nettype none

module weir_limit_bus #(
    parameter int SOURCES = 1,
    parameter int FORM = 0,
    parameter int PHASE_BITS = 24,
    parameter int RATE_BITS = 24,
    parameter int BURST_BITS = 0,
    parameter int HELD_BITS = 0,
    parameter int PULSE = 0,
    parameter int READBACK = 1,
    parameter int ENABLES = 1,
    parameter int LIMITS = 1,
    parameter int OVERLOAD = 1,
    parameter int LOCK = 1,
    parameter int MSI = 0,
    parameter int BYPASS = 1
) (
    input wire psel_i,
    input wire penable_i,
    input wire pwrite_i,
    input wire [15:0] paddr_i,
    input wire [31:0] pwdata_i,
    input wire [3:0] pstrb_i,
    output wire pready_o,
    output wire [31:0] prdata_o,
    output wire pslverr_o,
    // The connection to weir_limit_lines or weir_limit_scan.
    input wire [31:0] tick_i,
    output wire reg_valid_o,
    output wire reg_write_o,
    output logic [2:0] reg_which_o,
    output wire [9:0] reg_source_o,
    output wire [31:0] reg_wdata_o,
    input wire reg_ready_i,
    input wire [31:0] reg_rdata_i,
    input wire reg_error_i
);
  // Which registers exist, and may be read or written.
  localparam bit Shown = READBACK != 0;
  localparam bit Counts = HELD_BITS != 0;
  localparam bit Overloads = OVERLOAD != 0;
  // BEGAN has one bit per source.
  localparam int BeganWords = (SOURCES + 31) / 32;

  // Bits of CONTROL that this build does not have must be written with their fixed values.
  localparam logic [31:0] ControlVaries =
      (32'(ENABLES != 0) << weir_limit_map::ControlEnable) | (32'(LIMITS != 0) << weir_limit_map::ControlLimit) |
      (32'(BURST_BITS != 0) << weir_limit_map::ControlPolicy) | (32'(OVERLOAD != 0) << weir_limit_map::ControlNotify) |
      (32'(LOCK != 0) << weir_limit_map::ControlLock);
  localparam logic [31:0] ControlFixed = (32'(ENABLES == 0) << weir_limit_map::ControlEnable) | (32'(LIMITS == 0) << weir_limit_map::ControlLimit);

  localparam logic [31:0] Shape =
      (32'(SOURCES - 1) << weir_limit_map::ShapeLast) | (32'(FORM) << weir_limit_map::ShapeForm) |
      (32'(BURST_BITS != 0) << weir_limit_map::ShapeBursts) | (32'(PULSE) << weir_limit_map::ShapePulse) |
      (32'(ENABLES) << weir_limit_map::ShapeEnables) | (32'(LIMITS) << weir_limit_map::ShapeLimits) |
      (32'(OVERLOAD) << weir_limit_map::ShapeOverload) | (32'(LOCK) << weir_limit_map::ShapeLock) | (32'(MSI) << weir_limit_map::ShapeMsi) |
      (32'(BYPASS) << weir_limit_map::ShapeBypass);
  localparam logic [31:0] Widths =
      (32'(PHASE_BITS) << weir_limit_map::WidthsPhase) | (32'(RATE_BITS) << weir_limit_map::WidthsRate) |
      (32'(BURST_BITS) << weir_limit_map::WidthsBurst) | (32'(HELD_BITS) << weir_limit_map::WidthsHeld);

  wire access = psel_i && penable_i;
  wire of_source = paddr_i[weir_limit_map::SourceBit];
  wire [9:0] source = paddr_i[weir_limit_map::SourceBit-1:weir_limit_map::StrideBits];
  // Written so that no subtraction is needed if SOURCES is a power of two.
  wire beyond = (SOURCES & (SOURCES - 1)) == 0 ? (11'(source) >> $clog2(SOURCES)) != '0 : source > 10'(SOURCES - 1);
  wire [2:0] which = paddr_i[weir_limit_map::StrideBits-1:2];
  // The number of the word, for the registers below those of the sources.
  wire [12:0] word = paddr_i[weir_limit_map::SourceBit-1:2];
  wire whole = paddr_i[1:0] == '0 && (!pwrite_i || pstrb_i == '1);
  // The sources of a word of BEGAN.
  wire [4:0] began_word = 5'(word - weir_limit_map::WordBegan);
  wire [31:0] began_bits = began_word == 5'(BeganWords - 1) ? '1 >> (32 * BeganWords - SOURCES) : '1;
  logic fits, build;
  logic [31:0] build_rdata;

  // High if this address can be read, or written with this value.
  always_comb begin
    fits = 1'b0;
    build = 1'b0;
    build_rdata = '0;
    reg_which_o = which;
    if (of_source) begin
      case (which)
        weir_limit_map::RegControl: fits = pwrite_i ? (pwdata_i & ~ControlVaries) == ControlFixed : Shown;
        weir_limit_map::RegRate: fits = pwrite_i ? pwdata_i != '0 && {1'b0, pwdata_i} >> RATE_BITS == '0 : Shown;
        weir_limit_map::RegBurst: fits = pwrite_i ? (BURST_BITS == 0 ? pwdata_i == 32'd1 : pwdata_i != '0 && pwdata_i >> BURST_BITS == '0) : Shown;
        weir_limit_map::RegStatus: fits = !pwrite_i && Shown;
        weir_limit_map::RegHeld: fits = Counts;
        default: fits = 1'b0;
      endcase
      if (beyond) fits = 1'b0;
    end else if (word >= weir_limit_map::WordBegan && word < weir_limit_map::WordBegan + 13'(BeganWords)) begin
      reg_which_o = weir_limit_map::RegBegan;
      fits = Overloads && (!pwrite_i || (pwdata_i & ~began_bits) == '0);
    end else begin
      build = 1'b1;
      fits  = Shown && !pwrite_i;
      case (word)
        weir_limit_map::WordId: build_rdata = weir_limit_map::IdValue;
        weir_limit_map::WordShape: build_rdata = Shape;
        weir_limit_map::WordWidths: build_rdata = Widths;
        weir_limit_map::WordTick: build_rdata = tick_i;
        default: fits = 1'b0;
      endcase
    end
    if (!whole) fits = 1'b0;
  end

  assign reg_valid_o = access && fits && !build;
  assign reg_write_o = pwrite_i;
  assign reg_source_o = of_source ? source : 10'(began_word);
  assign reg_wdata_o = pwdata_i;

  assign pready_o = !reg_valid_o || reg_ready_i;
  assign pslverr_o = access && (!fits || (reg_valid_o && reg_ready_i && reg_error_i));
  assign prdata_o = !access || pwrite_i || !fits ? '0 : build ? build_rdata : reg_rdata_i;
endmodule

`default_nettype wire
