// SPDX-License-Identifier: MIT OR Apache-2.0
// The part that both systems of Table 3 have in addition to their processor and memory: an output
// register, and interrupt pins whose rising edges are requests. The first LIMITED pins have the
// limiter between their edge and the processor. As in regehr2005 §8, the rate is the limiter's only
// register and is write-only. The systems differ only in the limiter.
//
// Synthesis maps this module and the rest of the system separately and joins them afterwards, with
// and without the limiter. Otherwise the difference would be that of two runs of a heuristic over
// the processor: any addition to the design changes its size by up to 50 cells, in either
// direction.
`default_nettype none

(* keep_hierarchy *)
module area_pins #(
    parameter int PINS = 1,
    parameter int LIMITED = 0,
    parameter int PHASE_BITS = 14,
    parameter int RATE_BITS = 10
) (
    input wire clk_i,
    // A write of the processor to register `register_i` below 0x1000_0000: 0 is the output, and 4 +
    // s is the rate of pin s. (1 belongs to area_vexriscv.sv.) The register number consists of low
    // address bits that the memory uses, too, so that the limiter needs no additional bit.
    input wire write_i,
    input wire [2:0] register_i,
    input wire [31:0] data_i,
    input wire [PINS-1:0] pins_i,
    output logic [7:0] output_o,
    // High for one clock per request.
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
          // The limiter starts closed, so nothing passes before the processor has written a rate.
          // Any other reset value would cost two inverters, because the flip-flops of iCE40 start
          // with 0.
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
