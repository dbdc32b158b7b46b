// SPDX-License-Identifier: MIT OR Apache-2.0
// OVERLOAD and BEGAN of the memory form. Suffixes are weir_limit_scan's stages: `_b` is the visit that is decided, `_c` the one that is written.
//
// BEGAN is stored in memory by rows, which lie side by side as in a word of the bus. The visits of a row take its bits from there one by one, and
// write the whole row back. So in its clock the bus has the complete word: the row that is being visited comes from registers, and the others from
// memory. It clears all of a word at once, or nothing.
`default_nettype none

module weir_limit_scan_overload #(
    parameter int GROUP = 8,
    parameter int ROWS = 8,
    parameter int RESET = 1,
    localparam int RowBits = $clog2(ROWS),
    localparam int ColumnBits = $clog2(GROUP),
    localparam int IndexBits = RowBits + ColumnBits
) (
    input wire clk_i,
    input wire rst_ni,
    input wire [IndexBits-1:0] index_i,
    input wire [RowBits-1:0] row_b_i,
    input wire scan_b_i,
    input wire init_b_i,
    input wire [IndexBits-1:0] index_c_i,
    input wire write_c_i,
    // High in the clock of the bus. index_i is then the first source of a row.
    input wire slot_i,
    input wire begins_i,
    // High if the visit finds a request and a closed limit; high if it finds the limiter at rest and no request.
    input wire starts_i,
    input wire ends_i,
    input wire notify_i,
    // High if the bus wants a word of BEGAN, and already wanted it in the clock before.
    input wire active_i,
    input wire write_i,
    input wire [4:0] word_i,
    input wire [31:0] wdata_i,
    output wire ready_o,
    output wire [31:0] rdata_o,
    output wire overload_o,
    output wire irq_o
);
  // The number of rows in a word of the bus, and the number of words.
  localparam int Lanes = 32 / GROUP;
  localparam int LaneBits = $clog2(Lanes);
  localparam int Words = (ROWS + Lanes - 1) / Lanes;
  localparam int AddressBits = Words < 2 ? 1 : $clog2(Words);

  // ---- OVERLOAD. If it begins and ends at the same time, the beginning wins.
  logic overload_next, overload_c;
  assign overload_next = starts_i || (overload_o && !ends_i);
  weir_limit_ff #(
      .RESET(RESET)
  ) u_overload_next (
      .clk_i,
      .rst_ni,
      .d_i(overload_next && !init_b_i),
      .q_o(overload_c)
  );
  weir_limit_scan_memory #(
      .WIDTH(1),
      .ADDRESS_BITS(IndexBits)
  ) u_overload (
      .clk_i,
      .write_i(write_c_i),
      .write_address_i(index_c_i),
      .write_data_i(overload_c),
      .read_address_i(index_i),
      .read_data_o(overload_o)
  );

  // ---- The row that is being visited: BEGAN, and `told`, the sources with BEGAN that had NOTIFY at their last visit. The next source's bit is the
  // lowest, and the result of its visit is shifted in at the top. `loads`: the row's bits have arrived from memory. After the first round all of them
  // are 0 without being loaded.
  logic [GROUP-1:0] began, told, began_now, began_row, told_row, clears_row;
  logic [GROUP-1:1] told_now;
  logic [31:0] began_word, told_word;
  logic [9:0] row, row_b, row_c;
  logic loads, decides, began_next;
  assign row = 10'(index_i[IndexBits-1:ColumnBits]);
  assign row_b = 10'(row_b_i);
  assign row_c = 10'(index_c_i[IndexBits-1:ColumnBits]);
  assign decides = scan_b_i && !init_b_i;
  assign began_now = loads ? began_row : began;
  assign told_now = loads ? told_row[GROUP-1:1] : told[GROUP-1:1];
  // If an overload begins while it is cleared, the beginning wins. The bus's clock is the one in which the last source of a row is decided.
  assign began_next = decides && ((overload_next && !overload_o) || (began_now[0] && !clears_row[GROUP-1]));
  weir_limit_ff #(
      .WIDTH(2 * GROUP + 1),
      .RESET(RESET)
  ) u_row (
      .clk_i,
      .rst_ni,
      .d_i({
        began_next, began_now[GROUP-1:1] & ~clears_row[GROUP-2:0], began_next && notify_i, told_now & ~clears_row[GROUP-2:0], begins_i && !init_b_i
      }),
      .q_o({began, told, loads})
  );

  // ---- The bus and the memory. Each lane is a separate memory, because a row is written while the next one is read.
  logic [AddressBits-1:0] read_word, write_word;
  logic [Lanes-1:0] silenced;
  logic clears;
  assign ready_o = slot_i && active_i;
  assign clears = ready_o && write_i;
  assign read_word = begins_i ? AddressBits'(row >> LaneBits) : AddressBits'(word_i);
  assign write_word = begins_i ? AddressBits'(row_c >> LaneBits) : AddressBits'(word_i);
  always_comb begin
    {began_row, told_row, clears_row} = '0;
    for (int lane = 0; lane < Lanes; lane++) begin
      if ((row_b & 10'(Lanes - 1)) == 10'(lane)) begin
        began_row = began_word[lane*GROUP+:GROUP];
        told_row  = told_word[lane*GROUP+:GROUP];
        if (clears && row_b >> LaneBits == 10'(word_i)) clears_row = wdata_i[lane*GROUP+:GROUP];
      end
    end
  end
  for (genvar lane = 0; lane < Lanes; lane++) begin : g_lane
    if (lane >= ROWS) begin : g_none
      assign began_word[lane*GROUP+:GROUP] = '0;
      assign told_word[lane*GROUP+:GROUP] = '0;
      assign rdata_o[lane*GROUP+:GROUP] = '0;
      assign silenced[lane] = 1'b0;
    end else begin : g_some
      logic visited, write;
      logic [GROUP-1:0] left, still_told;
      assign visited = row_b == (10'(word_i) << LaneBits | 10'(lane));
      assign rdata_o[lane*GROUP+:GROUP] = visited ? {began[0], began[GROUP-1:1]} : began_word[lane*GROUP+:GROUP];
      assign left = began_word[lane*GROUP+:GROUP] & ~wdata_i[lane*GROUP+:GROUP];
      assign still_told = told_word[lane*GROUP+:GROUP] & ~wdata_i[lane*GROUP+:GROUP];
      assign silenced[lane] = !visited && told_word[lane*GROUP+:GROUP] != '0 && still_told == '0;
      // The first round also writes the lanes that no row uses. What the bus writes to the row that is being visited is outdated, and is overwritten
      // in the next clock.
      assign write = begins_i ? init_b_i || (row_c & 10'(Lanes - 1)) == 10'(lane) : clears;
      weir_limit_scan_memory #(
          .WIDTH(2 * GROUP),
          .ADDRESS_BITS(AddressBits)
      ) u_began (
          .clk_i,
          .write_i(write),
          .write_address_i(write_word),
          .write_data_i(begins_i ? {began, told} : {left, still_told}),
          .read_address_i(read_word),
          .read_data_o({began_word[lane*GROUP+:GROUP], told_word[lane*GROUP+:GROUP]})
      );
    end
  end

  // ---- The interrupt. `notices` counts the rows in memory that have a source in `told`; the interrupt is also high if the visited row has one. So
  // it falls in the clock after the write that clears the last source.
  localparam int CountBits = RowBits + 1;
  logic [CountBits-1:0] notices, change;
  always_comb begin
    change = '0;
    if (begins_i) change = CountBits'(told != '0);
    else if (loads) change = {CountBits{told_row != '0}};
    else if (clears) for (int lane = 0; lane < Lanes; lane++) change = change - CountBits'(silenced[lane]);
  end
  weir_limit_ff #(
      .WIDTH(CountBits),
      .RESET(RESET)
  ) u_notices (
      .clk_i,
      .rst_ni,
      .d_i(notices + change),
      .q_o(notices)
  );
  assign irq_o = notices != '0 || told != '0;
endmodule

`default_nettype wire
