/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The guest's network: a plugin of QEMU that hands packets to the guest's network card at exact
 * times of the guest's own (virtual) clock. The host's load has no influence, so the same packets
 * come at the same instruction in every run, and creating them costs the guest nothing.
 *
 *     qemu-system-x86_64 -plugin packets.so,netdev=ID,floods=FILE,sent=FILE ...
 *
 * The file `floods` contains the floods that the guest can start, one after another. Words have 64
 * bits, the lower byte first. The first word of a flood is the number of its packets. Then each
 * packet has four words: when it is due after the start of the flood (ns), its flow, its version of
 * IP (4 or 6), and the length of its UDP payload in bytes.
 *
 * A guest starts flood N (from 1) by writing N to the I/O port 0x5a0. Writing 0 ends the flood, and
 * the remaining packets are not sent. When QEMU ends, the plugin writes the numbers of packets that
 * the card has accepted and lost to the file `sent`, as JSON.
 *
 * A packet of flow F goes from 10.0.0.1 or fd00::1, port 4000 + F, to 10.0.0.2 or fd00::2, port
 * 5000 + F. Its payload begins with the header of crates/linux/load/src/payload.rs. The time stamp
 * is that of the virtual clock, which the guest reads as its time-stamp counter (-icount shift=0).
 *
 * If the card has no free buffer, the packet is lost, as on a real card, and is counted in `lost`.
 * So at most one packet waits in QEMU's queue.
 *
 * QEMU exports the functions that are declared here to its modules and plugins, but has no header
 * for them. The declarations are those of QEMU 7.2 and 10.0; see boards/linux/README.md.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef uint64_t qemu_plugin_id_t;
struct client;       /* NetClientState */
struct timer_groups; /* QEMUTimerListGroup */
struct access {      /* MemoryRegionOps; members that are not needed here are 0 */
    uint64_t (*read)(void *opaque, uint64_t address, unsigned size);
    void (*write)(void *opaque, uint64_t address, uint64_t value, unsigned size);
    void *unused[2];
    int endianness;
    struct {
        unsigned least, most;
        bool unaligned;
        void *accepts;
    } valid;
    struct {
        unsigned least, most;
        bool unaligned;
    } implemented;
};

extern void qemu_plugin_register_vcpu_init_cb(qemu_plugin_id_t id, void (*called)(qemu_plugin_id_t id, unsigned cpu));
extern void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, void (*called)(qemu_plugin_id_t id, void *data), void *data);
extern struct client *qemu_find_netdev(const char *id);
extern int qemu_can_send_packet(struct client *client);
extern long qemu_send_packet(struct client *client, const uint8_t *bytes, int length);
extern int64_t qemu_clock_get_ns(int clock);
extern void timer_init_full(void *timer, struct timer_groups *groups, int clock, int scale, int attributes, void (*called)(void *data),
                            void *data);
extern void timer_mod_ns(void *timer, int64_t at);
extern void timer_del(void *timer);
extern void *get_system_io(void);
extern void memory_region_init_io(void *region, void *owner, const struct access *access, void *opaque, const char *name, uint64_t size);
extern void memory_region_add_subregion(void *parent, uint64_t at, void *region);

/* boards/linux/build.sh finds the version that the installed QEMU accepts. */
EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;
EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv);

enum {
    CLOCK_VIRTUAL = 1,
    LITTLE_ENDIAN_DEVICE = 2,
    PORT = 0x5a0,
    FLOWS = 16,
    FLOODS = 255, /* a byte names the flood */
    ETHERNET = 14,
    IPV4 = 20,
    IPV6 = 40,
    UDP = 8,
    STAMP = 28,
    MTU = 1500
};

struct packet {
    uint64_t due, flow, version, length;
};

struct flood {
    const struct packet *packets;
    uint64_t count;
    uint64_t sent[FLOWS], lost[FLOWS];
};

static struct {
    const char *netdev, *floods_path, *sent_path;
    struct flood floods[FLOODS];
    unsigned flood_count;
    struct flood *running;
    uint64_t next;
    int64_t began;
    uint64_t sequences[FLOWS];
    struct client *client;
    /* Memory for QEMU's own types, with room to spare: they need 48 and 272 bytes. */
    _Alignas(16) uint8_t timer[256];
    _Alignas(16) uint8_t region[2048];
    uint8_t frame[ETHERNET + MTU];
} network;

