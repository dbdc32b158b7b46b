// SPDX-License-Identifier: MIT OR Apache-2.0
#include "json.hpp"

#include <array>
#include <cstdio>

namespace weir_soc
{

Json &Json::open(char begin, char end)
{
    separate();
    m_text += begin;
    m_ends += end;
    m_first = true;
    return *this;
}

Json &Json::end()
{
    m_text += m_ends.back();
    m_ends.pop_back();
    m_first = false;
    return *this;
}

Json &Json::key(std::string_view name)
{
    separate();
    quote(name);
    m_text += ": ";
    m_after_key = true;
    return *this;
}

Json &Json::value(std::uint64_t number)
{
    separate();
    m_text += std::to_string(number);
    return *this;
}

Json &Json::value(bool truth)
{
    separate();
    m_text += truth ? "true" : "false";
    return *this;
}

Json &Json::value(std::string_view text)
{
    separate();
    quote(text);
    return *this;
}

Json &Json::null()
{
    separate();
    m_text += "null";
    return *this;
}

void Json::separate()
{
    if (m_after_key) {
        m_after_key = false;
        return;
    }
    if (!m_first) {
        m_text += ',';
    }
    // A line per member of the outermost object keeps the output readable.
    if (m_ends.size() == 1) {
        m_text += '\n';
    } else if (!m_first) {
        m_text += ' ';
    }
    m_first = false;
}

void Json::quote(std::string_view text)
{
    m_text += '"';
    for (const char character : text) {
        const auto code = static_cast<unsigned char>(character);
        if (character == '"' || character == '\\') {
            m_text += '\\';
            m_text += character;
        } else if (code < 0x20 || code > 0x7e) {
            std::array<char, 8> escape{};
            std::snprintf(escape.data(), escape.size(), "\\u%04x", static_cast<unsigned>(code));
            m_text += escape.data();
        } else {
            m_text += character;
        }
    }
    m_text += '"';
}

} // namespace weir_soc
