// SPDX-License-Identifier: MIT OR Apache-2.0
#include "wires.hpp"

namespace weir_soc
{

std::uint32_t Wires::move(System &system, std::uint64_t cycle)
{
    const std::uint32_t before = m_levels;
    for (; next() == cycle; m_at++) {
        const std::uint32_t wire = std::uint32_t{1} << m_moves[m_at].line;
        m_levels = m_moves[m_at].level ? m_levels | wire : m_levels & ~wire;
    }
    system.set_wires(m_levels);
    return m_levels & ~before;
}

} // namespace weir_soc
