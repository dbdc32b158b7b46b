// SPDX-License-Identifier: MIT OR Apache-2.0
// The command line.
#ifndef WEIR_SOC_OPTIONS_HPP
#define WEIR_SOC_OPTIONS_HPP

#include <cstdint>
#include <string>
#include <vector>

namespace weir_soc
{

// A variable in RAM to follow.
struct Watch {
    std::string name;
    std::uint32_t address;
    // 1, 2, 4 or 8.
    std::uint32_t bytes;
};

// An instruction whose retirements are noted.
struct Mark {
    std::string name;
    std::uint32_t address;
};

// Where the moves of one event wire stand.
struct Moves {
    std::uint32_t line;
    std::string file;
};

struct Options {
    std::string image;
    // Clocks that are counted, after the warm-up.
    std::uint64_t cycles = 0;
    std::uint64_t warmup = 0;
    // What the firmware reads in CLOCK_HZ; of no meaning to the simulation.
    std::uint32_t clock_hz = 50000000;
    std::vector<Moves> moves;
    std::vector<Watch> watches;
    std::vector<Mark> marks;
    bool trace = false;
    // Only the usage is wanted.
    bool help = false;
};

extern const char *const usage;

// Throws Failure if an argument is missing, unknown or out of its range.
Options parse_options(int count, const char *const *arguments);

} // namespace weir_soc

#endif
