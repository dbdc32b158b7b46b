/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "options.h"

#include <string.h>

#include "host.h"
#include "stages.h"

static const struct layout layouts[] = {
    {.above = 24, .driver = 23, .network = 18, .below = 17, .servers = 10, .modbus = {21, 16, 11, 4}}, /* ESP32 */
    {.above = 0, .driver = 9, .network = 8, .below = 6, .servers = 7, .modbus = {8, 7, 5, 4}},         /* P0 */
};

enum { LIMIT_BURST = 64 };

struct options options = {
    .driver = DRIVER_MASKED,
    .task = TASK_NONE,
    .urgency = URGENCY_BELOW,
    .packets = PACKETS_REAL,
    .period_us = 10000,
    .steps = 1000,
    .busy_ms = 40,
    .interval_ms = 100,
    .server = 1,
    .limit_burst = LIMIT_BURST,
    .work = 1,
    .descriptors = 176,
    .pseudo_descriptors = 32,
    .pseudo_length = 60,
    .begin_ms = 1000,
    .window_ms = 1000,
};

/* An option. Its value is the index of one of its words, or a number from `least` to `most`. */
static const struct option {
    const char *name;
    uint32_t *value;
    const char *words[5];
    uint32_t least, most;
} table[] = {
    {"driver", &options.driver, {"masked", "packet", "demux"}, 0, 0},
    {"layout", &options.layout_name, {"esp32", "p0"}, 0, 0},
    {"task", &options.task, {"none", "lateness", "utilisation", "tone"}, 0, 0},
    {"urgency", &options.urgency, {"above", "equal", "below"}, 0, 0},
    {"packets", &options.packets, {"real", "simulated"}, 0, 0},
    {"modbus", &options.modbus, {"together", "apart"}, 0, 0},
    {"server", &options.server, {"off", "on"}, 0, 0},
    {"server-urgency", &options.server_urgency, {0}, STAGES_COMMON_URGENCY + 1, 24},
    {"period-us", &options.period_us, {0}, 100, 1000000},
    {"deadline-us", &options.deadline_us, {0}, 1, 2000000},
    {"steps", &options.steps, {0}, 1, 1000000},
    {"quiet", &options.quiet, {"off", "on"}, 0, 0},
    {"busy-ms", &options.busy_ms, {0}, 1, 10000},
    {"interval-ms", &options.interval_ms, {0}, 1, 10000},
    {"limit", &options.limit, {"bucket", "bursty"}, 0, 0},
    {"limit-hz", &options.limit_hz, {0}, 0, 1000000},
    {"limit-burst", &options.limit_burst, {0}, 1, 255},
    {"budget", &options.budget, {0}, 0, 1000000},
    {"gather-us", &options.gather_us, {0}, 0, 1000000},
    {"work", &options.work, {0}, 1, 65535},
    {"pace", &options.pace, {0}, 0, 1000000},
    {"change-ms", &options.change_ms, {0}, 0, 100000},
    {"descriptors", &options.descriptors, {0}, 1, 1024},
    {"pseudo-descriptors", &options.pseudo_descriptors, {0}, 1, 1024},
    {"pseudo-length", &options.pseudo_length, {0}, 60, OPTIONS_PSEUDO_LONGEST},
    {"begin-ms", &options.begin_ms, {0}, 1, 100000},
    {"window-ms", &options.window_ms, {0}, 1, 100000},
    {"windows", &options.windows, {0}, 0, OPTIONS_WINDOWS},
};
enum { COUNT = sizeof table / sizeof table[0] };

static _Noreturn void refuse(const char *word, const char *why)
{
    host_print("node: `");
    host_print(word);
    host_print("`: ");
    host_print(why);
    host_print("\n");
    host_exit(2);
}

static _Noreturn void refuse_name(const char *word)
{
    host_print("node: `");
    host_print(word);
    host_print("` is no option; they are address=dhcp or address=A.B.C.D, neighbour");
    for (uint32_t at = 0; at < COUNT; at++) {
        host_print(", ");
        host_print(table[at].name);
    }
    host_print("\n");
    host_exit(2);
}

static _Noreturn void refuse_value(const char *word, const struct option *option)
{
    host_print("node: `");
    host_print(word);
    host_print("`: it is to be ");
    if (option->words[0] == NULL) {
        host_print("a number from ");
        host_print_number(option->least);
        host_print(" to ");
        host_print_number(option->most);
    }
    for (uint32_t at = 0; option->words[at] != NULL; at++) {
        host_print(at == 0 ? "" : " or ");
        host_print(option->words[at]);
    }
    host_print("\n");
    host_exit(2);
}

