// SPDX-License-Identifier: MIT OR Apache-2.0
// The board for the simulation: signals inside the processor that the simulator observes are
// outputs. They are outputs rather than public signals, because Verilator assumes that a public
// signal may change from outside, and recomputes everything that depends on it.
`default_nettype none

module soc_probe (
    input wire clk_i,
    // The ports of the board itself.
    input wire rst_ni,
    input wire [7:0] wires_i,
    input wire [31:0] clock_hz_i,
    output wire uart_valid_o,
    output wire [7:0] uart_data_o,
    output wire exit_valid_o,
    output wire [31:0] exit_code_o,
    output wire error_o,
    output wire [31:0] error_address_o,
    output wire error_write_o,
    output wire reset_o,
    output wire [7:0] request_o,
    output wire [7:0] delivered_o,
    output wire [7:0] merged_o,
    // An instruction retires; the address of the instruction in the last stage.
    output wire retires_o,
    output wire [31:0] last_stage_pc_o,
    // A trap is entered in this clock; whether it is an exception; its cause.
    output wire traps_o,
    output wire exception_o,
    output wire [3:0] trap_cause_o,
    // The lines that request and pass the processor's mask: the CSR 0xFC0.
    output wire [31:0] asking_o,
    // An mret takes effect in this clock.
    output wire returns_o,
    // The decoder holds instructions back so that the pipeline runs empty for an interrupt.
    output wire drains_o,
    // The decoder would have held back its instruction without an interrupt, too: it waits for an
    // operand, a later stage waits, or an mret is on its way.
    output wire stalls_o,
    // The decoder holds an instruction.
    output wire decodes_o
);
  soc #(
      .LINES(8)
  ) u_soc (
      .clk_i,
      .rst_ni,
      .wires_i,
      .clock_hz_i,
      .uart_valid_o,
      .uart_data_o,
      .exit_valid_o,
      .exit_code_o,
      .error_o,
      .error_address_o,
      .error_write_o,
      .reset_o,
      .request_o,
      .delivered_o,
      .merged_o
  );

  // SpinalHDL generated these names.
  assign retires_o = u_soc.u_cpu.writeBack_arbitration_isFiring;
  assign last_stage_pc_o = u_soc.u_cpu.writeBack_PC;
  assign traps_o = u_soc.u_cpu.when_CsrPlugin_l1019;
  assign exception_o = u_soc.u_cpu.CsrPlugin_hadException;
  assign trap_cause_o = u_soc.u_cpu.CsrPlugin_trapCause;
  assign asking_o = u_soc.u_cpu._zz_CsrPlugin_csrMapping_readDataInit_1;
  assign returns_o = u_soc.u_cpu.when_CsrPlugin_l1064;
  assign drains_o = u_soc.u_cpu.CsrPlugin_pipelineLiberator_active;
  assign stalls_o = u_soc.u_cpu.when_HazardSimplePlugin_l113 | u_soc.u_cpu.execute_arbitration_isStuck | u_soc.u_cpu.when_CsrPlugin_l1116;
  assign decodes_o = u_soc.u_cpu.decode_arbitration_isValid;
endmodule

`default_nettype wire
