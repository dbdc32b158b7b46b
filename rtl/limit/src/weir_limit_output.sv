// SPDX-License-Identifier: MIT OR Apache-2.0
// What becomes of a delivery: a pulse, a level that is held until it is acknowledged, or a message.
`default_nettype none

module weir_limit_output #(
    parameter int SOURCES = 1,
    parameter logic [SOURCES-1:0] LEVEL = '0,
    // 1: one clock per delivery; 0: held.
    parameter int PULSE = 0,
    // 1: each delivery is a number on the stream, and no line.
    parameter int MSI = 0,
    parameter int BYPASS = 1,
    parameter int RESET = 1
) (
    input wire clk_i,
    input wire rst_ni,
    input wire [SOURCES-1:0] deliver_i,
    input wire [SOURCES-1:0] enable_i,
    // Synchronised, and as they come.
    input wire [SOURCES-1:0] level_i,
    input wire [SOURCES-1:0] raw_i,
    input wire [SOURCES-1:0] ack_i,
    // Combinational, so that it works while the clock stands.
    input wire bypass_i,
    // There must be no other delivery yet.
    output wire [SOURCES-1:0] held_o,
    output wire [SOURCES-1:0] irq_o,
    output wire msi_valid_o,
    output wire [9:0] msi_number_o,
    input wire msi_ready_i
);
  wire [SOURCES-1:0] delivered, taken;

  if (PULSE != 0 && MSI == 0) begin : g_pulse
    assign held_o = '0;
    assign delivered = deliver_i;
    wire unused = &{1'b0, clk_i, rst_ni, level_i, ack_i};
  end else begin : g_held
    wire [SOURCES-1:0] held, release_held;
    // A delivery cannot be released in its own clock: nobody has seen it.
    weir_limit_ff #(
        .WIDTH(SOURCES),
        .RESET(RESET)
    ) u_held (
        .clk_i,
        .rst_ni,
        .d_i(deliver_i | (held & ~release_held)),
        .q_o(held)
    );
    assign held_o = held;
    if (MSI != 0) begin : g_message
      assign delivered = '0;
      assign release_held = taken;
      wire unused = &{1'b0, level_i, ack_i};
    end else begin : g_line
      assign delivered = held & enable_i;
      assign release_held = ack_i | (LEVEL & ~level_i);
    end
  end

  if (MSI != 0) begin : g_msi
    weir_limit_msi #(
        .SOURCES(SOURCES),
        .RESET  (RESET)
    ) u_msi (
        .clk_i,
        .rst_ni,
        .waiting_i(held_o & enable_i),
        .taken_o  (taken),
        .msi_valid_o,
        .msi_number_o,
        .msi_ready_i
    );
  end else begin : g_no_msi
    assign taken = '0;
    assign msi_valid_o = 1'b0;
    assign msi_number_o = '0;
    wire unused = &{1'b0, taken, msi_ready_i};
  end

  if (BYPASS != 0) begin : g_bypass
    assign irq_o = delivered | ({SOURCES{bypass_i}} & raw_i & enable_i);
  end else begin : g_no_bypass
    assign irq_o = delivered;
    wire unused = &{1'b0, bypass_i, raw_i, enable_i};
  end
endmodule

`default_nettype wire
