// SPDX-License-Identifier: MIT OR Apache-2.0
// One run: the warm-up, the counted part, and what is told about it.
#ifndef WEIR_SOC_SESSION_HPP
#define WEIR_SOC_SESSION_HPP

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "account.hpp"
#include "counters.hpp"
#include "json.hpp"
#include "lines.hpp"
#include "options.hpp"
#include "system.hpp"
#include "wires.hpp"

namespace weir_soc
{

class Session
{
  public:
    // Reads the files. Throws Failure.
    explicit Session(const Options &options);

    // To the end, or to the firmware's exit. Throws Failure if the firmware goes astray.
    void run();
    // What happened in the counted part, as the README describes it.
    std::string report();

  private:
    enum class Event { request, delivered, taken, exception, mret, mark, error, reset };
    struct Traced {
        std::uint64_t cycle;
        Event event;
        // The line, the cause or the mark.
        std::uint32_t number;
        std::optional<std::uint32_t> line;
    };

    void run_until(std::uint64_t cycle);
    void run_to(std::uint64_t cycle);
    void step();
    // Before the tick that leads to this cycle.
    void move_wires();
    void note_rare();
    void note_mark();
    void trace_lines(std::uint32_t lines, Event event);
    void start_counting();

    void report_uses(Json &json, bool exceptions) const;
    void report_lines(Json &json) const;
    void report_marks(Json &json) const;
    void report_errors(Json &json) const;
    void report_events(Json &json) const;

    Options m_options;
    System m_system;
    Wires m_wires;
    Account m_account;
    Lines m_lines;
    Counters m_counters;

    std::uint64_t m_cycle = 0;
    // Wires that rise in this cycle.
    std::uint32_t m_rises = 0;
    // Where the counted part begins.
    std::uint64_t m_start = 0;
    std::optional<std::uint32_t> m_exit;
    std::string m_sent;
    std::uint64_t m_resets = 0;
    std::uint64_t m_errors = 0;
    struct {
        std::uint64_t cycle = 0;
        std::uint32_t address = 0;
        bool is_write = false;
    } m_first_error;
    // Per mark, the cycles.
    std::vector<std::vector<std::uint64_t>> m_marks;
    std::vector<Traced> m_trace;
};

} // namespace weir_soc

#endif
