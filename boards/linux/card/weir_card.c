/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A virtual network card with features that no card of an emulator has. It has four receive queues
 * with a NAPI instance each. Rules steer packets to a queue (ethtool -N), and a table spreads all
 * other packets over the queues (ethtool -X). Each queue can gather packets before an interrupt
 * (ethtool -Q), and its room for packets can be enlarged (ethtool -G). The card is a kernel module
 * for the guest, so Weir's settings for such cards pass the kernel's own checks.
 *
 *     insmod weir_card.ko [takes=3] [tells=1]
 *
 * `card0` is the card. `wire0` is the other end of its wire, and should be moved to a network
 * namespace of its own. `takes` is the set of rules that the card accepts, since a real card
 * accepts only some: bit 0 is for ports, bit 1 for EtherTypes and VLAN priorities. Other rules are
 * refused with EINVAL. With tells=0 the driver does not report which NAPI instance serves which
 * queue, like most drivers before Linux 6.8. /sys/module/weir_card/parameters/received has the
 * number of packets that each queue has received.
 */
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/hrtimer.h>
#include <linux/if_vlan.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/version.h>
#include <net/flow_dissector.h>

#define QUEUES 4
#define RULES 16
#define PLACES 8 /* length of the table that spreads packets */
#define LONGEST 512

struct queue {
    struct napi_struct napi;
    struct sk_buff_head packets;
    struct hrtimer gathers;
    u32 gathers_us;
};

struct card {
    struct net_device *wire;
    struct queue queues[QUEUES];
    spinlock_t lock; /* protects all members below */
    struct ethtool_rx_flow_spec rules[RULES];
    bool has_rule[RULES];
    u32 spread[PLACES];
    u32 ring; /* number of packets for which each queue has room */
};

static unsigned int takes = 3;
module_param(takes, uint, 0444);
static bool tells = true;
module_param(tells, bool, 0444);
static unsigned int received[QUEUES];
module_param_array(received, uint, NULL, 0444);

static struct net_device *card0;

/* Whether `mask` is 0 outside of the bytes from `from` up to, but not including, `to`. */
static bool only(const void *mask, size_t size, size_t from, size_t to)
{
    const u8 *bytes = mask;
    size_t at;
    for (at = 0; at < size; at++) {
        if (bytes[at] && (at < from || at >= to)) {
            return false;
        }
    }
    return true;
}

static bool is_of_port(u32 type)
{
    return type == TCP_V4_FLOW || type == UDP_V4_FLOW || type == TCP_V6_FLOW || type == UDP_V6_FLOW;
}

static bool is_v6(u32 type)
{
    return type == TCP_V6_FLOW || type == UDP_V6_FLOW;
}

/* Whether the card accepts `rule`. */
static bool can_match(const struct ethtool_rx_flow_spec *rule)
{
    size_t port = is_v6(rule->flow_type) ? offsetof(struct ethtool_tcpip6_spec, pdst) : offsetof(struct ethtool_tcpip4_spec, pdst);
    bool has_vlan = rule->flow_type & FLOW_EXT;
    if (rule->ring_cookie >= QUEUES) {
        return false;
    }
    if (is_of_port(rule->flow_type)) {
        return (takes & 1) && only(&rule->m_u, sizeof(rule->m_u), port, port + sizeof(__be16)) &&
               *(const u16 *) (rule->m_u.hdata + port) == 0xffff;
    }
    if ((rule->flow_type & ~FLOW_EXT) != ETHER_FLOW || !(takes & 2)) {
        return false;
    }
    if (has_vlan) {
        return rule->m_ext.vlan_tci == htons(VLAN_PRIO_MASK) && !rule->m_ext.vlan_etype && only(&rule->m_u, sizeof(rule->m_u), 0, 0);
    }
    return rule->m_u.ether_spec.h_proto == 0xffff && is_zero_ether_addr(rule->m_u.ether_spec.h_dest) &&
           is_zero_ether_addr(rule->m_u.ether_spec.h_source);
}

