/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "weir/freertos_lwip.h"

#include "lwip/opt.h"
#include "lwip/pbuf.h"
#include "lwip/tcpip.h"

#if !LWIP_SUPPORT_CUSTOM_PBUF || !LWIP_TCPIP_CORE_LOCKING
#error "lwipopts.h has to set LWIP_SUPPORT_CUSTOM_PBUF and LWIP_TCPIP_CORE_LOCKING to 1"
#endif

#if ETH_PAD_SIZE
#error "lwipopts.h has to leave ETH_PAD_SIZE at 0: frames are handed over as the card has them"
#endif

/* Without this bound, the peer of a connection could make lwIP keep all buffers of a receiver by
 * sending segments out of order. Senders retransmit segments that are dropped. */
#if LWIP_TCP && TCP_QUEUE_OOSEQ && !TCP_OOSEQ_MAX_PBUFS
#error "lwipopts.h has to set TCP_QUEUE_OOSEQ to 0, or TCP_OOSEQ_MAX_PBUFS"
#endif

#if LWIP_NETCONN_SEM_PER_THREAD && WEIR_FREERTOS_POINTER == 0
#error "with LWIP_NETCONN_SEM_PER_THREAD lwIP has the first pointer of a task: define WEIR_FREERTOS_POINTER as 1"
#endif

/* lwIP's descriptor of a frame, which is stored in the frame's buffer. */
struct custom {
    struct pbuf_custom pbuf;
    weir_freertos_frame_t *frame;
};
_Static_assert(sizeof(struct custom) <= WEIR_FREERTOS_STACK_BYTES, "WEIR_FREERTOS_STACK_BYTES is too small for lwIP's pbuf_custom");

static void release(struct pbuf *pbuf)
{
    weir_freertos_release(((struct custom *) pbuf)->frame);
}

void weir_freertos_lwip_input(void *netif, weir_freertos_frame_t *frame)
{
    struct custom *custom = (struct custom *) frame->stack;
    struct netif *of = netif;
    custom->frame = frame;
    custom->pbuf.custom_free_function = release;
    struct pbuf *pbuf = pbuf_alloced_custom(PBUF_RAW, frame->length, PBUF_REF, &custom->pbuf, frame->words, sizeof frame->words);
    LOCK_TCPIP_CORE();
    if (of->input(pbuf, of) != ERR_OK) {
        pbuf_free(pbuf);
    }
    UNLOCK_TCPIP_CORE();
}
