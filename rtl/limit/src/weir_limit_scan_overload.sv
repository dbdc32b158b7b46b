// SPDX-License-Identifier: MIT OR Apache-2.0
// OVERLOAD and BEGAN of the memory form. The clocks are weir_limit_scan's: `_b` the visit that is decided, `_c` the one that is written.
//
// A word of BEGAN is put together, and cleared, while the scan goes over its 32 sources.
`default_nettype none

module weir_limit_scan_overload #(
    parameter int INDEX_BITS = 4,
    // Visits of a round.
    parameter int PADDED = 16,
    parameter int RESET = 1
) (
    input wire clk_i,
    input wire rst_ni,
    input wire [INDEX_BITS-1:0] index_i,
    input wire [INDEX_BITS-1:0] index_b_i,
    input wire scan_b_i,
    input wire init_b_i,
    input wire [INDEX_BITS-1:0] index_c_i,
    input wire write_c_i,
    // The visit finds a request and the limit closed; it finds the limiter at rest and nothing that asks.
    input wire begins_i,
    input wire ends_i,
    input wire notify_i,
    // The bus wants a word of BEGAN.
    input wire active_i,
    input wire write_i,
    input wire [4:0] word_i,
    input wire [31:0] wdata_i,
    output wire ready_o,
    output wire [31:0] rdata_o,
    output wire overload_o,
    output wire irq_o
);
  localparam int LastWord = (PADDED - 1) / 32;
  // Visits that the last word lacks.
  localparam int Lacks = 32 * (LastWord + 1) - PADDED;

  logic began, counted, overload_next, began_next, counts, overload_c, began_c, counted_c;
  logic [9:0] index;
  logic here, entered, last;
  logic [31:0] word, word_next;
  logic [INDEX_BITS:0] notices;

  assign index = 10'(index_b_i);
  assign here = scan_b_i && !init_b_i && active_i && index[9:5] == word_i && (entered || index[4:0] == '0);
  assign last = index[4:0] == '1 || index_b_i == INDEX_BITS'(PADDED - 1);
  assign ready_o = here && last;
  assign word_next = {began, word[31:1]};
  assign rdata_o = Lacks != 0 && word_i == 5'(LastWord) ? word_next >> Lacks : word_next;

  // Beginning wins over ending and clearing.
  assign overload_next = begins_i || (overload_o && !ends_i);
  assign began_next = (overload_next && !overload_o) || (began && !(here && write_i && wdata_i[index[4:0]]));
  assign counts = began_next && notify_i;

  weir_limit_ff #(
      .WIDTH(36 + INDEX_BITS + 1),
      .RESET(RESET)
  ) u_state (
      .clk_i,
      .rst_ni,
      .d_i({
        active_i && (here ? !last : entered),
        here ? word_next : word,
        init_b_i ? 3'b0 : {overload_next, began_next, counts},
        !scan_b_i || init_b_i || counts == counted ? notices : counts ? notices + 1'b1 : notices - 1'b1
      }),
      .q_o({entered, word, overload_c, began_c, counted_c, notices})
  );
  // `counted` is what a source last gave to `notices`, the number of those with BEGAN and NOTIFY.
  weir_limit_scan_memory #(
      .WIDTH(3),
      .ADDRESS_BITS(INDEX_BITS)
  ) u_memory (
      .clk_i,
      .write_i(write_c_i),
      .write_address_i(index_c_i),
      .write_data_i({overload_c, began_c, counted_c}),
      .read_address_i(index_i),
      .read_data_o({overload_o, began, counted})
  );
  assign irq_o = notices != '0;
endmodule

`default_nettype wire