/* Reads a decimal number up to the character `end`. Returns false if there are no digits, other
 * characters, or too many digits. */
static bool read_number(const char **text, char end, uint32_t most, uint32_t *number)
{
    const char *at = *text;
    uint32_t value = 0;
    for (; *at >= '0' && *at <= '9'; at++) {
        value = value * 10 + (uint32_t) (*at - '0');
        if (value > most) {
            return false;
        }
    }
    if (at == *text || *at != end) {
        return false;
    }
    *text = at + 1;
    *number = value;
    return true;
}

/* Reads an IPv4 address, four numbers with dots, up to the character `end`. */
static bool read_ipv4(const char **text, char end, uint32_t *address)
{
    *address = 0;
    for (uint32_t byte = 0; byte < 4; byte++) {
        uint32_t number;
        if (!read_number(text, byte < 3 ? '.' : end, 255, &number)) {
            return false;
        }
        *address |= number << 8 * byte;
    }
    return *address != 0;
}

/* Returns whether a host in the node's network of 254 hosts can have this address. */
static bool is_a_hosts(uint32_t address)
{
    uint32_t first = address & 0xff, last = address >> 24;
    return first != 0 && first != 127 && first < 224 && last != 0 && last != 255;
}

static void read_address(const char *word, const char *text)
{
    options.address = 0;
    if (strcmp(text, "dhcp") != 0 && !(read_ipv4(&text, 0, &options.address) && is_a_hosts(options.address))) {
        refuse(word,
               "it is to be dhcp or a host's address, as in 10.0.0.2: the first number from 1 to 223 and not 127, the last from 1 to 254");
    }
}

static bool read_ethernet(const char *text, uint8_t address[6])
{
    static const char digits[] = "0123456789abcdef";
    for (uint32_t at = 0; at < 12; at++) {
        const char *digit = *text == 0 ? NULL : strchr(digits, *text);
        if (digit == NULL) {
            return false;
        }
        address[at / 2] = (uint8_t) (address[at / 2] << 4 | (digit - digits));
        text++;
        if (at % 2 == 1 && *text++ != (at < 11 ? ':' : 0)) {
            return false;
        }
    }
    return true;
}

static void read_neighbour(const char *word, const char *text)
{
    if (!read_ipv4(&text, '/', &options.neighbour) || !read_ethernet(text, options.neighbour_ethernet)) {
        refuse(word, "it is to be an address of IPv4 and one of Ethernet, as in 10.0.0.1/52:54:00:00:00:01");
    }
}

static bool read_value(const struct option *option, const char *text)
{
    if (option->words[0] == NULL) {
        return read_number(&text, 0, option->most, option->value) && *option->value >= option->least;
    }
    for (uint32_t at = 0; option->words[at] != NULL; at++) {
        if (strcmp(text, option->words[at]) == 0) {
            *option->value = at;
            return true;
        }
    }
    return false;
}

static void read_word(const char *word)
{
    const char *value = strchr(word, '=');
    uint32_t length = value == NULL ? 0 : (uint32_t) (value - word);
    if (length == 7 && memcmp(word, "address", 7) == 0) {
        read_address(word, value + 1);
        return;
    }
    if (length == 9 && memcmp(word, "neighbour", 9) == 0) {
        read_neighbour(word, value + 1);
        return;
    }
    for (uint32_t at = 0; at < COUNT; at++) {
        if (length > 0 && strlen(table[at].name) == length && memcmp(word, table[at].name, length) == 0) {
            if (!read_value(&table[at], value + 1)) {
                refuse_value(word, &table[at]);
            }
            return;
        }
    }
    refuse_name(word);
}

/* Collects the different priorities of the servers that have ports of their own. That of the UDP
 * server comes last. */
static uint32_t collect_urgencies(uint32_t urgencies[OPTIONS_MODBUS_SERVERS + 2])
{
    const struct layout *layout = options.layout;
    uint32_t count = 0;
    for (uint32_t server = 0; server < OPTIONS_MODBUS_SERVERS + 2; server++) {
        uint32_t urgency = server < OPTIONS_MODBUS_SERVERS    ? layout->modbus[server]
                           : server == OPTIONS_MODBUS_SERVERS ? layout->servers
                                                              : options.server_urgency;
        bool is_known = urgency == 0;
        for (uint32_t at = 0; at < count; at++) {
            is_known = is_known || urgencies[at] == urgency;
        }
        if (!is_known) {
            urgencies[count++] = urgency;
        }
    }
    return count;
}

