// SPDX-License-Identifier: MIT OR Apache-2.0
// Turns a delivery into a pulse, into a level that is held until it is acknowledged, or into a message.
`default_nettype none

module weir_limit_output #(
    parameter int SOURCES = 1,
    parameter logic [SOURCES-1:0] LEVEL = '0,
    // 1: a pulse of one clock per delivery; 0: a level that is held.
    parameter int PULSE = 0,
    // 1: each delivery is a source's number on the stream, and the lines are not used.
    parameter int MSI = 0,
    parameter int BYPASS = 1,
    parameter int RESET = 1
) (
    input wire clk_i,
    input wire rst_ni,
    input wire [SOURCES-1:0] deliver_i,
    input wire [SOURCES-1:0] enable_i,
    // The lines, synchronised and not synchronised.
    input wire [SOURCES-1:0] level_i,
    input wire [SOURCES-1:0] raw_i,
    input wire [SOURCES-1:0] ack_i,
    // The bypass is combinational, so that it works while the clock is stopped.
    input wire bypass_i,
    // High for a source that cannot have another delivery yet.
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
    // A delivery cannot be acknowledged in its own clock, because nobody has seen it yet.
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
