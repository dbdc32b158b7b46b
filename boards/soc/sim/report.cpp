// SPDX-License-Identifier: MIT OR Apache-2.0
// What a session tells. The fields are described in the board's README.
#include "session.hpp"

#include <array>

namespace weir_soc
{

namespace
{

void put_use(Json &json, const Use &use)
{
    json.key("taken").value(use.taken);
    json.key("cycles").value(use.cycles);
    json.key("longest_cycles").value(use.longest_cycles);
    json.key("instructions").value(use.instructions);
    json.key("longest_instructions").value(use.longest_instructions);
}

void put_line(Json &json, const std::optional<std::uint32_t> &line)
{
    json.key("line");
    if (line) {
        json.value(std::uint64_t{*line});
    } else {
        json.null();
    }
}

} // namespace

std::string Session::report()
{
    m_account.charge(m_cycle);
    std::uint64_t instructions = m_account.background().instructions;
    for (const auto &[cause, use] : m_account.uses()) {
        instructions += use.instructions;
    }
    Json json;
    json.begin_object();
    json.key("cycles").value(m_cycle - m_start);
    json.key("clock_hz").value(std::uint64_t{m_options.clock_hz});
    json.key("instructions").value(instructions);
    json.key("background").begin_object();
    json.key("cycles").value(m_account.background().cycles);
    json.key("instructions").value(m_account.background().instructions);
    json.end();
    report_uses(json, false);
    report_uses(json, true);
    report_lines(json);
    json.key("counters").begin_object();
    for (const auto &[name, grown] : m_counters.growth()) {
        json.key(name).value(grown);
    }
    json.end();
    report_marks(json);
    json.key("uart").value(m_sent);
    json.key("exit");
    if (m_exit) {
        json.value(std::uint64_t{*m_exit});
    } else {
        json.null();
    }
    report_errors(json);
    json.key("resets").value(m_resets);
    if (m_options.trace) {
        report_events(json);
    }
    json.end();
    return json.text() + "\n";
}

void Session::report_uses(Json &json, bool exceptions) const
{
    json.key(exceptions ? "exceptions" : "interrupts").begin_array();
    for (const auto &[cause, use] : m_account.uses()) {
        if (cause.exception != exceptions) {
            continue;
        }
        json.begin_object();
        json.key("cause").value(std::uint64_t{cause.code});
        if (!exceptions) {
            put_line(json, cause.line);
        }
        put_use(json, use);
        json.end();
    }
    json.end();
}

void Session::report_lines(Json &json) const
{
    json.key("lines").begin_array();
    std::uint64_t number = 0;
    for (const LineUse &use : m_lines.uses()) {
        json.begin_object();
        json.key("line").value(number++);
        json.key("offered").value(use.offered);
        json.key("requested").value(use.requested);
        json.key("delivered").value(use.delivered);
        json.key("missed").value(use.missed);
        json.end();
    }
    json.end();
}

void Session::report_marks(Json &json) const
{
    json.key("marks").begin_object();
    for (std::size_t index = 0; index < m_marks.size(); index++) {
        json.key(m_options.marks[index].name).begin_array();
        for (const std::uint64_t cycle : m_marks[index]) {
            json.value(cycle - m_start);
        }
        json.end();
    }
    json.end();
}

void Session::report_errors(Json &json) const
{
    json.key("bus_errors").begin_object();
    json.key("count").value(m_errors);
    json.key("first");
    if (m_errors == 0) {
        json.null();
    } else {
        json.begin_object();
        json.key("cycle").value(m_first_error.cycle - m_start);
        json.key("address").value(std::uint64_t{m_first_error.address});
        json.key("write").value(m_first_error.is_write);
        json.end();
    }
    json.end();
}

void Session::report_events(Json &json) const
{
    // In the order of Event.
    constexpr std::array<const char *, 8> names = {"request", "delivered", "taken", "exception", "mret", "mark", "error", "reset"};
    json.key("events").begin_array();
    for (const Traced &traced : m_trace) {
        json.begin_object();
        json.key("cycle").value(traced.cycle - m_start);
        json.key("event").value(names[static_cast<std::size_t>(traced.event)]);
        switch (traced.event) {
        case Event::request:
        case Event::delivered:
            json.key("line").value(std::uint64_t{traced.number});
            break;
        case Event::taken:
            json.key("cause").value(std::uint64_t{traced.number});
            put_line(json, traced.line);
            break;
        case Event::exception:
            json.key("cause").value(std::uint64_t{traced.number});
            break;
        case Event::mark:
            json.key("name").value(m_options.marks[traced.number].name);
            break;
        case Event::error:
            json.key("address").value(std::uint64_t{traced.number});
            break;
        case Event::mret:
        case Event::reset:
            break;
        }
        json.end();
    }
    json.end();
}

} // namespace weir_soc
