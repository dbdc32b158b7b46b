// SPDX-License-Identifier: MIT OR Apache-2.0
#include "account.hpp"

#include <algorithm>

#include "failure.hpp"

namespace weir_soc
{

namespace
{

// Deeper than 64 KiB of RAM can hold frames of a few words.
constexpr std::size_t deepest = 4096;

void note_longest(Use &use, std::uint64_t cycles, std::uint64_t instructions)
{
    use.longest_cycles = std::max(use.longest_cycles, cycles);
    use.longest_instructions = std::max(use.longest_instructions, instructions);
}

} // namespace

void Account::charge(std::uint64_t cycle)
{
    const std::uint64_t cycles = cycle - m_charged_until;
    m_charged_until = cycle;
    Use *use = &m_background;
    if (!m_frames.empty()) {
        m_frames.back().cycles += cycles;
        m_frames.back().instructions += m_instructions;
        use = &m_uses[m_frames.back().cause];
    }
    use->cycles += cycles;
    use->instructions += m_instructions;
    m_instructions = 0;
}

void Account::enter(const System &system, std::uint64_t cycle)
{
    Cause cause{system.is_exception(), system.trap_cause(), std::nullopt};
    constexpr std::uint32_t external = 11;
    if (!cause.exception && cause.code == external && system.asking_lines() != 0) {
        cause.line = static_cast<std::uint32_t>(__builtin_ctz(system.asking_lines()));
    }
    if (m_frames.size() == deepest) {
        throw Failure("the firmware is interrupted in interrupts, " + std::to_string(deepest) + " deep, at cycle " + std::to_string(cycle) +
                      "; a trap handler ends with mret");
    }
    charge(m_draining && !cause.exception ? std::max(m_drains_since, m_charged_until) : cycle);
    m_draining = false;
    m_frames.push_back({cause, 0, 0});
    m_uses[cause].taken++;
}

void Account::leave(std::uint64_t cycle)
{
    charge(cycle);
    m_returning = false;
    // An mret without a trap is a jump: start-up code uses it.
    if (!m_frames.empty()) {
        const Frame frame = m_frames.back();
        m_frames.pop_back();
        note_longest(m_uses[frame.cause], frame.cycles, frame.instructions);
    }
}

void Account::reset(std::uint64_t cycle)
{
    m_draining = false;
    while (!m_frames.empty()) {
        leave(cycle);
    }
}

void Account::clear(std::uint64_t cycle)
{
    charge(cycle);
    m_uses.clear();
    m_background = Use();
}

std::map<Cause, Use> Account::uses() const
{
    auto uses = m_uses;
    for (const Frame &frame : m_frames) {
        note_longest(uses[frame.cause], frame.cycles, frame.instructions);
    }
    return uses;
}

} // namespace weir_soc
