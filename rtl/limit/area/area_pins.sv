// SPDX-License-Identifier: MIT OR Apache-2.0
// What both systems of Table 3 have beside their processor and memory: an output register, and interrupt pins whose rising edges are requests.
// With LIMITED the first so many pins have the limiter between their edge and the processor, with the rate as the only register, write-only,
// as in regehr2005 §8. The limiter is the only difference.
//
// Synthesis maps this module and the rest of the system each for itself and joins them afterwards, with and without limiter alike. Else the
// difference is that of two runs of a heuristic over the processor: anything new in the design moves its size by up to 50 cells, either way.
`default_nettype none

(* keep_hierarchy *)
module area_pins #(
    parameter int PINS = 1,
    parameter int LIMITED = 0,
    parameter int PHASE_BITS = 14,
    parameter int RATE_BITS = 10
) (
    input wire clk_i,
    // A write of the processor to register `register_i` below 0x1000_0000: 0 the output, 4 + s the rate of pin s. (1 is for area_vexriscv.sv.)
    // Low bits of the address, which the memory has too: the limiter needs no bit that is not there without it.
    input wire write_i,
    input wire [2:0] register_i,
    input wire [31:0] data_i,
    input wire [PINS-1:0] pins_i,
    output logic [7:0] output_o,
    // One clock per request.
    output wire [PINS-1:0] request_o
);
  always_ff @(posedge clk_i) if (write_i && register_i == 3'd0) output_o <= data_i[7:0];

  wire [PINS-1:0] level, risen;
  weir_limit_sync #(
      .WIDTH(PINS),
      .SYNC (2),
      .RESET(0)
  ) u_sync (
      .clk_i,
      .rst_ni (1'b1),
      .line_i (pins_i),
      .level_o(level),
      .edge_o (risen)
  );

  for (genvar s = 0; s < PINS; s++) begin : g_pin
    if (s < LIMITED) begin : g_limited
      wire selected = write_i && register_i == 3'(4 + s);
      weir_limit_line #(
          .PHASE_BITS(PHASE_BITS),
          .RATE_BITS(RATE_BITS),
          // Nothing passes before the processor has written a rate, since the limiter begins closed. Any other value costs two inverters: the
          // flip-flops of iCE40 begin with 0.
          .RATE_RESET('0),
          .RESET(0),
          .READBACK(0),
          .ENABLES(0),
          .LIMITS(0),
          .OVERLOAD(0),
          .LOCK(0)
      ) u_line (
          .clk_i,
          .rst_ni(1'b1),
          .level_i(level[s]),
          .edge_i(risen[s]),
          .request_i(risen[s]),
          .held_i(1'b0),
          .deliver_o(request_o[s]),
          .enable_o(),
          .begins_o(),
          .notify_o(),
          .which_i(weir_limit_map::RegRate),
          .write_i(selected),
          .wdata_i(data_i),
          .rdata_o(),
          .refuses_o()
      );
    end else begin : g_unlimited
      assign request_o[s] = risen[s];
    end
  end
endmodule

`default_nettype wire
