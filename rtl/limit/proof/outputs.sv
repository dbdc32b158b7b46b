// SPDX-License-Identifier: MIT OR Apache-2.0
// LIMIT-SILICON-10: what happens to a delivery. The proof watches one arbitrary source.
`default_nettype none

module outputs #(
    parameter int SOURCES = 3,
    parameter logic [SOURCES-1:0] LEVEL = 3'b100,
    parameter int PULSE = 0,
    parameter int MSI = 0
) (
    input wire clk_i,
    input wire rst_ni,
    input wire [SOURCES-1:0] deliver_i,
    input wire [SOURCES-1:0] enable_i,
    input wire [SOURCES-1:0] level_i,
    input wire [SOURCES-1:0] raw_i,
    input wire [SOURCES-1:0] ack_i,
    input wire bypass_i,
    input wire msi_ready_i
);
  (* anyconst *) logic [9:0] who;
  wire [SOURCES-1:0] held, irq;
  wire valid;
  wire [9:0] number;

  weir_limit_output #(
      .SOURCES(SOURCES),
      .LEVEL(LEVEL),
      .PULSE(PULSE),
      .MSI(MSI)
  ) dut (
      .clk_i,
      .rst_ni,
      .deliver_i,
      .enable_i,
      .level_i,
      .raw_i,
      .ack_i,
      .bypass_i,
      .held_o(held),
      .irq_o(irq),
      .msi_valid_o(valid),
      .msi_number_o(number),
      .msi_ready_i
  );
  // The promises of the arrays (line.sv, scan.sv): no delivery comes while the last one is held or
  // the source is off.
  always_comb begin
    assume (who < SOURCES);
    assume ((deliver_i & held) == '0);
    if (PULSE != 0) assume ((deliver_i & ~enable_i) == '0);
  end
  initial assume (!rst_ni);

  // For a line: a delivery that was not acknowledged yet, or whose level is still high.
  logic holds;
  // For a stream: the deliveries that were not sent yet, and the clocks since then in which the
  // receiver was ready.
  logic [1:0] unsent;
  logic [7:0] ready;
  logic valid_before, ready_before;
  logic [9:0] number_before;
  wire sent = valid && msi_ready_i && number == who;
  always_ff @(posedge clk_i) begin
    holds <= rst_ni && (deliver_i[who] || (holds && !ack_i[who] && (!LEVEL[who] || level_i[who])));
    unsent <= rst_ni ? unsent + deliver_i[who] - sent : '0;
    ready <= !rst_ni || !enable_i[who] || deliver_i[who] || unsent == '0 ? '0 : ready + msi_ready_i;
    {valid_before, number_before, ready_before} <= {valid && rst_ni, number, msi_ready_i};
  end

  // The source that the sender looks at. The runner connects it.
  (* keep *)
  wire [$clog2(SOURCES)-1:0] turn;
  wire [7:0] until_turn = turn <= who ? who - turn : who + SOURCES - turn;

  initial {holds, unsent, valid_before} = '0;
  always_comb
    if (rst_ni) begin
      p_off : assert (enable_i[who] || !irq[who]);
      p_bypass : assert (!(bypass_i && raw_i[who] && enable_i[who]) || irq[who]);
      if (!bypass_i) begin
        p_line : assert (irq[who] == (MSI != 0 ? 1'b0 : PULSE != 0 ? deliver_i[who] && enable_i[who] : holds && enable_i[who]));
      end
      p_message : assert (MSI != 0 ? !sent || unsent != '0 : !valid);
      p_stands : assert (!valid_before || ready_before || (valid && number == number_before));
      if (MSI != 0) p_sent : assert (unsent <= 2 && (unsent == '0 || ready <= SOURCES));

      i_holds : assert (MSI != 0 || held[who] == (PULSE == 0 && holds));
      if (MSI != 0) begin
        i_unsent : assert (unsent == held[who] + (valid && number == who));
        i_turn : assert (turn < SOURCES && (!valid || number < SOURCES));
        i_ready : assert (!(held[who]) || ready + until_turn < SOURCES);
      end

      c_off : cover (holds && !enable_i[who]);
      c_bypass : cover (irq[who] && !holds && !deliver_i[who]);
      c_line : cover (irq[who] && !bypass_i);
      c_message : cover (sent && unsent == 2);
      c_stands : cover (valid_before && !ready_before && valid);
      c_sent : cover (unsent != '0 && ready == SOURCES);
    end
endmodule

`default_nettype wire
