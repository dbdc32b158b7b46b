/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The account stage for a host program, with 64-bit cycles. account_ffi.rs declares structures of
 * the same layout.
 */
#define WEIR_CYCLE_BITS 64

#include "../../../core/src/account.c"

_Static_assert(offsetof(weir_account_t, ticks) == 56 && sizeof(weir_account_t) == 64, "as in account_ffi.rs");
_Static_assert(offsetof(weir_account_process_t, adjusted) == 44 && sizeof(weir_account_process_t) == 48, "as in account_ffi.rs");
_Static_assert(offsetof(weir_account_device_t, handled_before) == 28 && sizeof(weir_account_device_t) == 32, "as in account_ffi.rs");

/* The parameters are those of the functions of account.h that are called here. */
uint32_t weir_ffi_account_start(weir_account_t *a, const weir_account_config_t *config)
{
    weir_account_error_t error = weir_account_check(config);
    if (error == WEIR_ACCOUNT_OK) {
        weir_account_start(a, config);
    }
    return (uint32_t) error;
}

void weir_ffi_account_handled(weir_account_t *a, weir_account_device_t *d, weir_account_process_t *p, uint64_t cost)
{
    weir_account_handled(a, d, p, cost);
}

int32_t weir_ffi_account_tick(weir_account_t *a, weir_account_process_t *p)
{
    return weir_account_tick(a, p);
}

void weir_ffi_account_handled_counted(weir_account_t *a, weir_account_device_t *d, weir_account_process_t *p, int64_t *x, uint64_t cost)
{
    weir_account_handled_counted(a, d, p, x, cost);
}

int32_t weir_ffi_account_tick_counted(weir_account_t *a, weir_account_device_t *devices, uint16_t count, weir_account_process_t *p,
                                      int64_t *x)
{
    return weir_account_tick_counted(a, devices, count, p, x);
}

int64_t weir_ffi_account_worth_counted(const weir_account_t *a, const weir_account_device_t *devices, uint16_t count, const int64_t *x)
{
    return weir_account_worth_counted(a, devices, count, x);
}

void weir_ffi_account_exit(weir_account_t *a, weir_account_process_t *p)
{
    weir_account_exit(a, p);
}

void weir_ffi_account_exit_counted(weir_account_t *a, const weir_account_device_t *devices, uint16_t count, weir_account_process_t *p,
                                   int64_t *x)
{
    weir_account_exit_counted(a, devices, count, p, x);
}

void weir_ffi_account_move(weir_account_process_t *from, weir_account_process_t *to)
{
    weir_account_move(from, to);
}
