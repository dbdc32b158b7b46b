// SPDX-License-Identifier: MIT OR Apache-2.0
// LIMIT-SILICON-6 and -9: the accesses that the bus rejects. They are written a second time, from
// the register map, with literal numbers.
`default_nettype none

module bus #(
    parameter int SOURCES = 33,
    parameter int RATE_BITS = 24,
    parameter int BURST_BITS = 3,
    parameter int HELD_BITS = 4,
    parameter int READBACK = 1,
    parameter int ENABLES = 1,
    parameter int LIMITS = 1,
    parameter int OVERLOAD = 1,
    parameter int LOCK = 1
) (
    input wire psel_i,
    input wire penable_i,
    input wire pwrite_i,
    input wire [15:0] paddr_i,
    input wire [31:0] pwdata_i,
    input wire [3:0] pstrb_i,
    input wire reg_ready_i,
    input wire [31:0] reg_rdata_i,
    input wire reg_error_i
);
  wire pready, pslverr, reg_valid, reg_write;
  wire [31:0] prdata, reg_wdata;
  wire [2:0] reg_which;
  wire [9:0] reg_source;

  weir_limit_bus #(
      .SOURCES(SOURCES),
      .RATE_BITS(RATE_BITS),
      .BURST_BITS(BURST_BITS),
      .HELD_BITS(HELD_BITS),
      .READBACK(READBACK),
      .ENABLES(ENABLES),
      .LIMITS(LIMITS),
      .OVERLOAD(OVERLOAD),
      .LOCK(LOCK)
  ) dut (
      .psel_i,
      .penable_i,
      .pwrite_i,
      .paddr_i,
      .pwdata_i,
      .pstrb_i,
      .pready_o(pready),
      .prdata_o(prdata),
      .pslverr_o(pslverr),
      .tick_i(32'd1),
      .reg_valid_o(reg_valid),
      .reg_write_o(reg_write),
      .reg_which_o(reg_which),
      .reg_source_o(reg_source),
      .reg_wdata_o(reg_wdata),
      .reg_ready_i,
      .reg_rdata_i,
      .reg_error_i
  );

  wire access = psel_i && penable_i;
  wire of_source = paddr_i >= 16'h8000;
  wire [15:0] source = (paddr_i - 16'h8000) / 32;
  wire [4:0] offset = paddr_i[4:0];
  wire of_began = paddr_i >= 16'h0040 && paddr_i < 16'h0040 + 4 * ((SOURCES + 31) / 32);
  wire [15:0] first = (paddr_i - 16'h0040) * 8;
  // ENABLE, LIMIT, POLICY, NOTIFY, LOCK. Those that are built may be written. The others have fixed
  // values: ENABLE and LIMIT are 1.
  wire [31:0] built = (ENABLES != 0 ? 32'h1 : 0) | (LIMITS != 0 ? 32'h2 : 0) | (BURST_BITS != 0 ? 32'h4 : 0) | (OVERLOAD != 0 ? 32'h8 : 0) |
      (LOCK != 0 ? 32'h80000000 : 0);
  wire [31:0] fixed = (ENABLES == 0 ? 32'h1 : 0) | (LIMITS == 0 ? 32'h2 : 0);
  logic good;
  always_comb begin
    good = 1'b0;
    if (of_source) begin
      if (offset == 5'h00) good = pwrite_i ? (pwdata_i & ~built) == fixed : READBACK != 0;
      if (offset == 5'h04) good = pwrite_i ? pwdata_i != 0 && pwdata_i <= 32'hFFFFFFFF >> (32 - RATE_BITS) : READBACK != 0;
      if (offset == 5'h08) good = pwrite_i ? pwdata_i != 0 && (pwdata_i == 1 || pwdata_i < 2 ** BURST_BITS) : READBACK != 0;
      if (offset == 5'h0C) good = !pwrite_i && READBACK != 0;
      if (offset == 5'h10) good = HELD_BITS != 0;
      if (source >= SOURCES) good = 1'b0;
    end else if (of_began) begin
      good = OVERLOAD != 0;
      for (int i = 0; i < 32; i++) if (pwrite_i && pwdata_i[i] && first + i >= SOURCES) good = 1'b0;
    end else begin
      good = !pwrite_i && READBACK != 0 && paddr_i <= 16'h000C;
    end
    if (paddr_i[1:0] != 0 || (pwrite_i && pstrb_i != 4'b1111)) good = 1'b0;
  end

  always_comb begin
    p_error : assert (!(access && pready) || pslverr == (!good || (reg_valid && reg_error_i)));
    p_untouched : assert (!reg_valid || (access && good));
    p_passed :
    assert (!(access && good && (of_source || of_began)) ||
        (reg_valid && reg_write == pwrite_i && reg_wdata == pwdata_i && reg_which == (of_source ? offset[4:2] : 3'd5) &&
            reg_source == (of_source ? source : (paddr_i - 16'h0040) / 4)));
    p_read :
    assert (!(access && good && !pwrite_i) || (of_source || of_began ? prdata == reg_rdata_i :
        (paddr_i != 16'h0000 || prdata == 32'h57454901) && (paddr_i != 16'h000C || prdata == 32'd1)));
    p_nothing : assert ((access && good && !pwrite_i) || prdata == '0);
    p_ready : assert (!access || pready == (!reg_valid || reg_ready_i));

    c_error : cover (access && pready && pslverr && of_source && source == SOURCES && offset == 5'h04);
    c_untouched : cover (access && pwrite_i && pwdata_i == 2 ** RATE_BITS && offset == 5'h04 && of_source && source == 0 && pstrb_i == 4'b1111);
    c_passed : cover (reg_valid && pwrite_i && of_source && source == SOURCES - 1 && offset == 5'h04 && pwdata_i == 2 ** RATE_BITS - 1);
    c_read : cover (access && pready && good && !pwrite_i && of_source && prdata == '1);
    c_nothing : cover (access && pready && !good && reg_rdata_i == '1);
    c_ready : cover (access && pready && reg_valid);
  end
endmodule

`default_nettype wire
