// SPDX-License-Identifier: MIT OR Apache-2.0
// Who used which cycles and instructions.
//
// An interrupt's cycles begin in the cycle in which the processor keeps back an instruction that it could have issued, so that the pipeline runs
// empty, and end where the first instruction after the mret can be issued. They are what the interrupted program loses. An interrupt inside an
// interrupt is charged to itself only.
#ifndef WEIR_SOC_ACCOUNT_HPP
#define WEIR_SOC_ACCOUNT_HPP

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "system.hpp"

namespace weir_soc
{

// Why a trap was entered.
struct Cause {
    bool exception;
    // As in mcause: 3 software, 7 timer, 11 external.
    std::uint32_t code;
    // Of an external interrupt: the lowest line that asked. None if none did any more.
    std::optional<std::uint32_t> line;

    bool operator<(const Cause &other) const
    {
        return std::tie(exception, code, line) < std::tie(other.exception, other.code, other.line);
    }
};

struct Use {
    std::uint64_t taken = 0;
    std::uint64_t cycles = 0;
    std::uint64_t instructions = 0;
    // Of a single one.
    std::uint64_t longest_cycles = 0;
    std::uint64_t longest_instructions = 0;
};

class Account
{
  public:
    // Looks at a cycle of the system. Throws Failure if interrupts are nested without an end.
    void look(const System &system, std::uint64_t cycle)
    {
        if (m_returning && system.decodes()) {
            leave(cycle);
        }
        if (!system.drains()) {
            m_draining = false;
        } else if (!m_draining && !system.stalls()) {
            m_draining = true;
            m_drains_since = cycle;
        }
        if (system.retires()) {
            m_instructions++;
        }
        if (system.traps()) {
            enter(system, cycle);
        } else if (system.returns()) {
            m_returning = true;
        }
    }

    // The system begins anew after this cycle: whatever interrupts there were have ended.
    void reset(std::uint64_t cycle);
    // Forgets what was until `cycle`; who is in the middle of an interrupt stays there, and its `longest` is that of the whole interrupt.
    void clear(std::uint64_t cycle);
    // Charges the time until `cycle` to whoever runs.
    void charge(std::uint64_t cycle);

    // What was charged; interrupts that have not ended are in it.
    std::map<Cause, Use> uses() const;
    const Use &background() const
    {
        return m_background;
    }
    // The line of the interrupt that was entered last and runs; none if it has none.
    std::optional<std::uint32_t> newest_line() const
    {
        return m_frames.empty() ? std::nullopt : m_frames.back().cause.line;
    }

  private:
    struct Frame {
        Cause cause;
        std::uint64_t cycles;
        std::uint64_t instructions;
    };

    void enter(const System &system, std::uint64_t cycle);
    void leave(std::uint64_t cycle);

    std::map<Cause, Use> m_uses;
    Use m_background;
    std::vector<Frame> m_frames;
    std::uint64_t m_charged_until = 0;
    // Retired and not charged yet.
    std::uint64_t m_instructions = 0;
    bool m_draining = false;
    std::uint64_t m_drains_since = 0;
    bool m_returning = false;
};

} // namespace weir_soc

#endif
