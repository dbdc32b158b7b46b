// SPDX-License-Identifier: MIT OR Apache-2.0
// What ends a run before its time.
#ifndef WEIR_SOC_FAILURE_HPP
#define WEIR_SOC_FAILURE_HPP

#include <stdexcept>
#include <string>

namespace weir_soc
{

// Something the caller or the firmware did; the message says where, what, and what would be right. The program ends with 2.
class Failure : public std::runtime_error
{
  public:
    explicit Failure(const std::string &message) : std::runtime_error(message)
    {
    }
};

} // namespace weir_soc

#endif