static void fail(const char *what, const char *which)
{
    fprintf(stderr, "packets: %s%s\n", what, which);
    exit(2);
}

static void put(uint8_t *at, unsigned bytes, uint64_t value)
{
    while (bytes-- > 0) {
        at[bytes] = (uint8_t) value;
        value >>= 8;
    }
}

/* The checksum of RFC 1071 over `count` bytes, added to an earlier sum. */
static unsigned checksum(uint64_t sum, const uint8_t *bytes, uint64_t count)
{
    for (uint64_t at = 0; at < count; at++) {
        sum += at % 2 ? bytes[at] : (uint64_t) bytes[at] << 8;
    }
    while (sum > 0xffff) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return ~(unsigned) sum & 0xffff;
}

static uint64_t headers_of(const struct packet *packet)
{
    return (packet->version == 6 ? IPV6 : IPV4) + UDP;
}

/*
 * Writes a packet into `network.frame`, and returns the length of the frame in bytes. The
 * destination is the Ethernet address that run.sh gives the card by `-device`.
 */
static int make_frame(const struct packet *packet)
{
    static const uint8_t ethernet[ETHERNET] = {0x52, 0x54, 0, 0x12, 0x34, 0x56, 0x52, 0x54, 0, 0, 0, 1};
    static const uint8_t ipv4[IPV4] = {0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2};
    static const uint8_t ipv6[IPV6] = {0x60, 0, 0, 0, 0, 0, 17, 64, 0xfd, [23] = 1, [24] = 0xfd, [39] = 2};
    bool six = packet->version == 6;
    uint8_t *ip = network.frame + ETHERNET, *udp = ip + (six ? IPV6 : IPV4), *payload = udp + UDP;
    uint64_t datagram = UDP + packet->length;
    memcpy(network.frame, ethernet, sizeof ethernet);
    put(network.frame + 12, 2, six ? 0x86dd : 0x0800);
    if (six) {
        memcpy(ip, ipv6, sizeof ipv6);
        put(ip + 4, 2, datagram);
    } else {
        memcpy(ip, ipv4, sizeof ipv4);
        put(ip + 2, 2, IPV4 + datagram);
        put(ip + 10, 2, checksum(0, ip, IPV4));
    }
    put(udp, 2, 4000 + packet->flow);
    put(udp + 2, 2, 5000 + packet->flow);
    put(udp + 4, 2, datagram);
    /* The checksum is left out, since a real card would have checked it. */
    put(udp + 6, 2, 0);
    memcpy(payload, "WEIR", 4);
    put(payload + 4, 4, packet->length);
    put(payload + 8, 4, packet->flow);
    put(payload + 12, 8, network.sequences[packet->flow]++);
    put(payload + 20, 8, (uint64_t) qemu_clock_get_ns(CLOCK_VIRTUAL));
    if (six) {
        /*
         * In IPv6 the checksum is required, and includes the addresses (RFC 8200 section 8.1). The
         * sum 0 is written as 0xffff, which is equal in one's complement.
         */
        unsigned sum = checksum(17 + datagram, ip + 8, 32 + datagram);
        put(udp + 6, 2, sum ? sum : 0xffff);
    }
    return (int) (ETHERNET + headers_of(packet) + packet->length);
}

static void send_due(void *data)
{
    struct flood *flood = network.running;
    (void) data;
    while (flood && network.next < flood->count) {
        const struct packet *packet = &flood->packets[network.next];
        int64_t at = network.began + (int64_t) packet->due;
        if (at > qemu_clock_get_ns(CLOCK_VIRTUAL)) {
            timer_mod_ns(network.timer, at);
            return;
        }
        network.next++;
        int length = make_frame(packet);
        if (qemu_can_send_packet(network.client)) {
            qemu_send_packet(network.client, network.frame, length);
            flood->sent[packet->flow]++;
        } else {
            flood->lost[packet->flow]++;
        }
    }
    network.running = NULL;
}

static uint64_t read_port(void *opaque, uint64_t address, unsigned size)
{
    (void) opaque, (void) address, (void) size;
    return network.running != NULL;
}

