// SPDX-License-Identifier: MIT OR Apache-2.0
// Writes JSON. Commas and line breaks are its business; that every begin has its end is the caller's.
#ifndef WEIR_SOC_JSON_HPP
#define WEIR_SOC_JSON_HPP

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir_soc
{

class Json
{
  public:
    Json &begin_object()
    {
        return open('{', '}');
    }
    Json &begin_array()
    {
        return open('[', ']');
    }
    Json &end();
    // The name of the value that comes next.
    Json &key(std::string_view name);
    Json &value(std::uint64_t number);
    Json &value(bool truth);
    // Bytes that are no ASCII are written as the code points of the same number, so any text is valid JSON.
    Json &value(std::string_view text);
    // Without it a string literal would be a truth.
    Json &value(const char *text)
    {
        return value(std::string_view(text));
    }
    Json &null();

    const std::string &text() const
    {
        return m_text;
    }

  private:
    Json &open(char begin, char end);
    void separate();
    void quote(std::string_view text);

    std::string m_text;
    std::string m_ends;
    bool m_first = true;
    bool m_after_key = false;
};

} // namespace weir_soc

#endif
