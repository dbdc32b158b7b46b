// SPDX-License-Identifier: MIT OR Apache-2.0
#include "system.hpp"

namespace weir_soc
{

System::System(const std::vector<std::uint8_t> &image, std::uint32_t clock_hz)
    : m_model(std::make_unique<Vsoc>(&m_context, "")), m_root(m_model->rootp)
{
    m_root->clock_hz_i = clock_hz;
    set_wires(0);
    // What is true before the first clock.
    m_model->eval();
    // A reset register needs the first edge, what it resets the second, and what that drives the third.
    m_root->rst_ni = 0;
    for (int edge = 0; edge < 3; edge++) {
        tick();
    }
    m_root->rst_ni = 1;
    for (std::uint32_t address = 0; address < image.size(); address++) {
        auto &word = m_root->soc_probe__DOT__u_soc__DOT__u_ram__DOT__words[address / 4];
        word |= static_cast<std::uint32_t>(image[address]) << 8 * (address % 4);
    }
}

} // namespace weir_soc
