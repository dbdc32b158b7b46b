// SPDX-License-Identifier: MIT OR Apache-2.0
// The event devices, one per wire: each rising edge of the wire is an event, which waits until it is popped; so is a
// wire that is high when a reset ends. Per device, 32 bytes apart:
//
//   +0x00 COUNT: events that wait, at most 65535 (more are lost)     +0x04 POP: a write takes one, if there is one
//   +0x08 CONTROL: bit 0 QUEUE                                       +0x0C WIRE: the wire's level (bit 0)
//
// QUEUE = 0 (reset): the wire itself is the request, so an edge asks once, when it comes.
// QUEUE = 1: the device asks while events wait, and anew after each pop, so that a handler that pops one event is called for every one.
`default_nettype none

module soc_events #(
    parameter int LINES = 8
) (
    input wire clk_i,
    input wire rst_ni,
    input wire [LINES-1:0] wires_i,
    input wire access_i,
    input wire write_i,
    input wire [15:0] address_i,
    input wire [31:0] wdata_i,
    output logic [31:0] rdata_o,
    output logic error_o,
    output wire [LINES-1:0] request_o
);
  logic [15:0] counts[LINES];
  logic [LINES-1:0] queues, wires_before, asks, pops;

  logic hits;
  logic [$clog2(LINES)-1:0] line;
  assign hits = address_i[15:5] < 11'(LINES);
  assign line = address_i[5+:$clog2(LINES)];

  always_comb begin
    rdata_o = '0;
    unique case (address_i[4:0])
      5'h00:   rdata_o = {16'h0, counts[line]};
      5'h08:   rdata_o = {31'h0, queues[line]};
      5'h0c:   rdata_o = {31'h0, wires_i[line]};
      default: ;
    endcase
    unique case (address_i[4:0])
      5'h00, 5'h0c: error_o = !hits || write_i;
      5'h04: error_o = !hits || !write_i;
      // Nothing is truncated.
      5'h08: error_o = !hits || (write_i && wdata_i[31:1] != '0);
      default: error_o = 1'b1;
    endcase
  end

  always_comb begin
    pops = '0;
    if (access_i && write_i && !error_o && address_i[4:0] == 5'h04) pops[line] = 1'b1;
  end

  always_ff @(posedge clk_i) begin
    wires_before <= wires_i;
    for (int i = 0; i < LINES; i++) begin
      if (wires_i[i] && !wires_before[i]) begin
        // With a pop in the same clock one comes and one goes, if there was one.
        if (!pops[i] && counts[i] != '1) counts[i] <= counts[i] + 16'd1;
        else if (pops[i] && counts[i] == '0) counts[i] <= 16'd1;
      end else if (pops[i] && counts[i] != '0) begin
        counts[i] <= counts[i] - 16'd1;
      end
      // Down for one clock after a pop: the next event, if one waits, is a new edge.
      asks[i] <= counts[i] != '0 && !pops[i];
    end
    if (access_i && write_i && !error_o && address_i[4:0] == 5'h08) queues[line] <= wdata_i[0];
    if (!rst_ni) begin
      for (int i = 0; i < LINES; i++) counts[i] <= '0;
      wires_before <= '0;
      queues <= '0;
      asks <= '0;
    end
  end

  assign request_o = (queues & asks) | (~queues & wires_i);
endmodule

`default_nettype wire
