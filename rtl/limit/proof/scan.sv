// SPDX-License-Identifier: MIT OR Apache-2.0
// The memory form under any input and any traffic on the bus: LIMIT-SILICON-9, and that its visits
// amount to what step_source.sv was proved with. The proof watches one arbitrary source. The bus
// may abandon any access while it waits, in any clock, and begin another one two clocks later.
//
// Ghost code: the result of the source's last visit, by a second copy of the step; what software
// wrote; and the requests that wait.
`default_nettype none

module scan #(
    parameter int SOURCES = 3,
    parameter int GROUP = 2,
    // The number of cells of each memory.
    parameter int CELLS = 4,
    parameter logic [SOURCES-1:0] LEVEL = '0,
    parameter int PHASE_BITS = 3,
    parameter int RATE_BITS = 3,
    parameter int BURST_BITS = 2,
    parameter int HELD_BITS = 0,
    parameter int OVERLOAD = 0,
    parameter int LOCK = 1,
    // 1: the register values after reset differ between sources.
    parameter int EACH = 0
) (
    input wire clk_i,
    input wire rst_ni,
    input wire [SOURCES-1:0] level_i,
    input wire [SOURCES-1:0] edge_i,
    input wire msi_valid_i,
    input wire [9:0] msi_number_i,
    input wire [SOURCES-1:0] release_i,
    input wire reg_valid_i,
    input wire reg_write_i,
    input wire [2:0] reg_which_i,
    input wire [9:0] reg_source_i,
    input wire [31:0] reg_wdata_i
);
  localparam int LeftBits = BURST_BITS == 0 ? 1 : BURST_BITS;
  localparam int Rows = (SOURCES + GROUP - 1) / GROUP < 2 ? 2 : (SOURCES + GROUP - 1) / GROUP;
  localparam int S = (GROUP + 1) * Rows;
  localparam int IndexBits = $clog2(Rows) + $clog2(GROUP);
  localparam int StateBits = PHASE_BITS + LeftBits + 1;
  localparam int WordBits = 5 + LeftBits + RATE_BITS;
  // The register values after reset. With EACH they alternate between three (or two) values.
  localparam logic [SOURCES*RATE_BITS-1:0] RateReset = (SOURCES * RATE_BITS)'(EACH == 0 ? {SOURCES{{3{RATE_BITS'(1)}}}} : {SOURCES{RATE_BITS'(1), RATE_BITS'(2), RATE_BITS'(3)}});
  localparam logic [SOURCES*LeftBits-1:0] BurstReset = (SOURCES * LeftBits)'(EACH == 0 ? {SOURCES{{3{LeftBits'(1)}}}} : {SOURCES{LeftBits'(3), LeftBits'(1), LeftBits'(2)}});
  localparam logic [SOURCES-1:0] EnableReset = SOURCES'(EACH == 0 ? '1 : {SOURCES{2'b01}});
  localparam logic [SOURCES-1:0] LimitReset = SOURCES'(EACH == 0 ? '0 : {SOURCES{3'b011}});
  localparam logic [SOURCES-1:0] PolicyReset = SOURCES'(EACH == 0 ? '0 : {SOURCES{3'b010}});

  (* anyconst *) logic [9:0] who;
  // 1: an output that passes each delivery on at once; 0: an output that holds it.
  (* anyconst *) logic pulse;
  always_comb assume (who < SOURCES);

  wire [SOURCES-1:0] deliver, enables;
  wire overload_irq, reg_ready, reg_error;
  wire [31:0] tick, reg_rdata;
  logic [SOURCES-1:0] held;
  initial held = '0;
  always_ff @(posedge clk_i) held <= rst_ni ? deliver | (held & ~release_i) : '0;

  weir_limit_scan #(
      .SOURCES(SOURCES),
      .GROUP(GROUP),
      .LEVEL(LEVEL),
      .PHASE_BITS(PHASE_BITS),
      .RATE_BITS(RATE_BITS),
      .BURST_BITS(BURST_BITS),
      .HELD_BITS(HELD_BITS),
      .OVERLOAD(OVERLOAD),
      .LOCK(LOCK),
      .MSI(1),
      .RATE_RESET(RateReset),
      .BURST_RESET(BurstReset),
      .ENABLE_RESET(EnableReset),
      .LIMIT_RESET(LimitReset),
      .POLICY_RESET(PolicyReset)
  ) dut (
      .clk_i,
      .rst_ni,
      .level_i,
      .edge_i,
      .msi_valid_i,
      .msi_number_i,
      .held_i(pulse ? '0 : held),
      .deliver_o(deliver),
      .enable_o(enables),
      .overload_irq_o(overload_irq),
      .tick_o(tick),
      .reg_valid_i,
      .reg_write_i,
      .reg_which_i,
      .reg_source_i,
      .reg_wdata_i,
      .reg_ready_o(reg_ready),
      .reg_rdata_o(reg_rdata),
      .reg_error_o(reg_error)
  );

  // The state of the machine. The runner connects these wires.
  (* keep *)
  wire slot, begins, init, scan_b, init_b, write_c, waited, look, checked;
  (* keep *)
  wire [$clog2(GROUP)-1:0] column;
  (* keep *)
  wire [ $clog2(Rows)-1:0] row;
  (* keep *)
  wire [IndexBits-1:0] index, index_b, index_c;
  (* keep *)
  wire [PHASE_BITS-1:0] phase;
  (* keep *)
  wire [ RATE_BITS-1:0] rate;
  (* keep *)
  wire [LeftBits-1:0] left, burst;
  (* keep *)
  wire enable, limit, bursty, noted, decided;
  (* keep *)
  wire [4:0] control;
  (* keep *)
  wire [2:0] drain;
  (* keep *)
  wire [GROUP-1:0] came, levels, kinds, busy, given;
  (* keep *)
  wire [StateBits-1:0] state_c;
  (* keep *)
  wire [WordBits-1:0] data;
  // The memories, with source 0 in the lowest bits.
  (* keep *)
  wire [CELLS*StateBits-1:0] states;
  (* keep *)
  wire [CELLS*RATE_BITS-1:0] rates;
  (* keep *)
  wire [CELLS*LeftBits-1:0] bursts;
  (* keep *)
  wire [CELLS*5-1:0] controls;
  (* keep *)
  wire [GROUP*Rows-1:0] came_since;

  // ---- The bus (bus.sv, and the rule of APB that a request stays the same until it is answered).
  // `_before` is a value in the clock before, which tells what an access was that is abandoned in
  // this clock.
  logic waits_for_bus;
  logic [2:0] which_before;
  logic [9:0] source_before;
  logic [31:0] wdata_before;
  logic write_before;
  always_ff @(posedge clk_i) begin
    waits_for_bus <= rst_ni && reg_valid_i && !reg_ready;
    {which_before, source_before, wdata_before, write_before} <= {reg_which_i, reg_source_i, reg_wdata_i, reg_write_i};
  end
  wire to_control = reg_which_i == weir_limit_map::RegControl;
  wire to_rate = reg_which_i == weir_limit_map::RegRate;
  wire to_burst = reg_which_i == weir_limit_map::RegBurst;
  wire to_status = reg_which_i == weir_limit_map::RegStatus;
  wire to_began = reg_which_i == weir_limit_map::RegBegan;
  always_comb begin
    if (waits_for_bus && reg_valid_i) begin
      assume ({which_before, source_before, wdata_before, write_before} == {reg_which_i, reg_source_i, reg_wdata_i, reg_write_i});
    end
    if (reg_valid_i) begin
      assume (reg_which_i <= (OVERLOAD != 0 ? weir_limit_map::RegBegan : HELD_BITS != 0 ? weir_limit_map::RegHeld : weir_limit_map::RegStatus));
      assume (HELD_BITS != 0 || reg_which_i != weir_limit_map::RegHeld);
      assume (reg_source_i < (reg_which_i == weir_limit_map::RegBegan ? (SOURCES + 31) / 32 : SOURCES));
      if (reg_write_i) begin
        assume (reg_which_i != weir_limit_map::RegStatus);
        if (to_control) begin
          assume ((reg_wdata_i & 32'h7FFFFFF0) == '0 && (OVERLOAD != 0 || !reg_wdata_i[3]) && (BURST_BITS != 0 || !reg_wdata_i[2]));
          assume (LOCK != 0 || !reg_wdata_i[31]);
        end
        if (to_rate) assume (reg_wdata_i != '0 && {1'b0, reg_wdata_i} >> RATE_BITS == '0);
        if (to_burst) assume (reg_wdata_i != '0 && reg_wdata_i >> LeftBits == '0);
      end
    end
  end

  // ---- Time: clocks since the reset ended, since the last visit, since the row's turn, and since
  // the bus made its request.
  localparam int Far = 4 * S;
  logic [7:0] since_reset, since_visit, since_turn, since_bus;
  wire visit = scan_b && !init_b && index_b == IndexBits'(who);
  wire turn = begins && !init && row == (who / GROUP);
  always_ff @(posedge clk_i) begin
    since_reset <= !rst_ni ? '0 : since_reset < Far ? since_reset + 1'b1 : since_reset;
    since_visit <= !rst_ni ? Far : visit ? 8'd1 : since_visit < Far ? since_visit + 1'b1 : since_visit;
    since_turn  <= !rst_ni ? Far : turn ? 8'd1 : since_turn < Far ? since_turn + 1'b1 : since_turn;
    since_bus   <= !rst_ni || init || !reg_valid_i || reg_ready ? '0 : since_bus < Far ? since_bus + 1'b1 : since_bus;
  end

  // ---- Software's registers: the last value written. It counts from the clock after the bus was
  // ready, or after a completed write was abandoned. `off`: a completed write has switched the
  // source off, and no write has begun to switch it on.
  logic [4:0] control_ghost;
  logic [RATE_BITS-1:0] rate_ghost;
  logic [LeftBits-1:0] burst_ghost;
  logic off;
  wire [4:0] control_first = {2'b0, PolicyReset[who], LimitReset[who], EnableReset[who]};
  wire [RATE_BITS-1:0] rate_first = RateReset[who*RATE_BITS+:RATE_BITS];
  wire [LeftBits-1:0] burst_first = BurstReset[who*LeftBits+:LeftBits];
  wire mine = reg_valid_i && reg_source_i == who;
  wire writes = mine && reg_write_i;
  wire [4:0] bits = {reg_wdata_i[31], reg_wdata_i[3:0]};
  wire refused = control_ghost[4] && (to_rate || to_burst || (to_control && bits[4:1] != control_ghost[4:1]));
  wire control_before = which_before == weir_limit_map::RegControl;
  wire rate_before = which_before == weir_limit_map::RegRate;
  wire burst_before = which_before == weir_limit_map::RegBurst;
  wire config_before = control_before || rate_before || burst_before;
  wire began_before = which_before == weir_limit_map::RegBegan;
  wire wrote = waits_for_bus && source_before == who && write_before;
  wire [4:0] bits_before = {wdata_before[31], wdata_before[3:0]};
  wire refused_before = control_ghost[4] && (rate_before || burst_before || (control_before && bits_before[4:1] != control_ghost[4:1]));
  // The write that the bus waits for is already in the memory.
  wire done = drain != '0;
  wire given_up = waits_for_bus && !reg_valid_i;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      control_ghost <= control_first;
      rate_ghost <= rate_first;
      burst_ghost <= burst_first;
      off <= !control_first[0];
    end else if (writes && reg_ready && !reg_error) begin
      if (to_control) control_ghost <= bits;
      if (to_rate) rate_ghost <= reg_wdata_i[RATE_BITS-1:0];
      if (to_burst && BURST_BITS != 0) burst_ghost <= reg_wdata_i[LeftBits-1:0];
      if (to_control) off <= !bits[0];
    end else if (wrote && given_up && done) begin
      if (control_before) control_ghost <= bits_before;
      if (rate_before) rate_ghost <= wdata_before[RATE_BITS-1:0];
      if (burst_before && BURST_BITS != 0) burst_ghost <= wdata_before[LeftBits-1:0];
      if (control_before && bits_before[0]) off <= 1'b0;
    end
  end

  // ---- Requests: `fresh` came since the last turn, `due` came before it.
  logic fresh, came_then, noted_ghost;
  wire due = came_then || noted_ghost;
  wire is_level = LEVEL[who];
  wire request = edge_i[who] || (!is_level && msi_valid_i && msi_number_i == who);
  // ---- The state of the source's limiter after its last visit.
  logic [PHASE_BITS-1:0] phase_ghost;
  logic [LeftBits-1:0] left_ghost;
  logic level_then, held_then;
  logic passed;
  wire  asks = (is_level ? level_then : due) && enable && !held_then;
  wire step_deliver, step_open, step_rests, step_clear;
  wire [PHASE_BITS-1:0] step_grown;
  wire [  LeftBits-1:0] step_left;
  weir_limit_scan_step #(
      .PHASE_BITS(PHASE_BITS),
      .RATE_BITS (RATE_BITS),
      .BURST_BITS(BURST_BITS)
  ) u_step (
      .phase_i(phase_ghost),
      .left_i(left_ghost),
      .rate_i(rate),
      .burst_i(burst),
      .limit_i(limit),
      .bursty_i(bursty),
      .asks_i(asks),
      .deliver_o(step_deliver),
      .open_o(step_open),
      .rests_o(step_rests),
      .grown_o(step_grown),
      .clear_o(step_clear),
      .left_o(step_left)
  );
  always_ff @(posedge clk_i) begin
    fresh <= (request && (!is_level || HELD_BITS != 0)) || (fresh && !turn);
    if (turn) begin
      came_then <= fresh;
      {level_then, held_then} <= {level_i[who], held[who] && !pulse};
    end
    if (visit) begin
      phase_ghost <= step_clear ? '0 : step_grown;
      left_ghost <= step_left;
      passed <= step_deliver;
      noted_ghost <= due && !is_level && !step_deliver;
    end
    if (!rst_ni) begin
      {fresh, came_then, noted_ghost, passed, level_then, held_then} <= '0;
      {phase_ghost, left_ghost} <= '0;
    end
  end

  // ---- Lateness: how long a request has waited for nothing but the scan.
  logic [7:0] waiting;
  logic wants, taken;
  wire free = control_ghost[1:0] == 2'b01 && !(writes && to_control) && !(wrote && control_before) && !(held[who] && !pulse) && !init && (!is_level || level_i[who]);
  always_ff @(posedge clk_i) begin
    wants   <= rst_ni && free && !deliver[who] && (wants || is_level || request);
    waiting <= wants ? waiting + 1'b1 : 8'd1;
    taken   <= wants && (taken || turn);
  end

  // ---- The position of the scan: clocks since the beginning of a round; the source's own turn and
  // visit in the round; and the clocks until them.
  wire at_first = column == '0 && !slot;
  wire [7:0] position = row * (GROUP + 1) + (slot ? GROUP : column);
  wire [7:0] own_column = who % GROUP;
  wire [7:0] own_turn = (who / GROUP) * (GROUP + 1);
  wire [7:0] own_visit = own_turn + own_column + 1;
  wire [7:0] now_since_turn = (position + S - own_turn - 1) % S + 1;
  wire [7:0] now_since_visit = (position + S - own_visit - 1) % S + 1;
  wire [7:0] to_turn = position <= own_turn ? own_turn - position : own_turn + S - position;
  wire [7:0] bus_visit = (source_before / GROUP) * (GROUP + 1) + source_before % GROUP + 1;
  wire [7:0] to_bus_visit = position <= bus_visit ? bus_visit - position : bus_visit + S - position;
  // The clocks until the scan's next clock that can answer STATUS and HELD: the bus's clock after
  // the next row, or the first one that is far enough from the source.
  wire [7:0] bus_row = source_before / GROUP;
  wire [7:0] next_row = at_first ? row : (row + 1) % Rows;
  wire [7:0] rows_near = next_row == bus_row ? 2 : next_row == (bus_row + 1) % Rows ? 1 : 0;
  wire [7:0] to_own_clock = (at_first ? 0 : slot ? 1 : GROUP + 1 - column) + rows_near * (GROUP + 1);
  wire [7:0] to_slot = slot ? 0 : GROUP - column;
  // The previous position of the scan, the value read there, and the value read before that.
  localparam logic [$clog2(GROUP)-1:0] LastColumn = GROUP - 1;
  localparam logic [$clog2(Rows)-1:0] LastRow = Rows - 1;
  wire [$clog2(Rows)-1:0] row_before = row == '0 ? LastRow : row - 1'b1;
  wire [IndexBits-1:0] index_before = slot ? {row, LastColumn} : {row, column - 1'b1};
  wire [IndexBits-1:0] index_before_that = at_first ? {row_before, LastColumn} : slot ? {row, LastColumn - 1'b1} : {row, column - 2'd2};
  wire [StateBits-1:0] state = states[who*StateBits+:StateBits];
  wire [StateBits-1:0] state_ghost = {phase_ghost, left_ghost, noted_ghost};
  wire in_flight = write_c && index_c == who;
  wire [4:0] control_now = done && wrote && control_before ? bits_before : control_ghost;
  wire [RATE_BITS-1:0] rate_now = done && wrote && rate_before ? wdata_before[RATE_BITS-1:0] : rate_ghost;
  wire [LeftBits-1:0] burst_now = done && wrote && burst_before && BURST_BITS != 0 ? wdata_before[LeftBits-1:0] : burst_ghost;
  // High two clocks after a write in the memory, even if the access was abandoned.
  logic done_two;
  always_ff @(posedge clk_i) done_two <= rst_ni && drain[0];
  // High for a delivery that was decided and has not left the scan.
  wire under_way = passed && since_visit < since_turn && since_turn <= GROUP + 2;
  wire filled = since_reset > own_turn + own_column + (EACH != 0 ? 1 : 0);

  // The requests taken at the turn, and the deliveries given at the next turn, on their ways to and
  // from the visit.
  logic row_right, given_right;
  always_comb begin
    {row_right, given_right} = '1;
    for (int j = 1; j <= GROUP; j++) begin
      if (since_turn == j && j <= own_column + 1) begin
        row_right = came[own_column+1-j] == came_then && levels[own_column+1-j] == (is_level && level_then) && kinds[own_column+1-j] == is_level &&
            busy[own_column+1-j] == held_then;
      end
      if (since_visit == j && j <= GROUP - own_column) given_right = given[GROUP-j] == passed;
    end
  end

  initial assume (!rst_ni);
  initial {wants, waits_for_bus, fresh, noted_ghost, came_then, passed, done_two} = '0;
  always_comb
    if (rst_ni) begin
      // Invariants of the scan.
      i_scan : assert (!(slot && (column != '0 || begins)) && !(begins && column != '0) && row < Rows);
      i_init : assert (init ? since_reset == position && begins == (at_first && row != '0) : since_reset >= S && begins == at_first);
      i_round : assert (since_reset >= 2 * S || since_reset == position + (init ? 0 : S));
      i_before : assert (init_b == (since_reset >= 1 && since_reset <= S) && scan_b == (since_reset != '0 && !at_first));
      i_index : assert (!scan_b || index_b == index_before);
      i_write : assert (write_c == (since_reset >= 2 && column != 1));
      i_index_c : assert (!write_c || index_c == index_before_that);
      i_turn :
      assert (since_turn < Far ? since_turn >= 1 && since_reset >= S + own_turn + since_turn && since_turn == now_since_turn :
           since_reset <= S + own_turn);
      i_visit :
      assert (since_visit < Far ? since_visit >= 1 && since_reset >= S + own_visit + since_visit && since_visit == now_since_visit :
           since_reset <= S + own_visit);
      i_order : assert (since_visit < Far || since_reset < S || since_turn < Far || position <= own_turn);
      // Invariants of the memories.
      i_flight : assert (!in_flight || state_c == state_ghost);
      i_state : assert (in_flight || !(since_reset > own_turn + own_column + 2) || state == state_ghost);
      i_read : assert (!visit || {phase, left, noted} == state_ghost);
      i_filled :
      assert (!filled || (rates[who*RATE_BITS+:RATE_BITS] == rate_now && controls[who*5+:5] == control_now &&
        (BURST_BITS == 0 || bursts[who*LeftBits+:LeftBits] == burst_now)));
      i_wanted :
      assert (!waits_for_bus || !write_before || !control_before ||
        ((LOCK != 0 || !bits_before[4]) && (OVERLOAD != 0 || !bits_before[3]) && (BURST_BITS != 0 || !bits_before[2])));
      i_exist :
      assert ((LOCK != 0 || !control_ghost[4]) && (OVERLOAD != 0 || !control_ghost[3]) && (BURST_BITS != 0 || (!control_ghost[2] && burst_ghost == 1)));
      i_looked :
      assert (init_b || init || index_b != who || drain[0] || since_reset == '0 ||
        (rate == rates[who*RATE_BITS+:RATE_BITS] && control == controls[who*5+:5] &&
            burst == (BURST_BITS == 0 ? 1 : bursts[who*LeftBits+:LeftBits])));
      i_data :
      assert (EACH != 0 ? !init_b || !scan_b || index_b != who || data == {control_first, burst_first, rate_first} :
        init || init_b ? data == {control_first, burst_first, rate_first} :
        data == {bits_before, wdata_before[LeftBits-1:0], wdata_before[RATE_BITS-1:0]});
      i_enable : assert (enables[who] == control_now[0]);
      // Invariants of requests and deliveries on their ways.
      i_came : assert (came_since[who] == fresh);
      i_row : assert (row_right && given_right);
      i_fresh :
      assert ((!init || (!look && !checked && !done && control_ghost == control_first && rate_ghost == rate_first && burst_ghost == burst_first)) &&
        (since_visit < Far || (phase_ghost == '0 && left_ghost == '0 && !noted_ghost && !passed)));
      i_none : assert (since_reset > S || (given & ~(GROUP'(2 ** GROUP >> since_reset))) == '0);
      i_off : assert (!under_way || control_now[0] || (since_turn == GROUP + 1 ? drain[0] : since_turn == GROUP + 2 && done_two));
      i_on : assert (!off || (!control_ghost[0] && (!under_way || (wrote && control_before && drain[2] && since_turn == 2))));
      // Invariants of the bus.
      i_waited : assert (waited == waits_for_bus);
      i_turns :
      assert ((!look || (waited && at_first && !init && !init_b && index_b == IndexBits'(source_before) && (LOCK != 0 || !write_before))) &&
          (!checked || (waited && write_before && LOCK != 0)) && (!done || (waited && write_before && (checked || LOCK == 0))) &&
        (!look || (!checked && !done)) && drain != 3 && drain != 5 && drain != 6 && drain != 7);
      i_drain :
      assert ((!drain[0] || at_first) && (!drain[1] || column == 1) && (!done_two || column == 1) && (!drain[2] || (GROUP == 2 ? slot : column == 2)));
      i_checked : assert (!(checked || done) || source_before != who || !refused_before);
      i_config : assert (!(look || checked || done) || config_before);
      i_pace :
      assert (since_bus == '0 || !config_before || (done ? since_bus <= 2 * GROUP + 2 + (drain[0] ? 1 : drain[1] ? 2 : 3) :
        look ? since_bus <= GROUP + 2 : checked ? since_bus + to_slot <= 2 * GROUP + 2 : since_bus + to_slot <= GROUP + 1));
      i_shown : assert (!waits_for_bus || !at_first || index_b == IndexBits'(source_before));
      i_bus :
      assert (since_bus == '0 || config_before || began_before || since_bus + to_bus_visit <= 2 * GROUP + 2 ||
        (Rows > 2 && since_bus + to_own_clock <= 2 * GROUP + 2));
      i_began : assert (since_bus == '0 || !began_before || since_bus + to_slot <= GROUP + 1);
      i_since : assert (since_bus == '0 || (waits_for_bus && !init_b));
      i_wants :
      assert (!wants || (!taken ? (is_level || fresh) && waiting + to_turn <= S : since_turn <= GROUP + 2 && waiting <= S + since_turn &&
        (since_turn < own_column + 2 ? (is_level ? level_then : came_then) && !held_then : passed)));

      if (since_visit < Far || since_reset > S + own_visit) p_period : assert (since_visit <= S && visit == (since_visit == S));
      if (visit) begin
        p_state : assert (phase == phase_ghost && left == left_ghost && decided == step_deliver);
        p_rate : assert (rate == rate_ghost || (wrote && rate_before && rate == wdata_before[RATE_BITS-1:0]));
        p_control :
        assert ({bursty, limit, enable} == control_ghost[2:0] || (wrote && control_before && {bursty, limit, enable} == bits_before[2:0]));
      end
      if (writes && reg_ready) p_lock : assert (reg_error == refused);
      if (mine && !reg_write_i && reg_ready) begin
        if (to_control) p_read_control : assert ({reg_rdata[31], reg_rdata[3:0]} == control_ghost && reg_rdata[30:4] == '0 && !reg_error);
        if (to_rate) p_read_rate : assert (reg_rdata == 32'(rate_ghost) && !reg_error);
        if (to_burst) p_read_burst : assert (reg_rdata == 32'(burst_ghost) && !reg_error);
      end
      p_out : assert (deliver[who] == (since_turn == GROUP + 2 && passed));
      p_disable : assert (!off || !deliver[who]);
      if (wants) p_late : assert (waiting <= S + GROUP + 2 && (waiting < S + GROUP + 2 || deliver[who]));
      if (reg_valid_i && !init) p_ready : assert (since_bus <= (to_control || to_rate || to_burst ? 2 * GROUP + 5 : to_began ? GROUP + 1 : 2 * GROUP + 2));

      c_period : cover (visit && since_visit == S && who == SOURCES - 1);
      c_state : cover (visit && phase != '0 && noted_ghost);
      c_rate : cover (visit && rate == '1);
      c_control : cover (visit && control_ghost[2:0] == 3'b110);
      c_read : cover (mine && !reg_write_i && reg_ready && to_rate && reg_rdata == 32'({RATE_BITS{1'b1}}));
      c_lock : cover (writes && reg_ready && reg_error && to_rate);
      c_out : cover (deliver[who] && limit && !pulse);
      c_disable : cover (passed && !control_now[0] && done && since_turn < GROUP + 2);
      c_given_up : cover (wrote && given_up && done && control_before && !bits_before[0] && passed && since_turn == GROUP + 1);
      c_late : cover (wants && waiting == S + GROUP + 2 && deliver[who]);
      c_ready : cover (reg_valid_i && reg_ready && to_rate && since_bus == 2 * GROUP + 5);
      c_ready_began : cover (reg_valid_i && reg_ready && to_began && since_bus == GROUP + 1);
      c_ready_status : cover (reg_valid_i && reg_ready && to_status && since_bus == 2 * GROUP + 2);
    end
endmodule

`default_nettype wire
