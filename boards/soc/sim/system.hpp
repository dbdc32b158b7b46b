// SPDX-License-Identifier: MIT OR Apache-2.0
// The Verilated model, as far as the others look at it.
//
// Cycle n is the time between the clock's edges n and n + 1, from the end of the power-up reset on. In it the registers, those of the wires among
// them, have what edge n gave them.
#ifndef WEIR_SOC_SYSTEM_HPP
#define WEIR_SOC_SYSTEM_HPP

#include <cstdint>
#include <memory>
#include <vector>

#include "Vsoc.h"
#include "Vsoc___024root.h"
#include "verilated.h"

// Verilator declares it where it is defined. Carries out the clock edges whose bits are set; the model has one, that of clk_i.
void Vsoc___024root___eval_nba(Vsoc___024root *);

namespace weir_soc
{

class System
{
  public:
    static constexpr std::uint32_t lines = 8;
    static constexpr std::uint32_t ram_bytes = 65536;

    // Before cycle 0, to which tick() leads; with `image` at address 0 and zeros behind it.
    System(const std::vector<std::uint8_t> &image, std::uint32_t clock_hz);

    // From the next cycle on the event wires have these levels, a bit each.
    void set_wires(std::uint32_t levels)
    {
        m_root->wires_i = static_cast<std::uint8_t>(levels);
    }
    // To the next cycle, which everything below then shows.
    void tick()
    {
        // What eval() would do at the rising edge, and all that it would: no input but the clock is looked at without a clock, there is no falling
        // edge, and the edge needs no looking for. That is an eighth of the time.
        m_root->__VnbaTriggered[0] = 1;
        Vsoc___024root___eval_nba(m_root);
    }

    // An instruction retires; the address of the one in the last stage.
    bool retires() const
    {
        return m_root->retires_o != 0;
    }
    std::uint32_t last_stage_pc() const
    {
        return m_root->last_stage_pc_o;
    }
    // An interrupt or an exception is entered; what for.
    bool traps() const
    {
        return m_root->traps_o != 0;
    }
    bool is_exception() const
    {
        return m_root->exception_o != 0;
    }
    std::uint32_t trap_cause() const
    {
        return m_root->trap_cause_o;
    }
    // The interrupt lines that ask and that the processor lets ask, a bit each: its CSR 0xFC0.
    std::uint32_t asking_lines() const
    {
        return m_root->asking_o;
    }
    // An mret takes effect.
    bool returns() const
    {
        return m_root->returns_o != 0;
    }
    // The decoder keeps its instruction because an interrupt waits for the pipeline to run empty.
    bool drains() const
    {
        return m_root->drains_o != 0;
    }
    // The decoder would keep its instruction without an interrupt, too.
    bool stalls() const
    {
        return m_root->stalls_o != 0;
    }
    // There is an instruction in the decoder.
    bool decodes() const
    {
        return m_root->decodes_o != 0;
    }

    // The levels at the limiter's inputs, a bit per line.
    std::uint32_t requests() const
    {
        return m_root->request_o;
    }
    // The requests that the limiter lets pass in this cycle.
    std::uint32_t delivered() const
    {
        return m_root->delivered_o;
    }
    // Those of them that the interrupt controller finds pending already.
    std::uint32_t merged() const
    {
        return m_root->merged_o;
    }

    bool sends() const
    {
        return m_root->uart_valid_o != 0;
    }
    char sent() const
    {
        return static_cast<char>(m_root->uart_data_o);
    }
    bool exits() const
    {
        return m_root->exit_valid_o != 0;
    }
    std::uint32_t exit_code() const
    {
        return m_root->exit_code_o;
    }
    // A bus error; where, and whether it was a write.
    bool errs() const
    {
        return m_root->error_o != 0;
    }
    std::uint32_t error_address() const
    {
        return m_root->error_address_o;
    }
    bool error_is_write() const
    {
        return m_root->error_write_o != 0;
    }
    // The firmware resets the system.
    bool resets() const
    {
        return m_root->reset_o != 0;
    }

    // A byte of the RAM, below ram_bytes.
    std::uint8_t byte(std::uint32_t address) const
    {
        return static_cast<std::uint8_t>(m_root->soc_probe__DOT__u_soc__DOT__u_ram__DOT__words[address / 4] >> 8 * (address % 4));
    }

  private:
    VerilatedContext m_context;
    std::unique_ptr<Vsoc> m_model;
    // Inputs, outputs and the RAM, without the references by which the model shows them.
    Vsoc___024root *m_root;
};

} // namespace weir_soc

#endif
