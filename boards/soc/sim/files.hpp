// SPDX-License-Identifier: MIT OR Apache-2.0
// What is read from files: images and the moves of wires.
#ifndef WEIR_SOC_FILES_HPP
#define WEIR_SOC_FILES_HPP

#include <cstdint>
#include <string>
#include <vector>

#include "options.hpp"

namespace weir_soc
{

// Throws Failure if the file cannot be read, is empty, or is larger than the RAM.
std::vector<std::uint8_t> read_image(const std::string &path);

// From `cycle` on a wire has this level.
struct Move {
    std::uint64_t cycle;
    std::uint32_t line;
    bool level;
};

// The moves of all wires in the order of their cycles. Throws Failure if a file cannot be read, is no sequence of 64-bit words, or has a cycle that
// is not after the one before it.
std::vector<Move> read_moves(const std::vector<Moves> &files);

} // namespace weir_soc

#endif
