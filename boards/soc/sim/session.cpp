// SPDX-License-Identifier: MIT OR Apache-2.0
#include "session.hpp"

#include <algorithm>

#include "files.hpp"

namespace weir_soc
{

namespace
{

// How often the variables are looked at: a byte that grows once in five cycles at most does not wrap unseen.
constexpr std::uint64_t look_cycles = 512;
// How long a begin or an end may wait for a variable of two words whose halves are being stored.
constexpr std::uint64_t settle_cycles = 4096;

} // namespace

Session::Session(const Options &options)
    : m_options(options), m_system(read_image(options.image), options.clock_hz), m_wires(read_moves(options.moves)),
      m_counters(options.watches), m_marks(options.marks.size())
{
    move_wires();
    m_system.tick();
}

void Session::run()
{
    run_until(m_options.warmup);
    if (!m_exit) {
        start_counting();
        run_until(m_start + m_options.cycles);
    }
}

void Session::run_until(std::uint64_t end)
{
    while (m_cycle < end && !m_exit) {
        run_to(std::min(end, (m_cycle / look_cycles + 1) * look_cycles));
        m_counters.look(m_system);
    }
    const std::uint64_t latest = end + settle_cycles;
    while (!m_counters.are_settled() && m_cycle < latest && !m_exit) {
        run_to(m_cycle + 1);
        m_counters.look(m_system);
    }
}

void Session::run_to(std::uint64_t end)
{
    while (m_cycle < end && !m_exit) {
        step();
    }
}

inline void Session::step()
{
    m_lines.offer(m_rises);
    m_account.look(m_system, m_cycle);
    m_lines.look(m_system);
    if (m_system.sends() || m_system.exits() || m_system.errs() || m_system.resets()) {
        note_rare();
    }
    if (!m_options.marks.empty() && m_system.retires()) {
        note_mark();
    }
    if (m_options.trace) {
        trace_lines(m_lines.rises(), Event::request);
        trace_lines(m_system.delivered(), Event::delivered);
        if (m_system.traps()) {
            const bool exception = m_system.is_exception();
            m_trace.push_back({m_cycle, exception ? Event::exception : Event::taken, m_system.trap_cause(), m_account.newest_line()});
        } else if (m_system.returns()) {
            m_trace.push_back({m_cycle, Event::mret, 0, std::nullopt});
        }
    }
    m_cycle++;
    move_wires();
    m_system.tick();
}

inline void Session::move_wires()
{
    m_rises = m_wires.next() == m_cycle ? m_wires.move(m_system, m_cycle) : 0;
}

void Session::note_rare()
{
    if (m_system.sends()) {
        m_sent += m_system.sent();
    }
    if (m_system.exits()) {
        m_exit = m_system.exit_code();
    }
    if (m_system.errs()) {
        if (m_errors++ == 0) {
            m_first_error = {m_cycle, m_system.error_address(), m_system.error_is_write()};
        }
        if (m_options.trace) {
            m_trace.push_back({m_cycle, Event::error, m_system.error_address(), std::nullopt});
        }
    }
    if (m_system.resets()) {
        m_resets++;
        m_account.reset(m_cycle);
        if (m_options.trace) {
            m_trace.push_back({m_cycle, Event::reset, 0, std::nullopt});
        }
    }
}

void Session::note_mark()
{
    const std::uint32_t pc = m_system.last_stage_pc();
    for (std::uint32_t index = 0; index < m_marks.size(); index++) {
        if (m_options.marks[index].address == pc) {
            m_marks[index].push_back(m_cycle);
            if (m_options.trace) {
                m_trace.push_back({m_cycle, Event::mark, index, std::nullopt});
            }
        }
    }
}

void Session::trace_lines(std::uint32_t lines, Event event)
{
    for (; lines != 0; lines &= lines - 1) {
        m_trace.push_back({m_cycle, event, static_cast<std::uint32_t>(__builtin_ctz(lines)), std::nullopt});
    }
}

void Session::start_counting()
{
    m_start = m_cycle;
    m_account.clear(m_cycle);
    m_lines.clear();
    m_counters.clear();
    for (auto &mark : m_marks) {
        mark.clear();
    }
    m_trace.clear();
    m_errors = 0;
    m_resets = 0;
}

} // namespace weir_soc
