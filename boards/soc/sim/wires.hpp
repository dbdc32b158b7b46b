// SPDX-License-Identifier: MIT OR Apache-2.0
// Moves the event wires.
#ifndef WEIR_SOC_WIRES_HPP
#define WEIR_SOC_WIRES_HPP

#include <cstdint>
#include <utility>
#include <vector>

#include "files.hpp"
#include "system.hpp"

namespace weir_soc
{

class Wires
{
  public:
    explicit Wires(std::vector<Move> moves) : m_moves(std::move(moves))
    {
    }

    // The cycle of the next move, or the largest number.
    std::uint64_t next() const
    {
        return m_at == m_moves.size() ? UINT64_MAX : m_moves[m_at].cycle;
    }
    // Carries out the moves of this cycle; gives the wires that rise, a bit each.
    std::uint32_t move(System &system, std::uint64_t cycle);

  private:
    std::vector<Move> m_moves;
    std::size_t m_at = 0;
    std::uint32_t m_levels = 0;
};

} // namespace weir_soc

#endif
