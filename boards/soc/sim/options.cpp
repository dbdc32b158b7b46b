// SPDX-License-Identifier: MIT OR Apache-2.0
#include "options.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "failure.hpp"
#include "system.hpp"

namespace weir_soc
{

const char *const usage =
    "usage: weir-soc --image FILE.bin --cycles N [--warmup N] [--clock-hz N] [--moves LINE=FILE]... [--watch NAME=ADDR:BYTES]...\n"
    "                [--mark NAME=ADDR]... [--trace]\n"
    "\n"
    "Runs an image from address 0 on the board soc and prints what happened as JSON.\n"
    "  --image FILE.bin         what the RAM holds at power-up\n"
    "  --cycles N               clocks to count\n"
    "  --warmup N               clocks to run before the counting (default 0)\n"
    "  --clock-hz N             what the firmware reads as its clock (default 50000000)\n"
    "  --moves LINE=FILE        how an event wire moves: little-endian 64-bit words, cycle << 1 | level, in order\n"
    "  --watch NAME=ADDR:BYTES  follow an unsigned variable in RAM, of 1, 2, 4 or 8 bytes\n"
    "  --mark NAME=ADDR         note the cycles at which the instruction at ADDR retires\n"
    "  --trace                  list every request, delivery, interrupt, return and mark\n";

namespace
{

std::optional<std::uint64_t> parse_number(std::string_view text)
{
    int base = 10;
    if (text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
        text.remove_prefix(2);
        base = 16;
    }
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
    if (error != std::errc() || end != text.data() + text.size()) {
        return std::nullopt;
    }
    return number;
}

std::uint64_t number_in(std::string_view option, std::string_view text, std::uint64_t least, std::uint64_t most)
{
    const auto number = parse_number(text);
    if (!number || *number < least || *number > most) {
        throw Failure(std::string(option) + " " + std::string(text) + ": a number from " + std::to_string(least) + " to " +
                      std::to_string(most) + " is needed");
    }
    return *number;
}

// The two sides of the first `=`.
std::pair<std::string, std::string> split(std::string_view option, std::string_view text, std::string_view form)
{
    const auto at = text.find('=');
    if (at == std::string_view::npos || at == 0) {
        throw Failure(std::string(option) + " " + std::string(text) + ": it is written " + std::string(form));
    }
    return {std::string(text.substr(0, at)), std::string(text.substr(at + 1))};
}

template <typename Named> void refuse_second(std::string_view option, const std::vector<Named> &all, const std::string &name)
{
    if (std::any_of(all.begin(), all.end(), [&](const Named &other) { return other.name == name; })) {
        throw Failure(std::string(option) + " " + name + ": given twice; every name needs to be another one");
    }
}

Moves parse_moves(std::string_view text, const std::vector<Moves> &before)
{
    const auto [line, file] = split("--moves", text, "LINE=FILE");
    const auto number = static_cast<std::uint32_t>(number_in("--moves", line, 0, System::lines - 1));
    if (std::any_of(before.begin(), before.end(), [&](const Moves &other) { return other.line == number; })) {
        throw Failure("--moves " + line + ": given twice; a wire has one driver");
    }
    return {number, file};
}

Watch parse_watch(std::string_view text, const std::vector<Watch> &before)
{
    constexpr std::string_view form = "NAME=ADDR:BYTES, with 1, 2, 4 or 8 bytes in RAM";
    const auto [name, where] = split("--watch", text, form);
    const auto colon = where.find(':');
    const auto address = parse_number(std::string_view(where).substr(0, colon));
    const auto bytes = colon == std::string::npos ? std::nullopt : parse_number(std::string_view(where).substr(colon + 1));
    const bool fits = address && bytes && (*bytes == 1 || *bytes == 2 || *bytes == 4 || *bytes == 8) && *address < System::ram_bytes &&
                      *address + *bytes <= System::ram_bytes;
    if (!fits) {
        throw Failure("--watch " + std::string(text) + ": it is written " + std::string(form) + " (below " +
                      std::to_string(System::ram_bytes) + ")");
    }
    refuse_second("--watch", before, name);
    return {name, static_cast<std::uint32_t>(*address), static_cast<std::uint32_t>(*bytes)};
}

Mark parse_mark(std::string_view text, const std::vector<Mark> &before)
{
    const auto [name, where] = split("--mark", text, "NAME=ADDR");
    const auto address = parse_number(where);
    if (!address || *address >= System::ram_bytes || *address % 4 != 0) {
        throw Failure("--mark " + std::string(text) +
                      ": it is written NAME=ADDR, with the address of an instruction in RAM (a multiple of 4 below " +
                      std::to_string(System::ram_bytes) + ")");
    }
    refuse_second("--mark", before, name);
    return {name, static_cast<std::uint32_t>(*address)};
}

} // namespace

Options parse_options(int count, const char *const *arguments)
{
    // Cycle numbers are halves of 64-bit words in the files of moves, and sums of them must not wrap.
    constexpr std::uint64_t most_cycles = std::uint64_t{1} << 62;
    Options options;
    for (int index = 1; index < count; index++) {
        const std::string_view option = arguments[index];
        if (option == "--trace") {
            options.trace = true;
            continue;
        }
        if (option == "--help" || option == "-h") {
            options.help = true;
            return options;
        }
        constexpr std::string_view with_value[] = {"--image", "--cycles", "--warmup", "--clock-hz", "--moves", "--watch", "--mark"};
        if (std::find(std::begin(with_value), std::end(with_value), option) == std::end(with_value)) {
            throw Failure(std::string(option) + ": there is no such option; see weir-soc --help");
        }
        if (++index == count) {
            throw Failure(std::string(option) + ": its value is missing; see weir-soc --help");
        }
        const std::string_view text = arguments[index];
        if (option == "--image") {
            options.image = text;
        } else if (option == "--cycles") {
            options.cycles = number_in(option, text, 1, most_cycles);
        } else if (option == "--warmup") {
            options.warmup = number_in(option, text, 0, most_cycles);
        } else if (option == "--clock-hz") {
            options.clock_hz = static_cast<std::uint32_t>(number_in(option, text, 1, UINT32_MAX));
        } else if (option == "--moves") {
            options.moves.push_back(parse_moves(text, options.moves));
        } else if (option == "--watch") {
            options.watches.push_back(parse_watch(text, options.watches));
        } else {
            options.marks.push_back(parse_mark(text, options.marks));
        }
    }
    if (options.image.empty()) {
        throw Failure("--image is missing: the file with what the RAM holds; see weir-soc --help");
    }
    if (options.cycles == 0) {
        throw Failure("--cycles is missing: how many clocks to count; see weir-soc --help");
    }
    return options;
}

} // namespace weir_soc