/* Rejects a priority for which Weir has no class: each class has the priority of a server. */
static void refuse_urgency(void)
{
    uint32_t urgencies[OPTIONS_MODBUS_SERVERS + 2];
    if (options.driver != DRIVER_DEMUX || options.modbus != MODBUS_APART || collect_urgencies(urgencies) <= OPTIONS_SERVER_URGENCIES) {
        return;
    }
    host_print("node: `server-urgency`: with driver=demux modbus=apart and this layout it is to be ");
    for (uint32_t at = 0; at < OPTIONS_SERVER_URGENCIES; at++) {
        host_print(at == 0 ? "" : " or ");
        host_print_number(urgencies[at]);
    }
    host_print("\n");
    host_exit(2);
}

/* Rejects values that are valid alone but not in combination. */
static void refuse_combinations(void)
{
    refuse_urgency();
    /* change-ms halves the limit. The time of two bursts must be less than half of the range of the
     * 32-bit clock: 2^31 / (2 * 25 MHz) is 42 s. */
    uint32_t least_hz = options.change_ms != 0 ? (options.limit_hz + 1) / 2 : options.limit_hz;
    if (options.limit_hz != 0 && 42 * least_hz < options.limit_burst) {
        refuse("limit-hz", "it is to be limit-burst / 42 at least, with change-ms twice that");
    }
    uint32_t apart = options.neighbour ^ options.address;
    if (options.neighbour != 0 && (options.address == 0 || apart << 8 != 0 || apart == 0 || !is_a_hosts(options.neighbour))) {
        refuse("neighbour", "it is to be another address of the node's network: with address=10.0.0.2 one of 10.0.0.1 to 10.0.0.254");
    }
}

void options_read(void)
{
    static char line[512];
    int32_t length = host_command_line(line, sizeof line);
    if (length < 0) {
        refuse("", "the command line is too long, or QEMU was started without -semihosting-config enable=on");
    }
    /* Skip the first word, which is the program's name. */
    char *word = strchr(line, ' ');
    while (word != NULL) {
        *word++ = 0;
        char *next = strchr(word, ' ');
        if (next != NULL) {
            *next = 0;
        }
        if (*word != 0) {
            read_word(word);
        }
        if (next != NULL) {
            *next = ' ';
        }
        word = next;
    }
    options.layout = &layouts[options.layout_name];
#ifndef NODE_WEIR
    if (options.driver == DRIVER_DEMUX) {
        refuse("driver=demux", "this node is without Weir; build it by build.sh -DNODE_WEIR");
    }
    if (options.limit_hz != 0) {
        refuse("limit-hz", "this node is without Weir; build it by build.sh -DNODE_WEIR");
    }
    if (options.pace != 0) {
        refuse("pace", "this node is without Weir; build it by build.sh -DNODE_WEIR");
    }
#endif
    if (options.driver != DRIVER_DEMUX && (options.work != 1 || options.gather_us != 0 || options.budget != 0)) {
        refuse("work, gather-us, budget", "they are for driver=demux");
    }
    if (options.limit_hz == 0 && (options.limit != LIMIT_BUCKET || options.limit_burst != LIMIT_BURST)) {
        refuse("limit, limit-burst", "they are for a limit, which limit-hz gives");
    }
    if (!options.server && options.server_urgency != 0) {
        refuse("server-urgency", "it is for server=on");
    }
    if (options.change_ms != 0 && (options.driver != DRIVER_DEMUX || !options.server)) {
        refuse("change-ms", "it is for driver=demux server=on");
    }
#ifndef NODE_HARDENED
    if (options.neighbour != 0) {
        refuse("neighbour", "this node has no fixed entries of ARP; build it by build.sh -DNODE_HARDENED");
    }
#endif
    refuse_combinations();
    if (options.deadline_us == 0) {
        options.deadline_us = options.period_us;
    }
    if (options.task != TASK_NONE && options_task_urgency() == 0) {
        refuse("urgency=above", "nothing is above the driver in layout=p0; choose equal or below");
    }
    if (options.busy_ms > options.interval_ms) {
        refuse("busy-ms", "it is to be interval-ms at most");
    }
}

uint32_t options_task_urgency(void)
{
    switch (options.urgency) {
    case URGENCY_ABOVE:
        return options.layout->above;
    case URGENCY_EQUAL:
        return options.layout->driver;
    default:
        return options.layout->below;
    }
}
