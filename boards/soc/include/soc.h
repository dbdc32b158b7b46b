// SPDX-License-Identifier: MIT OR Apache-2.0
// The memory map of the board soc, for C. The README documents the registers.
#ifndef WEIR_SOC_H
#define WEIR_SOC_H

#include <stdint.h>

// All registers are words. An access to a part of a register, or to an address without a device, is
// a bus error.
#define SOC_REGISTER(address) (*(volatile uint32_t *) (uintptr_t) (address))

// The wires into the event devices. The outputs of these devices are the lines 0 to 7 of the
// interrupt controller.
#define SOC_LINES 8
#define SOC_LINE_OVERLOAD 8
#define SOC_LINE_BUS_ERROR 9

#define SOC_RAM_BASE 0x00000000u
#define SOC_RAM_BYTES 0x00010000u

// The UART. A write sends its character at once.
#define SOC_UART SOC_REGISTER(0x10000000u)

// mtime counts clocks. Its two halves are read separately.
#define SOC_MTIME_LOW SOC_REGISTER(0x10010000u)
#define SOC_MTIME_HIGH SOC_REGISTER(0x10010004u)
#define SOC_MTIMECMP_LOW SOC_REGISTER(0x10010008u)
#define SOC_MTIMECMP_HIGH SOC_REGISTER(0x1001000cu)
#define SOC_MSIP SOC_REGISTER(0x10010010u)

// A rising edge of a line sets its bit of PENDING; writing a one clears the bit.
#define SOC_PENDING SOC_REGISTER(0x10020000u)
#define SOC_ENABLE SOC_REGISTER(0x10020004u)

#define SOC_EVENT_COUNT(line) SOC_REGISTER(0x10030000u + 32u * (line))
#define SOC_EVENT_POP(line) SOC_REGISTER(0x10030004u + 32u * (line))
#define SOC_EVENT_CONTROL(line) SOC_REGISTER(0x10030008u + 32u * (line))
#define SOC_EVENT_WIRE(line) SOC_REGISTER(0x1003000cu + 32u * (line))
// QUEUE: the device requests as long as events wait, and requests again after each pop.
#define SOC_EVENT_QUEUE 1u

// The limiter weir_limit, whose registers are documented in rtl/limit. After a reset it limits
// nothing.
#define SOC_LIMIT_BASE 0x11000000u

#define SOC_EXIT SOC_REGISTER(0x1fff0000u)
#define SOC_RESET SOC_REGISTER(0x1fff0004u)
#define SOC_ERRORS SOC_REGISTER(0x1fff0008u)
#define SOC_ERROR_ADDRESS SOC_REGISTER(0x1fff000cu)
#define SOC_LINE_COUNT SOC_REGISTER(0x1fff0010u)
#define SOC_CLOCK_HZ SOC_REGISTER(0x1fff0014u)

// Bits of mstatus, mie and mip, and two registers of this processor: the mask of the lines, and the
// lines that request.
#define SOC_MSTATUS_MIE 0x8u
#define SOC_MIE_SOFTWARE 0x8u
#define SOC_MIE_TIMER 0x80u
#define SOC_MIE_EXTERNAL 0x800u
#define SOC_CSR_LINE_MASK 0xbc0
#define SOC_CSR_LINES_ASKING 0xfc0

#define SOC_STRINGIFY_(text) #text
#define SOC_STRINGIFY(text) SOC_STRINGIFY_(text)
// `csr` is a name that the assembler knows, or one of the numbers above.
#define SOC_CSR_READ(csr)                                                                                                                  \
    (__extension__({                                                                                                                       \
        uint32_t soc_value_;                                                                                                               \
        __asm__ volatile("csrr %0, " SOC_STRINGIFY(csr) : "=r"(soc_value_) : : "memory");                                                  \
        soc_value_;                                                                                                                        \
    }))
#define SOC_CSR_WRITE(csr, value) __asm__ volatile("csrw " SOC_STRINGIFY(csr) ", %0" : : "rK"((uint32_t) (value)) : "memory")
#define SOC_CSR_SET(csr, bits) __asm__ volatile("csrs " SOC_STRINGIFY(csr) ", %0" : : "rK"((uint32_t) (bits)) : "memory")
#define SOC_CSR_CLEAR(csr, bits) __asm__ volatile("csrc " SOC_STRINGIFY(csr) ", %0" : : "rK"((uint32_t) (bits)) : "memory")

#endif
