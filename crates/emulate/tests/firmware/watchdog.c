// SPDX-License-Identifier: GPL-3.0-or-later
// Starts the watchdog and does not serve it.
#include <avr/wdt.h>

int main(void)
{
    wdt_enable(WDTO_15MS);
    for (;;) {
    }
}
