// SPDX-License-Identifier: MIT OR Apache-2.0
// By how much variables of the firmware grow.
#ifndef WEIR_SOC_COUNTERS_HPP
#define WEIR_SOC_COUNTERS_HPP

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "options.hpp"
#include "system.hpp"

namespace weir_soc
{

// Follows wrap-arounds as long as a variable grows by less than half of its range between two looks.
class Counters
{
  public:
    explicit Counters(const std::vector<Watch> &watches);

    void look(const System &system);
    // Whether no variable of two words is between the stores of its halves: then a value is not what the firmware means.
    bool are_settled() const;
    // From now on growth is counted anew.
    void clear();
    // By name: what was added since; one that fell counts 0.
    std::vector<std::pair<std::string, std::uint64_t>> growth() const;

  private:
    struct Counter {
        Watch watch;
        std::uint64_t last;
        std::int64_t grown;
        bool settled;
    };

    std::vector<Counter> m_counters;
};

} // namespace weir_soc

#endif
