// SPDX-License-Identifier: MIT OR Apache-2.0
// One source of the register form: its noted request, its limiter and its registers.
`default_nettype none

module weir_limit_line #(
    parameter int PHASE_BITS = 24,
    parameter int RATE_BITS = 24,
    parameter int BURST_BITS = 0,
    parameter int HELD_BITS = 0,
    // 1: the source requests as long as level_i is high; 0: edges are noted as requests.
    parameter logic LEVEL = 1'b0,
    parameter int RESET = 1,
    parameter int READBACK = 1,
    parameter int ENABLES = 1,
    parameter int LIMITS = 1,
    parameter int OVERLOAD = 1,
    parameter int LOCK = 1,
    localparam int BurstBits = BURST_BITS == 0 ? 1 : BURST_BITS,
    parameter logic [RATE_BITS-1:0] RATE_RESET = 1,
    parameter logic [BurstBits-1:0] BURST_RESET = 1,
    parameter logic ENABLE_RESET = 1'b0,
    parameter logic LIMIT_RESET = 1'b0,
    parameter logic POLICY_RESET = 1'b0
) (
    input wire clk_i,
    input wire rst_ni,
    input wire level_i,
    // An edge of level_i, and a request to note. For an EDGE source this is an edge or a message, for a LEVEL source nothing.
    input wire edge_i,
    input wire request_i,
    // High while the output still holds the last delivery.
    input wire held_i,
    output wire deliver_o,
    output wire enable_o,
    // High when OVERLOAD rises, and whether the source wants the overload interrupt.
    output wire begins_o,
    output wire notify_o,
    // Register `which_i` is accessed in this clock. A rejected write changes nothing.
    input wire [2:0] which_i,
    input wire write_i,
    input wire [31:0] wdata_i,
    output logic [31:0] rdata_o,
    output wire refuses_o
);
  wire enable, limit, bursty, notify, lock;
  wire [RATE_BITS-1:0] rate;
  wire [BurstBits-1:0] burst;
  wire noted, asks, open, opens, rests, overload;
  wire [31:0] held_count;

  // ---------------------------------------------------------------------------------------------- requests
  if (LEVEL) begin : g_level
    assign noted = 1'b0;
    assign asks  = level_i && !held_i;
    wire unused = request_i;
  end else begin : g_edge
    weir_limit_ff #(
        .RESET(RESET)
    ) u_noted (
        .clk_i,
        .rst_ni,
        .d_i(request_i || (noted && !deliver_o)),
        .q_o(noted)
    );
    assign asks = noted;
    wire unused = level_i;
  end

  weir_limit_source #(
      .PHASE_BITS(PHASE_BITS),
      .RATE_BITS (RATE_BITS),
      .BURST_BITS(BURST_BITS),
      .LIMITS    (LIMITS),
      .RESET     (RESET)
  ) u_source (
      .clk_i,
      .rst_ni,
      .noted_i (asks && !held_i),
      .enable_i(enable),
      .limit_i (limit),
      .bursty_i(bursty),
      .rate_i  (rate),
      .burst_i (burst),
      .deliver_o,
      .open_o  (open),
      .opens_o (opens),
      .rests_o (rests)
  );
  assign enable_o = enable;

  // ---------------------------------------------------------------------------------------------- what was held back
  if (HELD_BITS != 0) begin : g_held
    wire [HELD_BITS-1:0] held;
    wire request = LEVEL ? edge_i : request_i;
    wire counts = request && ((noted && !deliver_o) || (limit && !opens));
    wire clear = write_i && which_i == weir_limit_map::RegHeld;
    weir_limit_ff #(
        .WIDTH(HELD_BITS),
        .RESET(RESET)
    ) u_held (
        .clk_i,
        .rst_ni,
        .d_i(clear ? HELD_BITS'(counts) : held + HELD_BITS'(counts && held != '1)),
        .q_o(held)
    );
    assign held_count = 32'(held);
  end else begin : g_no_held
    assign held_count = '0;
    wire unused = &{1'b0, edge_i, opens};
  end

  if (OVERLOAD != 0) begin : g_overload
    wire found = asks && limit && !open;
    weir_limit_ff #(
        .RESET(RESET)
    ) u_overload (
        .clk_i,
        .rst_ni,
        .d_i(found || (overload && (asks || !rests))),
        .q_o(overload)
    );
    assign begins_o = found && !overload;
  end else begin : g_no_overload
    assign overload = 1'b0;
    assign begins_o = 1'b0;
    wire unused = rests;
  end

  // ---------------------------------------------------------------------------------------------- registers
  wire writes_control = write_i && which_i == weir_limit_map::RegControl && !refuses_o;
  wire writes_rate = write_i && which_i == weir_limit_map::RegRate && !refuses_o;

  weir_limit_ff #(
      .WIDTH(RATE_BITS),
      .RESET(RESET),
      .INIT (RATE_RESET)
  ) u_rate (
      .clk_i,
      .rst_ni,
      .d_i(writes_rate ? wdata_i[RATE_BITS-1:0] : rate),
      .q_o(rate)
  );

  if (BURST_BITS != 0) begin : g_burst
    wire writes_burst = write_i && which_i == weir_limit_map::RegBurst && !refuses_o;
    weir_limit_ff #(
        .WIDTH(BURST_BITS),
        .RESET(RESET),
        .INIT (BURST_RESET)
    ) u_burst (
        .clk_i,
        .rst_ni,
        .d_i(writes_burst ? wdata_i[BURST_BITS-1:0] : burst),
        .q_o(burst)
    );
    weir_limit_ff #(
        .RESET(RESET),
        .INIT (POLICY_RESET)
    ) u_policy (
        .clk_i,
        .rst_ni,
        .d_i(writes_control ? wdata_i[weir_limit_map::ControlPolicy] : bursty),
        .q_o(bursty)
    );
  end else begin : g_strict
    assign burst  = 1'b1;
    assign bursty = 1'b0;
  end

  if (ENABLES != 0) begin : g_enable
    weir_limit_ff #(
        .RESET(RESET),
        .INIT (ENABLE_RESET)
    ) u_enable (
        .clk_i,
        .rst_ni,
        .d_i(writes_control ? wdata_i[weir_limit_map::ControlEnable] : enable),
        .q_o(enable)
    );
  end else begin : g_enabled
    assign enable = 1'b1;
  end

  if (LIMITS != 0) begin : g_limit
    weir_limit_ff #(
        .RESET(RESET),
        .INIT (LIMIT_RESET)
    ) u_limit (
        .clk_i,
        .rst_ni,
        .d_i(writes_control ? wdata_i[weir_limit_map::ControlLimit] : limit),
        .q_o(limit)
    );
  end else begin : g_limited
    assign limit = 1'b1;
  end

  if (OVERLOAD != 0) begin : g_notify
    weir_limit_ff #(
        .RESET(RESET)
    ) u_notify (
        .clk_i,
        .rst_ni,
        .d_i(writes_control ? wdata_i[weir_limit_map::ControlNotify] : notify),
        .q_o(notify)
    );
  end else begin : g_silent
    assign notify = 1'b0;
  end
  assign notify_o = notify;

  if (LOCK != 0) begin : g_lock
    weir_limit_ff #(
        .RESET(RESET)
    ) u_lock (
        .clk_i,
        .rst_ni,
        .d_i(lock || (writes_control && wdata_i[weir_limit_map::ControlLock])),
        .q_o(lock)
    );
    // High if the write changes no bit of CONTROL except ENABLE.
    wire same = wdata_i[weir_limit_map::ControlLimit] == limit && wdata_i[weir_limit_map::ControlPolicy] == bursty &&
        wdata_i[weir_limit_map::ControlNotify] == notify && wdata_i[weir_limit_map::ControlLock];
    wire fixes = which_i == weir_limit_map::RegRate || which_i == weir_limit_map::RegBurst || (which_i == weir_limit_map::RegControl && !same);
    assign refuses_o = write_i && lock && fixes;
  end else begin : g_no_lock
    assign lock = 1'b0;
    assign refuses_o = 1'b0;
  end

  always_comb begin
    rdata_o = '0;
    if (READBACK != 0) begin
      case (which_i)
        weir_limit_map::RegControl: begin
          rdata_o[weir_limit_map::ControlEnable] = enable;
          rdata_o[weir_limit_map::ControlLimit]  = limit;
          rdata_o[weir_limit_map::ControlPolicy] = bursty;
          rdata_o[weir_limit_map::ControlNotify] = notify;
          rdata_o[weir_limit_map::ControlLock]   = lock;
        end
        weir_limit_map::RegRate:  rdata_o[RATE_BITS-1:0] = rate;
        weir_limit_map::RegBurst: rdata_o[BurstBits-1:0] = burst;
        weir_limit_map::RegStatus: begin
          rdata_o[weir_limit_map::StatusOpen]     = open || !limit;
          rdata_o[weir_limit_map::StatusNoted]    = LEVEL ? level_i : noted;
          rdata_o[weir_limit_map::StatusOverload] = overload;
        end
        default:                  ;
      endcase
    end
    if (HELD_BITS != 0 && which_i == weir_limit_map::RegHeld) rdata_o = held_count;
  end
  // The bus has already rejected values that do not fit.
  wire unused_write = &{1'b0, wdata_i, held_count, writes_control};
endmodule

`default_nettype wire
