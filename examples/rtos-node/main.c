/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A controller on a network. Its receivers, their ports and urgencies, and the limit in front of
 * the card come from system.toml: weir generate system.toml --chip cortex-m3 --rtos freertos
 */
#include "weir_system.h"

#include <string.h>

#include "lwip/etharp.h"
#include "lwip/netif.h"
#include "lwip/tcpip.h"
#include "lwip/udp.h"
#include "netif/ethernet.h"
#include "weir/freertos_lwip.h"

#include "board.h"
#include "card.h"

volatile uint32_t rounds;
volatile uint32_t commands;
volatile uint32_t lines;

static struct netif netif;

void stop(void);
void stop(void)
{
    for (;;) {
    }
}

/* Returns the card's description of its next frame, and reads the first bytes of the frame. */
static weir_freertos_head_t head_of(uint32_t *words)
{
    uint32_t status = card_status(), length = card_length(status);
    if (length == 0) {
        return (weir_freertos_head_t) {(uint16_t) card_whole_length(status), true};
    }
    uint32_t all = (length + CARD_CHECKSUM + 3) / 4;
    card_read_words(words, all < WEIR_FREERTOS_HEAD / 4 ? all : WEIR_FREERTOS_HEAD / 4);
    return (weir_freertos_head_t) {(uint16_t) length, false};
}

/* The card delivers the checksum after a frame. The length of a broken frame includes the
 * checksum. */
static void rest_of(weir_freertos_head_t frame, uint32_t *words)
{
    uint32_t all = (frame.length + 3u) / 4u;
    if (!frame.is_broken) {
        all = (frame.length + CARD_CHECKSUM + 3u) / 4u;
        all -= all < WEIR_FREERTOS_HEAD / 4 ? all : WEIR_FREERTOS_HEAD / 4;
    }
    if (words != NULL) {
        card_read_words(words, all);
    } else {
        card_skip_words(all);
    }
}

static void request(void)
{
    board_pend(BOARD_CARD_LINE);
}

static const weir_freertos_driver_t card = {
    .count = card_count, .head = head_of, .rest = rest_of, .acknowledge = card_acknowledge, .request = request};

WEIR_SOURCE_ethernet
{
    static weir_work_t work;
    BaseType_t woken = pdFALSE;
    weir_freertos_take(&weir_net, &card, &work, WEIR_SOURCE_ethernet_MAX_WORK, &woken);
    portYIELD_FROM_ISR(woken);
}

WEIR_TIMER_DUALTIMER;

void vApplicationTickHook(void);
void vApplicationTickHook(void)
{
    weir_freertos_refill(&weir_net);
}

/* Answers a command by returning it. Runs in the worker of the command's receiver. */
static void obey(void *unused, struct udp_pcb *pcb, struct pbuf *command, const ip_addr_t *address, u16_t port)
{
    (void) unused;
    commands++;
    udp_sendto(pcb, command, address, port);
    pbuf_free(command);
}

static void note(void *unused, struct udp_pcb *pcb, struct pbuf *line, const ip_addr_t *address, u16_t port)
{
    (void) unused;
    (void) pcb;
    (void) address;
    (void) port;
    lines++;
    pbuf_free(line);
}

static void serve(uint16_t port, udp_recv_fn with)
{
    struct udp_pcb *pcb = udp_new();
    configASSERT(pcb != NULL && udp_bind(pcb, IP_ADDR_ANY, port) == ERR_OK);
    udp_recv(pcb, with, NULL);
}

static err_t send(struct netif *unused, struct pbuf *pbuf)
{
    (void) unused;
    return card_send(pbuf) ? ERR_OK : ERR_BUF;
}

static err_t start_card(struct netif *of)
{
    of->name[0] = 'e';
    of->name[1] = 'n';
    of->output = etharp_output;
    of->linkoutput = send;
    of->mtu = 1500;
    of->hwaddr_len = 6;
    of->flags = NETIF_FLAG_BROADCAST | NETIF_FLAG_ETHARP | NETIF_FLAG_ETHERNET | NETIF_FLAG_LINK_UP;
    card_start(of->hwaddr);
    configASSERT(weir_system_start(weir_freertos_lwip_input, of) == WEIR_FREERTOS_OK);
    card_interrupt(true);
    return ERR_OK;
}

/* Starts the network. Runs in lwIP's thread, which holds the core lock. */
static void start_network(void *unused)
{
    (void) unused;
    ip4_addr_t address, mask, gateway;
    IP4_ADDR(&address, 10, 0, 0, 2);
    IP4_ADDR(&mask, 255, 255, 255, 0);
    IP4_ADDR(&gateway, 10, 0, 0, 1);
    netif_add(&netif, &address, &mask, &gateway, NULL, start_card, ethernet_input);
    netif_set_default(&netif);
    netif_set_up(&netif);
    serve(WEIR_PORT_command, obey);
    serve(WEIR_PORT_line, note);
}

/* The control task, which must meet its deadlines: it needs 40 % of the processor, with a period of
 * 10 ms. */
static void control(void *unused)
{
    (void) unused;
    TickType_t last = xTaskGetTickCount();
    for (;;) {
        for (volatile uint32_t step = 0; step < 60000; step++) {
        }
        rounds++;
        xTaskDelayUntil(&last, pdMS_TO_TICKS(10));
    }
}

static _Noreturn void start(void)
{
    extern uint32_t bss_begin[], bss_end[];
    memset(bss_begin, 0, (size_t) ((uint8_t *) bss_end - (uint8_t *) bss_begin));
    board_start();
    tcpip_init(start_network, NULL);
    configASSERT(xTaskCreate(control, "control", configMINIMAL_STACK_SIZE, NULL, WEIR_URGENCY_control, NULL) == pdPASS);
    vTaskStartScheduler();
    for (;;) {
    }
}

void vPortSVCHandler(void);
void xPortPendSVHandler(void);
void xPortSysTickHandler(void);

/* A vector table for this board. In your program it is part of the chip's start-up code. */
extern uint32_t stack_end[];
typedef void (*vector)(void);
__attribute__((section(".vectors"), used)) const vector vectors[16 + BOARD_LINES] = {
    (vector) stack_end,
    start,
    stop,
    stop,
    stop,
    stop,
    stop,
    [11] = vPortSVCHandler,
    [14] = xPortPendSVHandler,
    [15] = xPortSysTickHandler,
    [16 + 10] = IRQ10_Handler,
    [16 + 13] = IRQ13_Handler,
};
