// SPDX-License-Identifier: MIT OR Apache-2.0
// What becomes of the requests of the lines.
#ifndef WEIR_SOC_LINES_HPP
#define WEIR_SOC_LINES_HPP

#include <array>
#include <cstdint>

#include "system.hpp"

namespace weir_soc
{

struct LineUse {
    // Rising edges of the wire.
    std::uint64_t offered = 0;
    // Rising edges at the limiter's input; as many, unless the event device queues.
    std::uint64_t requested = 0;
    // Requests that the limiter passed.
    std::uint64_t delivered = 0;
    // Requests that nothing remembers: one was noted already, in the limiter or in the interrupt controller.
    std::uint64_t missed = 0;
};

class Lines
{
  public:
    // Wires rise in this cycle, a bit each.
    void offer(std::uint32_t wires)
    {
        count(wires, &LineUse::offered);
    }
    // Looks at a cycle of the system.
    void look(const System &system)
    {
        const std::uint32_t requests = system.requests();
        m_rises = requests & ~m_requests;
        m_requests = requests;
        // The synchroniser gives the limiter its edges this many cycles later.
        const std::uint32_t edges = m_on_the_way[1];
        m_on_the_way[1] = m_on_the_way[0];
        m_on_the_way[0] = m_rises;
        const std::uint32_t delivered = system.delivered();
        if ((m_rises | edges | delivered) != 0) {
            count(m_rises, &LineUse::requested);
            count(delivered, &LineUse::delivered);
            // An edge in the very cycle of the delivery is noted anew.
            m_noted &= ~delivered;
            count(edges & m_noted, &LineUse::missed);
            count(system.merged(), &LineUse::missed);
            m_noted |= edges;
        }
    }
    // The system is reset: nothing is noted or on its way, and what is high then will have risen.
    void reset()
    {
        m_requests = 0;
        m_on_the_way.fill(0);
        m_noted = 0;
    }
    // The requests that rose in the cycle that was looked at last, a bit each.
    std::uint32_t rises() const
    {
        return m_rises;
    }
    // From now on everything is counted anew.
    void clear()
    {
        m_uses.fill(LineUse());
    }
    const std::array<LineUse, System::lines> &uses() const
    {
        return m_uses;
    }

  private:
    void count(std::uint32_t lines, std::uint64_t LineUse::*what)
    {
        for (; lines != 0; lines &= lines - 1) {
            m_uses[static_cast<std::size_t>(__builtin_ctz(lines))].*what += 1;
        }
    }

    std::array<LineUse, System::lines> m_uses{};
    std::uint32_t m_requests = 0;
    std::uint32_t m_rises = 0;
    // Edges in the synchroniser, the newest first.
    std::array<std::uint32_t, 2> m_on_the_way{};
    // Requests that the limiter remembers.
    std::uint32_t m_noted = 0;
};

} // namespace weir_soc

#endif