static bool matches(const struct ethtool_rx_flow_spec *rule, const struct sk_buff *packet, const struct flow_keys *keys)
{
    u32 type = rule->flow_type;
    if (is_of_port(type)) {
        __be16 port = is_v6(type) ? rule->h_u.tcp_ip6_spec.pdst : rule->h_u.tcp_ip4_spec.pdst;
        return keys->basic.n_proto == htons(is_v6(type) ? ETH_P_IPV6 : ETH_P_IP) &&
               keys->basic.ip_proto == (type == TCP_V4_FLOW || type == TCP_V6_FLOW ? IPPROTO_TCP : IPPROTO_UDP) && keys->ports.dst == port;
    }
    if (type & FLOW_EXT) {
        u16 tag = 0;
        if (skb_vlan_tag_present(packet)) {
            tag = skb_vlan_tag_get(packet);
        } else if (eth_type_vlan(packet->protocol)) {
            tag = ntohs(((const struct vlan_ethhdr *) packet->data)->h_vlan_TCI);
        }
        return (tag & VLAN_PRIO_MASK) == (ntohs(rule->h_ext.vlan_tci) & VLAN_PRIO_MASK) && tag;
    }
    return rule->h_u.ether_spec.h_proto == ((const struct ethhdr *) packet->data)->h_proto;
}

/* The queue of a packet: that of the first rule that matches, or else the one in the table. */
static u32 queue_of(struct card *card, struct sk_buff *packet)
{
    struct flow_keys keys;
    u32 place, queue;
    skb_reset_mac_header(packet);
    skb_flow_dissect_flow_keys(packet, &keys, 0);
    spin_lock_bh(&card->lock);
    queue = card->spread[skb_get_hash(packet) % PLACES];
    for (place = 0; place < RULES; place++) {
        if (card->has_rule[place] && matches(&card->rules[place], packet, &keys)) {
            queue = card->rules[place].ring_cookie;
            break;
        }
    }
    spin_unlock_bh(&card->lock);
    return queue;
}

static netdev_tx_t from_wire(struct sk_buff *packet, struct net_device *wire)
{
    struct card *card = netdev_priv(card0);
    struct queue *queue = &card->queues[queue_of(card, packet)];
    if (!netif_running(card0) || skb_queue_len(&queue->packets) >= READ_ONCE(card->ring)) {
        card0->stats.rx_missed_errors++;
        kfree_skb(packet);
        return NETDEV_TX_OK;
    }
    skb_orphan(packet);
    skb_scrub_packet(packet, true);
    skb_queue_tail(&queue->packets, packet);
    if (READ_ONCE(queue->gathers_us) == 0) {
        napi_schedule(&queue->napi);
    } else if (!hrtimer_active(&queue->gathers)) {
        hrtimer_start(&queue->gathers, ns_to_ktime((u64) queue->gathers_us * NSEC_PER_USEC), HRTIMER_MODE_REL_SOFT);
    }
    return NETDEV_TX_OK;
}

static enum hrtimer_restart gathered(struct hrtimer *timer)
{
    napi_schedule(&container_of(timer, struct queue, gathers)->napi);
    return HRTIMER_NORESTART;
}

static int poll(struct napi_struct *napi, int budget)
{
    struct queue *queue = container_of(napi, struct queue, napi);
    struct card *card = netdev_priv(napi->dev);
    u32 index = queue - card->queues;
    int done = 0;
    struct sk_buff *packet;
    while (done < budget && (packet = skb_dequeue(&queue->packets))) {
        packet->protocol = eth_type_trans(packet, napi->dev);
        skb_record_rx_queue(packet, index);
        received[index]++;
        napi_gro_receive(napi, packet);
        done++;
    }
    /* Packets that arrived during the poll could not schedule the instance, which was running. */
    if (done < budget && napi_complete_done(napi, done) && !skb_queue_empty(&queue->packets)) {
        napi_schedule(napi);
    }
    return done;
}

static netdev_tx_t to_wire(struct sk_buff *packet, struct net_device *device)
{
    struct card *card = netdev_priv(device);
    skb_orphan(packet);
    skb_scrub_packet(packet, true);
    packet->protocol = eth_type_trans(packet, card->wire);
    netif_rx(packet);
    return NETDEV_TX_OK;
}

static void tell(struct net_device *device, u32 index, struct napi_struct *napi)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 8, 0)
    if (tells) {
        netif_queue_set_napi(device, index, NETDEV_QUEUE_TYPE_RX, napi);
    }
#endif
}

static int open(struct net_device *device)
{
    struct card *card = netdev_priv(device);
    u32 index;
    for (index = 0; index < QUEUES; index++) {
        napi_enable(&card->queues[index].napi);
        tell(device, index, &card->queues[index].napi);
    }
    return 0;
}

