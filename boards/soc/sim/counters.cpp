// SPDX-License-Identifier: MIT OR Apache-2.0
#include "counters.hpp"

#include <algorithm>

namespace weir_soc
{

Counters::Counters(const std::vector<Watch> &watches)
{
    for (const Watch &watch : watches) {
        m_counters.push_back({watch, 0, 0, true});
    }
}

void Counters::look(const System &system)
{
    for (Counter &counter : m_counters) {
        std::uint64_t value = 0;
        for (std::uint32_t byte = counter.watch.bytes; byte-- > 0;) {
            value = value << 8 | system.byte(counter.watch.address + byte);
        }
        // The difference as a signed number of the variable's size: between the stores of its halves a value may be below the last one.
        const unsigned unused = 64 - 8 * counter.watch.bytes;
        const auto difference = static_cast<std::int64_t>((value - counter.last) << unused) >> unused;
        counter.grown += difference;
        counter.last = value;
        // A missing carry is a jump by 2^32 or nearly so, either way.
        counter.settled = counter.watch.bytes < 8 || (difference >= 0 && difference <= INT32_MAX);
    }
}

bool Counters::are_settled() const
{
    return std::all_of(m_counters.begin(), m_counters.end(), [](const Counter &counter) { return counter.settled; });
}

void Counters::clear()
{
    for (Counter &counter : m_counters) {
        counter.grown = 0;
    }
}

std::vector<std::pair<std::string, std::uint64_t>> Counters::growth() const
{
    std::vector<std::pair<std::string, std::uint64_t>> all;
    for (const Counter &counter : m_counters) {
        all.emplace_back(counter.watch.name, counter.grown < 0 ? 0 : static_cast<std::uint64_t>(counter.grown));
    }
    return all;
}

} // namespace weir_soc
