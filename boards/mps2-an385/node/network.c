/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "network.h"

#include <string.h>

#include "lwip/dhcp.h"
#include "lwip/etharp.h"
#include "lwip/netif.h"
#include "lwip/tcpip.h"
#include "netif/ethernet.h"

#include "board.h"
#include "card.h"
#include "driver.h"
#include "options.h"
#include "servers.h"

static struct netif netif;

uint32_t node_random(void)
{
    static uint32_t state = 2463534242u;
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

static err_t send(struct netif *unused, struct pbuf *pbuf)
{
    (void) unused;
    return card_send(pbuf) ? ERR_OK : ERR_BUF;
}

static err_t start_interface(struct netif *of)
{
    of->name[0] = 'e';
    of->name[1] = 'n';
    of->hostname = "weir-node";
    of->output = etharp_output;
    of->linkoutput = send;
    of->mtu = 1500;
    of->hwaddr_len = 6;
    of->flags = NETIF_FLAG_BROADCAST | NETIF_FLAG_ETHARP | NETIF_FLAG_ETHERNET | NETIF_FLAG_LINK_UP;
    driver_start(of);
    return ERR_OK;
}

static void add_neighbour(void)
{
#if ETHARP_SUPPORT_STATIC_ENTRIES
    if (options.neighbour != 0) {
        ip4_addr_t address = {options.neighbour};
        struct eth_addr ethernet;
        memcpy(ethernet.addr, options.neighbour_ethernet, sizeof ethernet.addr);
        err_t error = etharp_add_static_entry(&address, &ethernet);
        LWIP_ASSERT("the neighbour is in the node's network", error == ERR_OK);
    }
#endif
}

/* This function runs in lwIP's thread. */
static void start(void *unused)
{
    (void) unused;
    if (options.packets == PACKETS_SIMULATED) {
        return;
    }
    ip4_addr_t address = {options.address}, mask, gateway;
    bool is_given = options.address != 0;
    IP4_ADDR(&mask, 255, 255, 255, 0);
    gateway.addr = (address.addr & mask.addr) | PP_HTONL(1);
    /* The workers of driver=demux hold the core lock when they pass a frame to lwIP, so they can
     * call it directly. */
    netif_input_fn input = options.driver == DRIVER_DEMUX ? ethernet_input : tcpip_input;
    netif_add(&netif, is_given ? &address : NULL, is_given ? &mask : NULL, is_given ? &gateway : NULL, NULL, start_interface, input);
    netif_set_default(&netif);
    netif_set_up(&netif);
    add_neighbour();
    if (!is_given) {
        dhcp_start(&netif);
    }
    servers_start();
}

void network_start(void)
{
    tcpip_init(start, NULL);
}
