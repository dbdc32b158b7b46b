// SPDX-License-Identifier: MIT OR Apache-2.0
#include "files.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "failure.hpp"
#include "system.hpp"

namespace weir_soc
{

namespace
{

std::vector<std::uint8_t> read_file(const std::string &path)
{
    const std::unique_ptr<std::FILE, int (*)(std::FILE *)> file(std::fopen(path.c_str(), "rb"), std::fclose);
    std::vector<std::uint8_t> bytes;
    if (file) {
        std::array<std::uint8_t, 65536> part;
        for (std::size_t read; (read = std::fread(part.data(), 1, part.size(), file.get())) != 0;) {
            bytes.insert(bytes.end(), part.begin(), part.begin() + static_cast<std::ptrdiff_t>(read));
        }
    }
    // A folder can be opened, and fails at its first byte.
    if (!file || std::ferror(file.get()) != 0) {
        throw Failure(path + ": it cannot be read: " + std::strerror(errno));
    }
    return bytes;
}

} // namespace

std::vector<std::uint8_t> read_image(const std::string &path)
{
    auto image = read_file(path);
    if (image.empty()) {
        throw Failure(path + ": it is empty; an image begins with the instruction at address 0");
    }
    if (image.size() > System::ram_bytes) {
        throw Failure(path + ": it has " + std::to_string(image.size()) + " bytes and the RAM " + std::to_string(System::ram_bytes) +
                      "; an image is what objcopy -O binary makes of the sections to load");
    }
    return image;
}

std::vector<Move> read_moves(const std::vector<Moves> &files)
{
    std::vector<Move> all;
    for (const auto &moves : files) {
        const auto bytes = read_file(moves.file);
        if (bytes.size() % 8 != 0) {
            throw Failure(moves.file + ": its " + std::to_string(bytes.size()) + " bytes are no sequence of 64-bit words");
        }
        for (std::size_t at = 0; at < bytes.size(); at += 8) {
            std::uint64_t word = 0;
            for (std::size_t byte = 8; byte-- > 0;) {
                word = word << 8 | bytes[at + byte];
            }
            const std::uint64_t cycle = word >> 1;
            if (at != 0 && cycle <= all.back().cycle) {
                throw Failure(moves.file + ": move " + std::to_string(at / 8) + " (from 0) is at cycle " + std::to_string(cycle) +
                              ", the one before it at " + std::to_string(all.back().cycle) + "; the cycles must grow");
            }
            all.push_back({cycle, moves.line, (word & 1) != 0});
        }
    }
    std::stable_sort(all.begin(), all.end(), [](const Move &one, const Move &other) { return one.cycle < other.cycle; });
    return all;
}

} // namespace weir_soc
