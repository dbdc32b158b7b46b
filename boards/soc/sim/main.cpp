// SPDX-License-Identifier: MIT OR Apache-2.0
// weir-soc: runs firmware on the simulated board. Exit: 0 there is a report; 2 there is none, and the message says why.
#include <cstdio>
#include <exception>
#include <string>

#include "failure.hpp"
#include "options.hpp"
#include "session.hpp"

namespace
{

// A full disk shows at the flush at the latest.
void print(const std::string &text)
{
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
        throw weir_soc::Failure("the output cannot be written");
    }
}

} // namespace

int main(int count, char **arguments)
{
    try {
        const auto options = weir_soc::parse_options(count, arguments);
        if (options.help) {
            print(weir_soc::usage);
            return 0;
        }
        weir_soc::Session session(options);
        session.run();
        print(session.report());
        return 0;
    } catch (const std::exception &error) {
        std::fprintf(stderr, "weir-soc: %s\n", error.what());
        return 2;
    }
}
