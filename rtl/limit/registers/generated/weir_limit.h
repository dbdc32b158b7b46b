/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * Generated from weir_limit.rdl by rtl/limit/registers/generate.py.
 *
 * Byte offsets from the base of a weir_limit, and its fields: _BIT for those of one bit, _SHIFT and _MASK (unshifted) for others. weir_limit.md
 * says what they mean. All registers are 32 bits wide; what does not fit is refused by a bus error.
 */
#ifndef WEIR_LIMIT_REGISTERS_H
#define WEIR_LIMIT_REGISTERS_H

#define WEIR_LIMIT_ID 0x0000u
#define WEIR_LIMIT_SHAPE 0x0004u
#define WEIR_LIMIT_WIDTHS 0x0008u
#define WEIR_LIMIT_TICK 0x000cu
#define WEIR_LIMIT_BEGAN(n) (0x0040u + 4u * (n)) /* n: 0 to 31 */
#define WEIR_LIMIT_CONTROL(source) (0x8000u + 32u * (source))
#define WEIR_LIMIT_RATE(source) (0x8004u + 32u * (source))
#define WEIR_LIMIT_BURST(source) (0x8008u + 32u * (source))
#define WEIR_LIMIT_STATUS(source) (0x800cu + 32u * (source))
#define WEIR_LIMIT_HELD(source) (0x8010u + 32u * (source))

#define WEIR_LIMIT_ID_VERSION_SHIFT 0
#define WEIR_LIMIT_ID_VERSION_MASK 0xffu
#define WEIR_LIMIT_ID_LETTERS_SHIFT 8
#define WEIR_LIMIT_ID_LETTERS_MASK 0xffffffu

#define WEIR_LIMIT_SHAPE_LAST_SHIFT 0
#define WEIR_LIMIT_SHAPE_LAST_MASK 0x3ffu
#define WEIR_LIMIT_SHAPE_FORM_BIT (1u << 12)
#define WEIR_LIMIT_SHAPE_BURSTS_BIT (1u << 16)
#define WEIR_LIMIT_SHAPE_ENABLES_BIT (1u << 17)
#define WEIR_LIMIT_SHAPE_LIMITS_BIT (1u << 18)
#define WEIR_LIMIT_SHAPE_OVERLOAD_BIT (1u << 19)
#define WEIR_LIMIT_SHAPE_LOCK_BIT (1u << 20)
#define WEIR_LIMIT_SHAPE_MSI_BIT (1u << 21)
#define WEIR_LIMIT_SHAPE_BYPASS_BIT (1u << 22)
#define WEIR_LIMIT_SHAPE_PULSE_BIT (1u << 23)

#define WEIR_LIMIT_WIDTHS_PHASE_SHIFT 0
#define WEIR_LIMIT_WIDTHS_PHASE_MASK 0x3fu
#define WEIR_LIMIT_WIDTHS_RATE_SHIFT 8
#define WEIR_LIMIT_WIDTHS_RATE_MASK 0x3fu
#define WEIR_LIMIT_WIDTHS_BURST_SHIFT 16
#define WEIR_LIMIT_WIDTHS_BURST_MASK 0xfu
#define WEIR_LIMIT_WIDTHS_HELD_SHIFT 24
#define WEIR_LIMIT_WIDTHS_HELD_MASK 0x1fu

#define WEIR_LIMIT_CONTROL_ENABLE_BIT (1u << 0)
#define WEIR_LIMIT_CONTROL_LIMIT_BIT (1u << 1)
#define WEIR_LIMIT_CONTROL_POLICY_BIT (1u << 2)
#define WEIR_LIMIT_CONTROL_NOTIFY_BIT (1u << 3)
#define WEIR_LIMIT_CONTROL_LOCK_BIT (1u << 31)

#define WEIR_LIMIT_BURST_BURST_SHIFT 0
#define WEIR_LIMIT_BURST_BURST_MASK 0xffu

#define WEIR_LIMIT_STATUS_OPEN_BIT (1u << 0)
#define WEIR_LIMIT_STATUS_NOTED_BIT (1u << 1)
#define WEIR_LIMIT_STATUS_OVERLOAD_BIT (1u << 2)

#define WEIR_LIMIT_HELD_COUNT_SHIFT 0
#define WEIR_LIMIT_HELD_COUNT_MASK 0xffffu

/* What ID reads as. */
#define WEIR_LIMIT_ID_VALUE 0x57454901u

#endif