static int stop(struct net_device *device)
{
    struct card *card = netdev_priv(device);
    u32 index;
    for (index = 0; index < QUEUES; index++) {
        tell(device, index, NULL);
        hrtimer_cancel(&card->queues[index].gathers);
        napi_disable(&card->queues[index].napi);
        skb_queue_purge(&card->queues[index].packets);
    }
    return 0;
}

static int get_rxnfc(struct net_device *device, struct ethtool_rxnfc *request, u32 *places)
{
    struct card *card = netdev_priv(device);
    u32 place = request->fs.location, count = 0;
    int result = 0;
    spin_lock_bh(&card->lock);
    switch (request->cmd) {
    case ETHTOOL_GRXRINGS:
        request->data = QUEUES;
        break;
    case ETHTOOL_GRXCLSRLCNT:
        for (place = 0; place < RULES; place++) {
            count += card->has_rule[place];
        }
        request->rule_cnt = count;
        request->data = RULES;
        break;
    case ETHTOOL_GRXCLSRULE:
        if (place >= RULES || !card->has_rule[place]) {
            result = -ENOENT;
        } else {
            request->fs = card->rules[place];
            /* Like the driver ixgbe, the card returns every rule with this flag. */
            request->fs.flow_type |= FLOW_EXT;
        }
        break;
    case ETHTOOL_GRXCLSRLALL:
        for (place = 0; place < RULES; place++) {
            if (card->has_rule[place] && count < request->rule_cnt) {
                places[count++] = place;
            }
        }
        request->rule_cnt = count;
        request->data = RULES;
        break;
    default:
        result = -EOPNOTSUPP;
    }
    spin_unlock_bh(&card->lock);
    return result;
}

static int set_rxnfc(struct net_device *device, struct ethtool_rxnfc *request)
{
    struct card *card = netdev_priv(device);
    u32 place = request->fs.location;
    int result = 0;
    if (place >= RULES) {
        return -EINVAL;
    }
    spin_lock_bh(&card->lock);
    if (request->cmd == ETHTOOL_SRXCLSRLINS && can_match(&request->fs)) {
        card->rules[place] = request->fs;
        card->has_rule[place] = true;
    } else if (request->cmd == ETHTOOL_SRXCLSRLDEL && card->has_rule[place]) {
        card->has_rule[place] = false;
    } else {
        result = request->cmd == ETHTOOL_SRXCLSRLDEL ? -ENOENT : -EINVAL;
    }
    spin_unlock_bh(&card->lock);
    return result;
}

static u32 indir_size(struct net_device *device)
{
    return PLACES;
}

static void read_spread(struct card *card, u32 *places)
{
    if (places) {
        memcpy(places, card->spread, sizeof(card->spread));
    }
}

static void write_spread(struct card *card, const u32 *places)
{
    if (places) {
        spin_lock_bh(&card->lock);
        memcpy(card->spread, places, sizeof(card->spread));
        spin_unlock_bh(&card->lock);
    }
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 8, 0)
static int get_rxfh(struct net_device *device, struct ethtool_rxfh_param *request)
{
    read_spread(netdev_priv(device), request->indir);
    return 0;
}

static int set_rxfh(struct net_device *device, struct ethtool_rxfh_param *request, struct netlink_ext_ack *reason)
{
    write_spread(netdev_priv(device), request->indir);
    return 0;
}
#else
static int get_rxfh(struct net_device *device, u32 *places, u8 *key, u8 *function)
{
    read_spread(netdev_priv(device), places);
    return 0;
}

static int set_rxfh(struct net_device *device, const u32 *places, const u8 *key, const u8 function)
{
    write_spread(netdev_priv(device), places);
    return 0;
}
#endif

static int get_queue(struct net_device *device, u32 index, struct ethtool_coalesce *coalesce)
{
    struct card *card = netdev_priv(device);
    if (index >= QUEUES) {
        return -EINVAL;
    }
    coalesce->rx_coalesce_usecs = card->queues[index].gathers_us;
    return 0;
}

static int set_queue(struct net_device *device, u32 index, struct ethtool_coalesce *coalesce)
{
    struct card *card = netdev_priv(device);
    if (index >= QUEUES) {
        return -EINVAL;
    }
    WRITE_ONCE(card->queues[index].gathers_us, coalesce->rx_coalesce_usecs);
    return 0;
}

