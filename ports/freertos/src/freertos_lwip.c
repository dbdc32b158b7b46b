/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "weir/freertos_lwip.h"

#include "lwip/pbuf.h"
#include "lwip/tcpip.h"

#if !LWIP_SUPPORT_CUSTOM_PBUF || !LWIP_TCPIP_CORE_LOCKING
#error "lwipopts.h has to set LWIP_SUPPORT_CUSTOM_PBUF and LWIP_TCPIP_CORE_LOCKING to 1"
#endif

/* lwIP's description of a frame, in the frame's buffer. */
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
