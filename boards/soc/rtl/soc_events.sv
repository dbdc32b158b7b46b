// SPDX-License-Identifier: MIT OR Apache-2.0
// The event devices, one per wire, 32 bytes apart. A rising edge of the wire is an event, which
// waits until it is popped. If a wire is high when a reset ends, this counts as a rising edge.
//
//   +0x00 COUNT: waiting events, at most 65535 (more are lost)
//   +0x04 POP: a write removes one waiting event
//   +0x08 CONTROL: bit 0 QUEUE
//   +0x0C WIRE: the wire's level (bit 0)
//
// QUEUE = 0 (reset): the wire itself is the request, so an edge makes one request at once. QUEUE =
// 1: the device requests while events wait, and requests again after each pop. So a handler that
// pops one event is called once for every event.
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
  localparam logic [4:0] Count = 5'h00;
  localparam logic [4:0] Pop = 5'h04;
  localparam logic [4:0] Control = 5'h08;
  localparam logic [4:0] Wire = 5'h0c;

  logic [LINES-1:0][15:0] counts;
  // The lines on which at least one event waits.
  logic [LINES-1:0] waiting;
  logic [LINES-1:0] queues, wires_before, comes, pops, asks;
  logic [$clog2(LINES)-1:0] line;
  logic writes;

  assign line = address_i[5+:$clog2(LINES)];

  always_comb begin
    rdata_o = '0;
    error_o = address_i[15:5] >= 11'(LINES);
    case (address_i[4:0])
      Count: begin
        rdata_o[15:0] = counts[line];
        if (write_i) error_o = 1'b1;
      end
      Pop: if (!write_i) error_o = 1'b1;
      Control: begin
        rdata_o[0] = queues[line];
        // A value that does not fit is rejected, not truncated.
        if (write_i && wdata_i[31:1] != '0) error_o = 1'b1;
      end
      Wire: begin
        rdata_o[0] = wires_i[line];
        if (write_i) error_o = 1'b1;
      end
      default: error_o = 1'b1;
    endcase
  end
  assign writes = access_i && write_i && !error_o;

  assign comes  = wires_i & ~wires_before;
  always_comb begin
    pops = '0;
    if (writes && address_i[4:0] == Pop) pops[line] = 1'b1;
  end

  always_ff @(posedge clk_i) begin
    wires_before <= wires_i;
    // The request is low for one clock after a pop, so that the next waiting event makes a new
    // edge.
    asks <= waiting & ~pops;
    // This condition only makes the simulator faster: in most clocks nothing happens.
    if ((comes | pops) != '0) begin
      for (int i = 0; i < LINES; i++) begin
        if (comes[i] && !(pops[i] && waiting[i])) begin
          if (counts[i] != '1) counts[i] <= counts[i] + 16'd1;
          waiting[i] <= 1'b1;
        end else if (!comes[i] && pops[i] && waiting[i]) begin
          counts[i]  <= counts[i] - 16'd1;
          waiting[i] <= counts[i] != 16'd1;
        end
      end
    end
    if (writes && address_i[4:0] == Control) queues[line] <= wdata_i[0];
    if (!rst_ni) begin
      wires_before <= '0;
      asks <= '0;
      counts <= '0;
      waiting <= '0;
      queues <= '0;
    end
  end

  assign request_o = (queues & asks) | (~queues & wires_i);
endmodule

`default_nettype wire
