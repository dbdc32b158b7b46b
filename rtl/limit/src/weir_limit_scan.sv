// SPDX-License-Identifier: MIT OR Apache-2.0
// The limiters of many sources with their state in memory (regehr2005 §3.4, §4). The ports are those of weir_limit_lines.
//
// A scan visits one source per clock, in rows of GROUP. After each row a clock is the bus's. The scan never waits, so it visits each source every
//
//     S = (GROUP + 1) * max(2, ceil(SOURCES / GROUP)) clocks (tick_o),
//
// whatever comes over the lines and the bus. A visit corresponds to a clock of weir_limit_lines. In overload, the time from a delivery to the next
// one is exactly T = S * ceil(2**PHASE_BITS / rate) clocks. A source whose limit is open is delivered at most S + GROUP + 2 clocks after the clock of
// its edge, and exactly GROUP + 2 clocks after its row's turn. Several edges of a source between two of its visits are one request.
//
//     clock    turn of row r  | 1 ... GROUP            | GROUP + 1           | GROUP + 2
//     address  r's source 0   | r's source 1 ... , bus | next row's source 0 |
//     decide                  | r's source 0 ... last  | bus                 |
//     deliver                                          | turn of the next row| deliver_o of row r
//
// After reset a first round writes the memories. Requests in this round are kept, and the bus waits.
//
// The duration of a bus access does not depend on the number of sources. It is at most, in clocks after its first one: for CONTROL, RATE and BURST
// 2 * GROUP + 5 (a write then affects everything that deliver_o gives from the next clock on), for STATUS and HELD 2 * GROUP + 2, for BEGAN GROUP +
// 1.
`default_nettype none

module weir_limit_scan #(
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
    // The number of sources in a row, a power of two from 2 to 32. A larger number makes S smaller, and the way through a row longer.
    parameter int GROUP = 8,
    localparam int LeftBits = BURST_BITS == 0 ? 1 : BURST_BITS,
    // The values for each source, with source 0 in the lowest bits.
    parameter logic [SOURCES*RATE_BITS-1:0] RATE_RESET = {SOURCES{RATE_BITS'(1)}},
    parameter logic [SOURCES*LeftBits-1:0] BURST_RESET = {SOURCES{LeftBits'(1)}},
    parameter logic [SOURCES-1:0] ENABLE_RESET = '0,
    parameter logic [SOURCES-1:0] LIMIT_RESET = '0,
    parameter logic [SOURCES-1:0] POLICY_RESET = '0
) (
    input wire clk_i,
    input wire rst_ni,
    input wire [SOURCES-1:0] level_i,
    input wire [SOURCES-1:0] edge_i,
    input wire msi_valid_i,
    input wire [9:0] msi_number_i,
    input wire [SOURCES-1:0] held_i,
    output wire [SOURCES-1:0] deliver_o,
    output wire [SOURCES-1:0] enable_o,
    output wire overload_irq_o,
    output wire [31:0] tick_o,
    input wire reg_valid_i,
    input wire reg_write_i,
    input wire [2:0] reg_which_i,
    input wire [9:0] reg_source_i,
    input wire [31:0] reg_wdata_i,
    output wire reg_ready_o,
    output logic [31:0] reg_rdata_o,
    output wire reg_error_o
);
  localparam int Needed = (SOURCES + GROUP - 1) / GROUP;
  // There are at least two rows: a delivery must reach the output that holds it before its row's next turn.
  localparam int Rows = Needed < 2 ? 2 : Needed;
  localparam int RowBits = $clog2(Rows);
  localparam int ColumnBits = $clog2(GROUP);
  localparam int IndexBits = RowBits + ColumnBits;
  localparam int CountBits = HELD_BITS == 0 ? 1 : HELD_BITS;
  assign tick_o = 32'((GROUP + 1) * Rows);

  // ---- The scan: one visit has its address at the memories, and the visit before it is decided.
  logic [ColumnBits-1:0] column;
  logic [RowBits-1:0] row;
  logic slot, begins, last_row, init, turn;
  logic [IndexBits-1:0] index, index_b, index_c;
  logic scan_b, init_b, write_c;

  assign last_row = row == RowBits'(Rows - 1);
  assign turn = begins && !init;
  weir_limit_ff #(
      .WIDTH(ColumnBits + RowBits + 3),
      .RESET(RESET),
      .INIT ({{(ColumnBits + RowBits + 2) {1'b0}}, 1'b1})
  ) u_scan (
      .clk_i,
      .rst_ni,
      .d_i({column + ColumnBits'(!slot), !slot ? row : last_row ? '0 : row + 1'b1, column == '1 && !slot, slot, init && !(slot && last_row)}),
      .q_o({column, row, slot, begins, init})
  );
  weir_limit_ff #(
      .WIDTH(2 * IndexBits + 3),
      .RESET(RESET)
  ) u_pipeline (
      .clk_i,
      .rst_ni,
      .d_i({index, !slot, init, index_b, scan_b}),
      .q_o({index_b, scan_b, init_b, index_c, write_c})
  );
  assign index = slot ? reg_source_i[IndexBits-1:0] : {row, column};

  // ---- Requests in and deliveries out.
  logic [GROUP-1:0] row_came, row_level, row_is_level, row_busy, came, level, is_level, busy, given;
  logic [3*GROUP-1:0] looked;
  logic [ColumnBits-1:0] first;
  logic takes, deliver, deliver_b;
  weir_limit_scan_requests #(
      .SOURCES(SOURCES),
      .GROUP(GROUP),
      .ROWS(Rows),
      .LEVEL(LEVEL),
      .COUNTS(HELD_BITS),
      .MSI(MSI),
      .RESET(RESET)
  ) u_requests (
      .clk_i,
      .rst_ni,
      .level_i,
      .edge_i,
      .msi_valid_i,
      .msi_number_i,
      .held_i,
      .deliver_o,
      .turn_i(turn),
      .row_i(row),
      .look_i(READBACK != 0 ? index[IndexBits-1:ColumnBits] : row),
      .given_i(given),
      .came_o(row_came),
      .level_o(row_level),
      .is_level_o(row_is_level),
      .busy_o(row_busy)
  );
  weir_limit_ff #(
      .WIDTH(5 * GROUP),
      .RESET(RESET)
  ) u_row (
      .clk_i,
      .rst_ni,
      .d_i({takes ? {looked, row_busy} : {came >> 1, level >> 1, is_level >> 1, busy >> 1}, {deliver_b, given[GROUP-1:1]}}),
      .q_o({came, level, is_level, busy, given})
  );
  // STATUS also shows whether the bus's source requests.
  assign takes = turn || (READBACK != 0 && slot);
  assign first = READBACK != 0 ? index[ColumnBits-1:0] : '0;
  assign looked = {row_came[GROUP-1:1], row_came[first], row_level[GROUP-1:1], row_level[first], row_is_level[GROUP-1:1], row_is_level[first]};
  assign deliver_b = deliver && !init_b;

  wire unused_bits = &{1'b0, reg_source_i};

  // ---- A visit.
  logic [PHASE_BITS-1:0] phase, grown, phase_c;
  logic [LeftBits-1:0] left, left_next, left_c, burst;
  logic [RATE_BITS-1:0] rate;
  logic enable, limit, bursty, notify;
  logic noted, noted_c, waits, open, rests, clear;

  // A request: for EDGE sources one that was noted before or has come since, for LEVEL sources the level.
  assign waits = is_level[0] ? level[0] && !busy[0] : noted || came[0];
  weir_limit_scan_step #(
      .PHASE_BITS(PHASE_BITS),
      .RATE_BITS (RATE_BITS),
      .BURST_BITS(BURST_BITS)
  ) u_step (
      .phase_i(phase),
      .left_i(left),
      .rate_i(rate),
      .burst_i(burst),
      .limit_i(limit),
      .bursty_i(bursty),
      .asks_i(waits && enable && !busy[0]),
      .deliver_o(deliver),
      .open_o(open),
      .rests_o(rests),
      .grown_o(grown),
      .clear_o(clear),
      .left_o(left_next)
  );
  // After reset the whole burst is used up, so that a reset gains no delivery.
  weir_limit_ff #(
      .WIDTH(PHASE_BITS + LeftBits + 1),
      .RESET(RESET)
  ) u_next (
      .clk_i,
      .rst_ni,
      .d_i({clear || init_b ? '0 : grown, init_b ? '0 : left_next, !init_b && !is_level[0] && waits && !deliver}),
      .q_o({phase_c, left_c, noted_c})
  );
  weir_limit_scan_memory #(
      .WIDTH(PHASE_BITS + LeftBits + 1),
      .ADDRESS_BITS(IndexBits)
  ) u_state (
      .clk_i,
      .write_i(write_c),
      .write_address_i(index_c),
      .write_data_i({phase_c, left_c, noted_c}),
      .read_address_i(index),
      .read_data_o({phase, left, noted})
  );

  // ---- STATUS and HELD. In the bus's clock its source is visited, too. Such a visit changes nothing but HELD. It cannot be used if the source is in
  // the row visited before or after it, whose state is on its way to or from the memories. In these rows the scan itself visits the source at about
  // the same time.
  //
  // A master may abandon an access while it waits (psel_i or penable_i falls). `active` is low in the first clock of an access, and in the clock in
  // which it is abandoned, so that nothing of the access is left when the next one comes.
  logic waited, active, visits, looks, near, here;
  logic [RowBits-1:0] row_asked;
  assign visits = reg_which_i == weir_limit_map::RegStatus || reg_which_i == weir_limit_map::RegHeld;
  assign looks  = !visits && reg_which_i != weir_limit_map::RegBegan;
  logic [31:0] status_data, held_data, began_data, config_data;
  logic began_ready, config_ready, overload;
  weir_limit_ff #(
      .RESET(RESET)
  ) u_active (
      .clk_i,
      .rst_ni,
      .d_i(reg_valid_i && !reg_ready_o),
      .q_o(waited)
  );
  assign active = waited && reg_valid_i;
  assign row_asked = reg_source_i[IndexBits-1:ColumnBits];
  assign near = row_asked == row || row_asked == index_c[IndexBits-1:ColumnBits];
  assign here = !init_b && active && visits && index_b == reg_source_i[IndexBits-1:0] && (scan_b || !near);
  assign reg_ready_o = here || began_ready || config_ready;
  assign status_data = READBACK == 0 ? '0 :
      32'(open) << weir_limit_map::StatusOpen | 32'(is_level[0] ? level[0] : waits) << weir_limit_map::StatusNoted |
      32'(overload) << weir_limit_map::StatusOverload;
  always_comb begin
    case (reg_which_i)
      weir_limit_map::RegStatus: reg_rdata_o = status_data;
      weir_limit_map::RegHeld: reg_rdata_o = held_data;
      weir_limit_map::RegBegan: reg_rdata_o = began_data;
      default: reg_rdata_o = config_data;
    endcase
  end

  // ---- HELD counts the visits that find a new request and cannot deliver it.
  if (HELD_BITS == 0) begin : g_no_held
    assign held_data = '0;
  end else begin : g_held
    logic [CountBits-1:0] held, held_c;
    logic counts, clears, write_held_c;
    assign counts = came[0] && (noted || !open) && held != '1;
    assign clears = here && reg_write_i;
    weir_limit_ff #(
        .WIDTH(CountBits + 1),
        .RESET(RESET)
    ) u_held_next (
        .clk_i,
        .rst_ni,
        .d_i({init_b || clears ? '0 : held + CountBits'(counts), scan_b || clears}),
        .q_o({held_c, write_held_c})
    );
    weir_limit_scan_memory #(
        .WIDTH(CountBits),
        .ADDRESS_BITS(IndexBits)
    ) u_held (
        .clk_i,
        .write_i(write_held_c),
        .write_address_i(index_c),
        .write_data_i(held_c),
        .read_address_i(index),
        .read_data_o(held)
    );
    assign held_data = 32'(held);
  end

  if (OVERLOAD == 0) begin : g_no_overload
    assign {overload, overload_irq_o, began_ready, began_data} = '0;
    wire unused = &{1'b0, notify, rests};
  end else begin : g_overload
    weir_limit_scan_overload #(
        .GROUP(GROUP),
        .ROWS (Rows),
        .RESET(RESET)
    ) u_overload (
        .clk_i,
        .rst_ni,
        .index_i(index),
        .row_b_i(index_b[IndexBits-1:ColumnBits]),
        .scan_b_i(scan_b),
        .init_b_i(init_b),
        .index_c_i(index_c),
        .write_c_i(write_c),
        .slot_i(slot),
        .begins_i(begins),
        .starts_i(waits && !open),
        .ends_i(rests && !waits),
        .notify_i(notify),
        .active_i(active && !init && reg_which_i == weir_limit_map::RegBegan),
        .write_i(reg_write_i),
        .word_i(reg_source_i[4:0]),
        .wdata_i(reg_wdata_i),
        .ready_o(began_ready),
        .rdata_o(began_data),
        .overload_o(overload),
        .irq_o(overload_irq_o)
    );
  end

  weir_limit_scan_config #(
      .SOURCES(SOURCES),
      .RATE_BITS(RATE_BITS),
      .BURST_BITS(BURST_BITS),
      .GROUP(GROUP),
      .ROWS(Rows),
      .RESET(RESET),
      .READBACK(READBACK),
      .ENABLES(ENABLES),
      .LIMITS(LIMITS),
      .NOTIFY(OVERLOAD),
      .LOCK(LOCK),
      .RATE_RESET(RATE_RESET),
      .BURST_RESET(BURST_RESET),
      .ENABLE_RESET(ENABLE_RESET),
      .LIMIT_RESET(LIMIT_RESET),
      .POLICY_RESET(POLICY_RESET)
  ) u_config (
      .clk_i,
      .rst_ni,
      .index_i(index),
      .index_b_i(index_b),
      .slot_i(slot),
      .init_i(init),
      .scan_b_i(scan_b),
      .init_b_i(init_b),
      .rate_o(rate),
      .burst_o(burst),
      .enable_o(enable),
      .limit_o(limit),
      .bursty_o(bursty),
      .notify_o(notify),
      .enables_o(enable_o),
      .active_i(active && looks),
      .write_i(reg_write_i),
      .which_i(reg_which_i),
      .wdata_i(reg_wdata_i),
      .ready_o(config_ready),
      .rdata_o(config_data),
      .error_o(reg_error_o)
  );
endmodule

`default_nettype wire
