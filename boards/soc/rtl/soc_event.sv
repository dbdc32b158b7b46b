// SPDX-License-Identifier: MIT OR Apache-2.0
// One event device: a rising edge of its wire is an event, which waits until it is popped. A wire that is high when a reset ends has risen.
`default_nettype none

module soc_event (
    input wire clk_i,
    input wire rst_ni,
    input wire wire_i,
    // Takes an event, if one waits.
    input wire pop_i,
    input wire set_queue_i,
    input wire queue_i,
    output logic [15:0] count_o,
    output logic queue_o,
    output wire request_o
);
  logic level_before, asks, comes, goes;

  assign comes = wire_i && !level_before;
  assign goes  = pop_i && count_o != '0;

  always_ff @(posedge clk_i) begin
    level_before <= rst_ni && wire_i;
    if (!rst_ni) count_o <= '0;
    else if (comes && !goes && count_o != '1) count_o <= count_o + 16'd1;
    else if (goes && !comes) count_o <= count_o - 16'd1;
    if (!rst_ni) queue_o <= 1'b0;
    else if (set_queue_i) queue_o <= queue_i;
    // Down for one clock after a pop: the next event, if one waits, is a new edge.
    asks <= rst_ni && count_o != '0 && !pop_i;
  end

  assign request_o = queue_o ? asks : wire_i;
endmodule

`default_nettype wire
