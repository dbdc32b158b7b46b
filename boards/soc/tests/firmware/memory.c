// SPDX-License-Identifier: MIT OR Apache-2.0
// Tests the memory map: devices answer accesses, and accesses to other addresses are counted as
// errors.
#include "test.h"

static volatile uint32_t initialised = 0x12345678u;
static volatile uint32_t cleared;
static volatile uint32_t cause, value;

// Counts the exception, and returns to the instruction after the one that raised it.
HANDLER void weir_riscv_trap(void)
{
    cause = SOC_CSR_READ(mcause);
    value = SOC_CSR_READ(mtval);
    SOC_CSR_WRITE(mepc, SOC_CSR_READ(mepc) + 4);
}

static void check_ram(void)
{
    volatile uint32_t *word = (volatile uint32_t *) 0x8000;
    volatile uint16_t *half = (volatile uint16_t *) 0x8000;
    volatile uint8_t *byte = (volatile uint8_t *) 0x8000;
    CHECK(initialised == 0x12345678u && cleared == 0);
    *word = 0xa1b2c3d4u;
    CHECK(byte[0] == 0xd4 && byte[1] == 0xc3 && byte[2] == 0xb2 && byte[3] == 0xa1 && half[0] == 0xc3d4 && half[1] == 0xa1b2);
    byte[1] = 0x11;
    CHECK(*word == 0xa1b211d4u);
    half[1] = 0x2233;
    CHECK(*word == 0x223311d4u);
}

// Checks that the access before this call was rejected with this address, and that no other access
// was.
static void check_refused(uint32_t address, uint32_t is_write, uint32_t line)
{
    if (SOC_ERRORS != 1 || SOC_ERROR_ADDRESS != ((address & ~3u) | is_write) || !(SOC_PENDING & 1u << SOC_LINE_BUS_ERROR)) {
        EXIT(line);
    }
    SOC_ERRORS = 0;
    SOC_PENDING = 1u << SOC_LINE_BUS_ERROR;
    CHECK(SOC_ERRORS == 0 && SOC_ERROR_ADDRESS == 0 && SOC_PENDING == 0);
}
#define REFUSES_READ(address)                                                                                                              \
    do {                                                                                                                                   \
        CHECK(SOC_REGISTER(address) == 0);                                                                                                 \
        check_refused(address, 0, __LINE__);                                                                                               \
    } while (0)
#define REFUSES_WRITE(address, number)                                                                                                     \
    do {                                                                                                                                   \
        SOC_REGISTER(address) = (number);                                                                                                  \
        check_refused(address, 1, __LINE__);                                                                                               \
    } while (0)

static void check_refusals(void)
{
    REFUSES_READ(SOC_RAM_BYTES);
    REFUSES_WRITE(SOC_RAM_BYTES, 1);
    REFUSES_READ(0x10000004u);
    REFUSES_READ(0x10010014u);
    REFUSES_READ(0x10020008u);
    REFUSES_READ(0x10030004u);
    REFUSES_READ(0x10030010u);
    REFUSES_READ(0x10030000u + 32u * SOC_LINES);
    REFUSES_READ(0x1fff0000u);
    REFUSES_READ(0x1fff0018u);
    REFUSES_READ(0x80000000u);
    REFUSES_READ(0xfffffffcu);
    REFUSES_WRITE(0x10010010u, 2);
    REFUSES_WRITE(0x10030000u, 0);
    REFUSES_WRITE(0x10030008u, 2);
    REFUSES_WRITE(0x1003000cu, 1);
    REFUSES_WRITE(0x1fff0010u, 1);
    CHECK(SOC_MSIP == 0 && SOC_EVENT_CONTROL(0) == 0);
    // Accesses to parts of a register are rejected.
    SOC_ENABLE = 0xff00ff00u;
    *(volatile uint8_t *) 0x10020004u = 0x55;
    check_refused(0x10020004u, 1, __LINE__);
    *(volatile uint16_t *) 0x11008004u = 0x5555;
    check_refused(0x11008004u, 1, __LINE__);
    CHECK(SOC_ENABLE == 0xff00ff00u && SOC_ERRORS == 0);
    SOC_ENABLE = 0;
    // The register keeps the address of the first error.
    (void) SOC_REGISTER(0x20000000u);
    (void) SOC_REGISTER(0x30000000u);
    CHECK(SOC_ERRORS == 2 && SOC_ERROR_ADDRESS == 0x20000000u);
    SOC_ERRORS = 0;
}

static void check_exceptions(void)
{
    __asm__ volatile("ecall");
    CHECK(cause == 11);
    __asm__ volatile("lw zero, 0x101(zero)");
    CHECK(cause == 4 && value == 0x101);
    __asm__ volatile("sw zero, 0x102(zero)");
    CHECK(cause == 6 && value == 0x102);
    // This is a multiplication, which this processor does not have.
    __asm__ volatile(".word 0x02000033");
    CHECK(cause == 2);
}

int main(void)
{
    check_ram();
    CHECK(SOC_LINE_COUNT == SOC_LINES && SOC_CLOCK_HZ == 1234567u && SOC_RESET == 0);
    check_refusals();
    check_exceptions();
    for (const char *text = "a \"b\" \\ \n\x7f\xe9"; *text; text++) {
        SOC_UART = (uint8_t) *text;
    }
    return 0;
}
