/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "servers.h"

#include "lwip/api.h"
#include "lwip/apps/httpd.h"
#include "lwip/sys.h"
#include "lwip/tcp.h"
#include "lwip/tcpip.h"
#include "lwip/udp.h"

#include "failure.h"
#include "modbus.h"
#include "options.h"
#include "stages.h"
#include "sizes.h"
#include "tally.h"

enum { MODBUS_TASKS = 4, SEND_TIMEOUT_MS = 5000, KEEP_ALIVE_MS = 1000, KEEP_ALIVE_TIMES = 3 };

static void run_udp(void *unused)
{
    (void) unused;
    struct netconn *connection = netconn_new(NETCONN_UDP);
    LWIP_ASSERT("the UDP server has a port", connection != NULL && netconn_bind(connection, IP_ADDR_ANY, SERVERS_UDP_PORT) == ERR_OK);
    for (;;) {
        struct netbuf *datagram;
        if (netconn_recv(connection, &datagram) == ERR_OK) {
            tally.served++;
            netbuf_delete(datagram);
        }
    }
}

/* Sends all bytes or returns false. With a send timeout, lwIP sends as much as it can until the
 * timeout, and returns how much it sent. */
static bool send_all(struct netconn *connection, const void *bytes, size_t length)
{
    size_t sent = 0;
    return netconn_write_partly(connection, bytes, length, NETCONN_COPY, &sent) == ERR_OK && sent == length;
}

/* Probes a silent client. A client that closed its connection during a flood may have sent its FIN
 * in vain, and without a probe the server would wait for it for ever. */
static void keep_alive(struct netconn *connection)
{
#if LWIP_TCP_KEEPALIVE
    LOCK_TCPIP_CORE();
    struct tcp_pcb *pcb = connection->pcb.tcp;
    if (pcb != NULL) { /* else it has ended already */
        ip_set_option(pcb, SOF_KEEPALIVE);
        pcb->keep_idle = KEEP_ALIVE_MS;
        pcb->keep_intvl = KEEP_ALIVE_MS;
        pcb->keep_cnt = KEEP_ALIVE_TIMES;
    }
    UNLOCK_TCPIP_CORE();
#else
    (void) connection;
#endif
}

/* Answers the requests of one connection until it ends. The connection of a client that does not
 * read its answers for SEND_TIMEOUT_MS is closed. */
static void serve_modbus(struct netconn *connection, stages_pace_t *pace)
{
    struct modbus_stream stream = {.length = 0};
    struct netbuf *received;
    netconn_set_sendtimeout(connection, SEND_TIMEOUT_MS);
    keep_alive(connection);
    while (netconn_recv(connection, &received) == ERR_OK) {
        bool goes_on = true;
        do {
            void *bytes;
            u16_t length;
            netbuf_data(received, &bytes, &length);
            for (u16_t at = 0; goes_on && at < length; at++) {
                uint8_t answer[MODBUS_LONGEST];
                int32_t count = modbus_take(&stream, ((const uint8_t *) bytes)[at], answer);
                if (count > 0) {
                    stages_keep_pace(pace);
                }
                goes_on = count >= 0 && (count == 0 || send_all(connection, answer, (size_t) count));
            }
        } while (goes_on && netbuf_next(received) >= 0);
        netbuf_delete(received);
        if (!goes_on) {
            return;
        }
    }
}

/* Several tasks accept connections from one listener, so that a single peer cannot lock out the
 * others. */
static void run_modbus(void *listener)
{
    stages_pace_t pace = {0};
    for (;;) {
        struct netconn *connection;
        if (netconn_accept(listener, &connection) == ERR_OK) {
            serve_modbus(connection, &pace);
            netconn_close(connection);
            netconn_delete(connection);
        }
    }
}

/* Opens the port of a server: that of the first server, or one of the following ports. */
static struct netconn *listen_modbus(uint16_t server, uint32_t urgency)
{
    struct netconn *listener = netconn_new(NETCONN_TCP);
    uint16_t port = (uint16_t) (SERVERS_MODBUS_PORT + server);
    LWIP_ASSERT("the Modbus server has a port",
                listener != NULL && netconn_bind(listener, IP_ADDR_ANY, port) == ERR_OK && netconn_listen(listener) == ERR_OK);
    stages_bind(IP_PROTO_TCP, port, (uint16_t) (STAGES_MODBUS + server), urgency);
    return listener;
}

static void run_modbus_together(void *unused)
{
    (void) unused;
    struct netconn *listener = listen_modbus(0, options.layout->servers);
    for (uint32_t task = 1; task < MODBUS_TASKS; task++) {
        sys_thread_new("modbus", run_modbus, listener, SIZES_TASK_STACK, (int) options.layout->servers);
    }
    run_modbus(listener);
}

static void run_modbus_apart(void *server)
{
    uint16_t number = (uint16_t) (uintptr_t) server;
    run_modbus(listen_modbus(number, options.layout->modbus[number]));
}

static void start_modbus(void)
{
    if (options.modbus == MODBUS_TOGETHER) {
        sys_thread_new("modbus", run_modbus_together, NULL, SIZES_TASK_STACK, (int) options.layout->servers);
        return;
    }
    for (uintptr_t server = 0; server < OPTIONS_MODBUS_SERVERS; server++) {
        sys_thread_new("modbus", run_modbus_apart, (void *) server, SIZES_TASK_STACK, (int) options.layout->modbus[server]);
    }
}

static void echo(void *unused, struct udp_pcb *pcb, struct pbuf *pbuf, const ip_addr_t *address, u16_t port)
{
    (void) unused;
    udp_sendto(pcb, pbuf, address, port);
    pbuf_free(pbuf);
}

uint32_t servers_udp_urgency(void)
{
    return options.server_urgency != 0 ? options.server_urgency : options.layout->servers;
}

void servers_start(void)
{
    if (options.server) {
        uint32_t urgency = servers_udp_urgency();
        sys_thread_new("udp", run_udp, NULL, SIZES_TASK_STACK, (int) urgency);
        stages_bind(IP_PROTO_UDP, SERVERS_UDP_PORT, STAGES_UDP, urgency);
    }
    start_modbus();
    struct udp_pcb *pcb = udp_new();
    LWIP_ASSERT("the echo server has a port", pcb != NULL && udp_bind(pcb, IP_ADDR_ANY, SERVERS_ECHO_PORT) == ERR_OK);
    udp_recv(pcb, echo, NULL);
    httpd_init();
    stages_bind(IP_PROTO_UDP, SERVERS_ECHO_PORT, STAGES_ECHO, options.layout->servers);
    stages_bind(IP_PROTO_TCP, 80, STAGES_HTTP, options.layout->servers);
}
