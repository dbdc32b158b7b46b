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
        m_model->wires_i = static_cast<std::uint8_t>(levels);
    }
    // To the next cycle, which everything below then shows.
    void tick()
    {
        m_model->clk_i = 0;
        m_model->eval();
        m_model->clk_i = 1;
        m_model->eval();
    }

    // An instruction retires; the address of the one in the last stage.
    bool retires() const
    {
        return m_root->soc__DOT__u_cpu__DOT__writeBack_arbitration_isFiring != 0;
    }
    std::uint32_t last_stage_pc() const
    {
        return m_root->soc__DOT__u_cpu__DOT__writeBack_PC;
    }
    // An interrupt or an exception is entered; what for.
    bool traps() const
    {
        return m_root->soc__DOT__u_cpu__DOT__when_CsrPlugin_l1019 != 0;
    }
    bool is_exception() const
    {
        return m_root->soc__DOT__u_cpu__DOT__CsrPlugin_hadException != 0;
    }
    std::uint32_t trap_cause() const
    {
        return m_root->soc__DOT__u_cpu__DOT__CsrPlugin_trapCause;
    }
    // The interrupt lines that ask and that the processor lets ask, a bit each: its CSR 0xFC0.
    std::uint32_t asking_lines() const
    {
        return m_root->soc__DOT__u_cpu__DOT___zz_CsrPlugin_csrMapping_readDataInit_1;
    }
    // An mret takes effect.
    bool returns() const
    {
        return m_root->soc__DOT__u_cpu__DOT__when_CsrPlugin_l1064 != 0;
    }
    // The decoder keeps its instruction because an interrupt waits for the pipeline to run empty.
    bool drains() const
    {
        return m_root->soc__DOT__u_cpu__DOT__CsrPlugin_pipelineLiberator_active != 0;
    }
    // The decoder would keep its instruction without an interrupt, too.
    bool stalls() const
    {
        return (m_root->soc__DOT__u_cpu__DOT__when_HazardSimplePlugin_l113 | m_root->soc__DOT__u_cpu__DOT__execute_arbitration_isStuck |
                m_root->soc__DOT__u_cpu__DOT__when_CsrPlugin_l1116) != 0;
    }
    // There is an instruction in the decoder.
    bool decodes() const
    {
        return m_root->soc__DOT__u_cpu__DOT__decode_arbitration_isValid != 0;
    }

    // The levels at the limiter's inputs, a bit per line.
    std::uint32_t requests() const
    {
        return m_model->request_o;
    }
    // The requests that the limiter lets pass in this cycle.
    std::uint32_t delivered() const
    {
        return m_model->delivered_o;
    }
    // Those of them that the interrupt controller finds pending already.
    std::uint32_t merged() const
    {
        return m_model->merged_o;
    }

    bool sends() const
    {
        return m_model->uart_valid_o != 0;
    }
    char sent() const
    {
        return static_cast<char>(m_model->uart_data_o);
    }
    bool exits() const
    {
        return m_model->exit_valid_o != 0;
    }
    std::uint32_t exit_code() const
    {
        return m_model->exit_code_o;
    }
    // A bus error; where, and whether it was a write.
    bool errs() const
    {
        return m_model->error_o != 0;
    }
    std::uint32_t error_address() const
    {
        return m_model->error_address_o;
    }
    bool error_is_write() const
    {
        return m_model->error_write_o != 0;
    }
    // The firmware resets the system.
    bool resets() const
    {
        return m_model->reset_o != 0;
    }

    // A byte of the RAM, below ram_bytes.
    std::uint8_t byte(std::uint32_t address) const
    {
        return static_cast<std::uint8_t>(m_root->soc__DOT__u_ram__DOT__words[address / 4] >> 8 * (address % 4));
    }

  private:
    VerilatedContext m_context;
    std::unique_ptr<Vsoc> m_model;
    // Not const: the generated model reads through plain pointers.
    Vsoc___024root *m_root;
};

} // namespace weir_soc

#endif