static int get_all(struct net_device *device, struct ethtool_coalesce *coalesce, struct kernel_ethtool_coalesce *more,
                   struct netlink_ext_ack *reason)
{
    return get_queue(device, 0, coalesce);
}

static int set_all(struct net_device *device, struct ethtool_coalesce *coalesce, struct kernel_ethtool_coalesce *more,
                   struct netlink_ext_ack *reason)
{
    u32 index;
    for (index = 0; index < QUEUES; index++) {
        set_queue(device, index, coalesce);
    }
    return 0;
}

static void get_ring(struct net_device *device, struct ethtool_ringparam *ring, struct kernel_ethtool_ringparam *more,
                     struct netlink_ext_ack *reason)
{
    struct card *card = netdev_priv(device);
    ring->rx_max_pending = LONGEST;
    ring->rx_pending = READ_ONCE(card->ring);
}

static int set_ring(struct net_device *device, struct ethtool_ringparam *ring, struct kernel_ethtool_ringparam *more,
                    struct netlink_ext_ack *reason)
{
    struct card *card = netdev_priv(device);
    if (ring->rx_pending == 0) {
        return -EINVAL;
    }
    WRITE_ONCE(card->ring, ring->rx_pending);
    return 0;
}

static const struct ethtool_ops card_tool = {
    .supported_coalesce_params = ETHTOOL_COALESCE_RX_USECS,
    .get_coalesce = get_all,
    .set_coalesce = set_all,
    .get_per_queue_coalesce = get_queue,
    .set_per_queue_coalesce = set_queue,
    .get_ringparam = get_ring,
    .set_ringparam = set_ring,
    .get_rxnfc = get_rxnfc,
    .set_rxnfc = set_rxnfc,
    .get_rxfh_indir_size = indir_size,
    .get_rxfh = get_rxfh,
    .set_rxfh = set_rxfh,
};

static const struct net_device_ops card_operations = {
    .ndo_open = open,
    .ndo_stop = stop,
    .ndo_start_xmit = to_wire,
    .ndo_set_mac_address = eth_mac_addr,
};

static const struct net_device_ops wire_operations = {
    .ndo_start_xmit = from_wire,
    .ndo_set_mac_address = eth_mac_addr,
};

static int __init begin(void)
{
    struct card *card;
    struct net_device *wire;
    int result = -ENOMEM;
    u32 index;
    card0 = alloc_etherdev_mqs(sizeof(struct card), 1, QUEUES);
    wire = alloc_etherdev(0);
    if (!card0 || !wire) {
        goto failed;
    }
    card = netdev_priv(card0);
    card->wire = wire;
    card->ring = LONGEST / 2;
    spin_lock_init(&card->lock);
    for (index = 0; index < PLACES; index++) {
        card->spread[index] = index % QUEUES;
    }
    strscpy(card0->name, "card0", IFNAMSIZ);
    strscpy(wire->name, "wire0", IFNAMSIZ);
    card0->netdev_ops = &card_operations;
    card0->ethtool_ops = &card_tool;
    wire->netdev_ops = &wire_operations;
    eth_hw_addr_random(card0);
    eth_hw_addr_random(wire);
    for (index = 0; index < QUEUES; index++) {
        struct queue *queue = &card->queues[index];
        skb_queue_head_init(&queue->packets);
        hrtimer_init(&queue->gathers, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
        queue->gathers.function = gathered;
        netif_napi_add(card0, &queue->napi, poll);
    }
    result = register_netdev(card0);
    if (result) {
        goto failed;
    }
    result = register_netdev(wire);
    if (result) {
        unregister_netdev(card0);
        goto failed;
    }
    return 0;
failed:
    if (card0) {
        free_netdev(card0);
    }
    if (wire) {
        free_netdev(wire);
    }
    return result;
}

static void __exit end(void)
{
    struct card *card = netdev_priv(card0);
    struct net_device *wire = card->wire;
    unregister_netdev(wire);
    unregister_netdev(card0);
    free_netdev(wire);
    free_netdev(card0);
}

module_init(begin);
module_exit(end);
MODULE_DESCRIPTION("A card with queues, rules and gathering, to test settings on");
MODULE_LICENSE("Dual MIT/GPL");