static void write_port(void *opaque, uint64_t address, uint64_t value, unsigned size)
{
    (void) opaque, (void) address, (void) size;
    timer_del(network.timer);
    network.running = NULL;
    if (value >= 1 && value <= network.flood_count) {
        if (!network.client) {
            network.client = qemu_find_netdev(network.netdev);
        }
        if (!network.client) {
            fail("QEMU has no netdev ", network.netdev);
        }
        network.running = &network.floods[value - 1];
        network.next = 0;
        network.began = qemu_clock_get_ns(CLOCK_VIRTUAL);
        memset(network.sequences, 0, sizeof network.sequences);
        send_due(NULL);
    } else if (value != 0) {
        fail("the guest starts a flood that is not in ", network.floods_path);
    }
}

static void add_port(qemu_plugin_id_t id, unsigned cpu)
{
    static const struct access access = {
        .read = read_port,
        .write = write_port,
        .endianness = LITTLE_ENDIAN_DEVICE,
        .implemented = {.least = 1, .most = 1},
    };
    (void) id;
    if (cpu == 0) {
        timer_init_full(network.timer, NULL, CLOCK_VIRTUAL, 1, 0, send_due, NULL);
        memory_region_init_io(network.region, NULL, &access, NULL, "weir-packets", 1);
        memory_region_add_subregion(get_system_io(), PORT, network.region);
    }
}

static void read_floods(void)
{
    FILE *file = fopen(network.floods_path, "rb");
    uint64_t count;
    if (!file) {
        fail("cannot read ", network.floods_path);
    }
    while (fread(&count, sizeof count, 1, file) == 1) {
        struct packet *packets = count < 1u << 28 ? calloc(count + 1, sizeof *packets) : NULL;
        if (network.flood_count == FLOODS || !packets || fread(packets, sizeof *packets, count, file) != count) {
            fail("this is no list of floods: ", network.floods_path);
        }
        for (uint64_t index = 0; index < count; index++) {
            const struct packet *packet = &packets[index];
            bool ordered = index == 0 || packet->due >= packets[index - 1].due;
            bool known = packet->flow < FLOWS && (packet->version == 4 || packet->version == 6);
            if (!ordered || !known || packet->length < STAMP || packet->length > MTU - headers_of(packet)) {
                fail("a packet is out of order, of an unknown flow or version of IP, or too short or too long, in ", network.floods_path);
            }
        }
        network.floods[network.flood_count].packets = packets;
        network.floods[network.flood_count++].count = count;
    }
    fclose(file);
}

static void write_numbers(FILE *file, const char *name, const uint64_t *numbers)
{
    fprintf(file, "\"%s\": [", name);
    for (unsigned flow = 0; flow < FLOWS; flow++) {
        fprintf(file, "%s%" PRIu64, flow ? ", " : "", numbers[flow]);
    }
    fprintf(file, "]");
}

static void write_sent(qemu_plugin_id_t id, void *data)
{
    FILE *file = fopen(network.sent_path, "w");
    (void) id, (void) data;
    if (!file) {
        fail("cannot write ", network.sent_path);
    }
    fprintf(file, "[\n");
    for (unsigned index = 0; index < network.flood_count; index++) {
        fprintf(file, "  {");
        write_numbers(file, "sent", network.floods[index].sent);
        fprintf(file, ", ");
        write_numbers(file, "lost", network.floods[index].lost);
        fprintf(file, "}%s\n", index + 1 < network.flood_count ? "," : "");
    }
    fprintf(file, "]\n");
    fclose(file);
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv)
{
    (void) info;
    for (int at = 0; at < argc; at++) {
        char *value = strchr(argv[at], '=');
        if (value && strncmp(argv[at], "netdev=", 7) == 0) {
            network.netdev = value + 1;
        } else if (value && strncmp(argv[at], "floods=", 7) == 0) {
            network.floods_path = value + 1;
        } else if (value && strncmp(argv[at], "sent=", 5) == 0) {
            network.sent_path = value + 1;
        }
    }
    if (!network.netdev || !network.floods_path || !network.sent_path) {
        fail("the options are netdev=ID, floods=FILE and sent=FILE", "");
    }
    /* The plugin needs copies, since QEMU frees the options after this call. */
    network.netdev = strdup(network.netdev);
    network.floods_path = strdup(network.floods_path);
    network.sent_path = strdup(network.sent_path);
    read_floods();
    qemu_plugin_register_vcpu_init_cb(id, add_port);
    qemu_plugin_register_atexit_cb(id, write_sent, NULL);
    return 0;
}
