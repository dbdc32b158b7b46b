// SPDX-License-Identifier: MIT OR Apache-2.0
// The register form, in which each source has its own limiter. weir_limit_scan, the memory form, has the same parameters and ports.
`default_nettype none

module weir_limit_lines #(
    parameter int SOURCES = 1,
    parameter int PHASE_BITS = 24,
    parameter int RATE_BITS = 24,
    parameter int BURST_BITS = 0,
    parameter int HELD_BITS = 0,
    parameter logic [SOURCES-1:0] LEVEL = '0,
    parameter int RESET = 1,
    parameter int READBACK = 1,
    parameter int ENABLES = 1,
    parameter int LIMITS = 1,
    parameter int OVERLOAD = 1,
    parameter int LOCK = 1,
    parameter int MSI = 0,
    localparam int BurstBits = BURST_BITS == 0 ? 1 : BURST_BITS,
    // The register values after reset, with source 0 in the lowest bits.
    parameter logic [SOURCES*RATE_BITS-1:0] RATE_RESET = {SOURCES{RATE_BITS'(1)}},
    parameter logic [SOURCES*BurstBits-1:0] BURST_RESET = {SOURCES{BurstBits'(1)}},
    parameter logic [SOURCES-1:0] ENABLE_RESET = '0,
    parameter logic [SOURCES-1:0] LIMIT_RESET = '0,
    parameter logic [SOURCES-1:0] POLICY_RESET = '0
) (
    input wire clk_i,
    input wire rst_ni,
    // The synchronised lines, and their rising edges.
    input wire [SOURCES-1:0] level_i,
    input wire [SOURCES-1:0] edge_i,
    // A message counts as an edge of the source with its number, and is always accepted. A number of no source, or of a LEVEL source, has no effect.
    input wire msi_valid_i,
    input wire [9:0] msi_number_i,
    // High while the output still holds the last delivery, so that there must not be another one.
    input wire [SOURCES-1:0] held_i,
    // High for one clock per delivery.
    output wire [SOURCES-1:0] deliver_o,
    // The user's enable bits, which the outputs need.
    output wire [SOURCES-1:0] enable_o,
    output wire overload_irq_o,
    // The number of clocks per tick, in which a phase grows once.
    output wire [31:0] tick_o,
    // An access. All inputs are stable until reg_ready_o. The bus has rejected what can be rejected without a source's state.
    input wire reg_valid_i,
    input wire reg_write_i,
    input wire [2:0] reg_which_i,
    // The number of the source, or for BEGAN the number of the word.
    input wire [9:0] reg_source_i,
    input wire [31:0] reg_wdata_i,
    // High in the clock in which the access takes effect, or, with reg_error_o, is rejected because the source is locked.
    output wire reg_ready_o,
    output wire [31:0] reg_rdata_o,
    output wire reg_error_o
);
  wire [SOURCES*32-1:0] rdata;
  wire [SOURCES-1:0] refuses, begins, notify;
  wire [1023:0] began_words;

  for (genvar s = 0; s < SOURCES; s++) begin : g_line
    wire selected = reg_valid_i && reg_source_i == 10'(s) && reg_which_i != weir_limit_map::RegBegan;
    wire message = MSI != 0 && msi_valid_i && msi_number_i == 10'(s);
    wire [31:0] rdata_line;
    weir_limit_line #(
        .PHASE_BITS(PHASE_BITS),
        .RATE_BITS(RATE_BITS),
        .BURST_BITS(BURST_BITS),
        .HELD_BITS(HELD_BITS),
        .LEVEL(LEVEL[s]),
        .RESET(RESET),
        .READBACK(READBACK),
        .ENABLES(ENABLES),
        .LIMITS(LIMITS),
        .OVERLOAD(OVERLOAD),
        .LOCK(LOCK),
        .RATE_RESET(RATE_RESET[s*RATE_BITS+:RATE_BITS]),
        .BURST_RESET(BURST_RESET[s*BurstBits+:BurstBits]),
        .ENABLE_RESET(ENABLE_RESET[s]),
        .LIMIT_RESET(LIMIT_RESET[s]),
        .POLICY_RESET(POLICY_RESET[s])
    ) u_line (
        .clk_i,
        .rst_ni,
        .level_i(level_i[s]),
        .edge_i(edge_i[s]),
        .request_i(edge_i[s] || message),
        .held_i(held_i[s]),
        .deliver_o(deliver_o[s]),
        .enable_o(enable_o[s]),
        .begins_o(begins[s]),
        .notify_o(notify[s]),
        .which_i(reg_which_i),
        .write_i(selected && reg_write_i),
        .wdata_i(reg_wdata_i),
        .rdata_o(rdata_line),
        .refuses_o(refuses[s])
    );
    assign rdata[s*32+:32] = selected ? rdata_line : '0;
  end

  if (OVERLOAD != 0) begin : g_began
    wire [SOURCES-1:0] began;
    wire clears = reg_valid_i && reg_write_i && reg_which_i == weir_limit_map::RegBegan;
    wire [1023:0] clear = 1024'(clears ? reg_wdata_i : '0) << {reg_source_i[4:0], 5'd0};
    weir_limit_ff #(
        .WIDTH(SOURCES),
        .RESET(RESET)
    ) u_began (
        .clk_i,
        .rst_ni,
        .d_i(begins | (began & ~clear[SOURCES-1:0])),
        .q_o(began)
    );
    assign overload_irq_o = |(began & notify);
    assign began_words = 1024'(began);
    wire unused = &{1'b0, clear};
  end else begin : g_no_began
    assign overload_irq_o = 1'b0;
    assign began_words = '0;
    wire unused = &{1'b0, begins, notify};
  end

  // Lines that are not selected read as 0.
  wire [31:0] began_word = 32'(began_words >> {reg_source_i[4:0], 5'd0});
  for (genvar bit_number = 0; bit_number < 32; bit_number++) begin : g_rdata
    wire [SOURCES-1:0] column;
    for (genvar s = 0; s < SOURCES; s++) begin : g_column
      assign column[s] = rdata[s*32+bit_number];
    end
    assign reg_rdata_o[bit_number] = |column || (OVERLOAD != 0 && reg_which_i == weir_limit_map::RegBegan && began_word[bit_number]);
  end
  assign reg_ready_o = reg_valid_i;
  assign reg_error_o = |refuses;
  assign tick_o = 32'd1;
  wire unused = &{1'b0, msi_valid_i, msi_number_i, began_words};
endmodule

`default_nettype wire
