// SPDX-License-Identifier: GPL-3.0-or-later
//! The registers of the ATmega128 that the board itself models, with their addresses in data space
//! (data sheet, "Register Summary"; avr-libc's `iom128.h`).
use super::timer::FlagMasks;

pub const SFIOR: u16 = 0x40;
pub const ASSR: u16 = 0x50;
pub const MCUCR: u16 = 0x55;
pub const TIFR: u16 = 0x56;
pub const TIMSK: u16 = 0x57;
pub const EIFR: u16 = 0x58;
pub const EIMSK: u16 = 0x59;
pub const EICRB: u16 = 0x5a;
pub const XDIV: u16 = 0x5c;
pub const SPL: u16 = 0x5d;
pub const EICRA: u16 = 0x6a;
pub const ETIFR: u16 = 0x7c;
pub const ETIMSK: u16 = 0x7d;

/// Bits of SFIOR.
pub const TSM: u8 = 0x80;
pub const PSR0: u8 = 0x02;
pub const PSR321: u8 = 0x01;
/// Bits of MCUCR.
pub const SRE: u8 = 0x80;
pub const SLEEP_ENABLE: u8 = 0x20;
pub const SLEEP_MODE: u8 = 0x1c;
pub const IVSEL: u8 = 0x02;
/// Bits of ASSR.
pub const AS0: u8 = 0x08;
/// Bits of XDIV.
pub const XDIVEN: u8 = 0x80;

/// The addresses of PIN, DDR and PORT of the ports A to G.
pub const PORTS: [[u16; 3]; 7] = [
    [0x39, 0x3a, 0x3b],
    [0x36, 0x37, 0x38],
    [0x33, 0x34, 0x35],
    [0x30, 0x31, 0x32],
    [0x21, 0x22, 0x23],
    [0x20, 0x61, 0x62],
    [0x63, 0x64, 0x65],
];

/// Returns the port of an external interrupt: INT0 to INT3 are on port D, INT4 to INT7 on port E.
/// The bit in the port is the number of the line.
pub const fn port_of_line(line: usize) -> usize {
    if line < 4 { 3 } else { 4 }
}

/// The vector numbers of the timers' flags: first those of TIFR (bits 0 to 7), then those of ETIFR
/// (bits 8 to 13).
pub const TIMER_VECTORS: [u8; 14] = [16, 15, 14, 13, 12, 11, 10, 9, 24, 28, 29, 27, 26, 25];

/// The addresses of a timer's registers; the high byte of a 16-bit register follows its low byte.
pub struct TimerRegisters {
    /// The address of TCCRnA. `None` for 8-bit timers, which have a single control register.
    pub control_a: Option<u16>,
    /// The address of TCCRn or TCCRnB. In both the lowest three bits select the clock.
    pub control: u16,
    pub counter: u16,
    pub compare: &'static [u16],
    pub capture: Option<u16>,
    /// The timer's flags. Bits 0 to 7 are those of TIFR, higher bits those of ETIFR shifted by
    /// eight.
    pub flags: FlagMasks,
    /// The timer's prescaler reset bit in SFIOR.
    pub prescaler_reset: u8,
}

/// TIMER0 to TIMER3.
pub static TIMERS: [TimerRegisters; 4] = [
    TimerRegisters {
        control_a: None,
        control: 0x53,
        counter: 0x52,
        compare: &[0x51],
        capture: None,
        flags: FlagMasks {
            overflow: 1 << 0,
            compare: [1 << 1, 0, 0],
            capture: 0,
        },
        prescaler_reset: PSR0,
    },
    TimerRegisters {
        control_a: Some(0x4f),
        control: 0x4e,
        counter: 0x4c,
        compare: &[0x4a, 0x48, 0x78],
        capture: Some(0x46),
        flags: FlagMasks {
            overflow: 1 << 2,
            compare: [1 << 4, 1 << 3, 1 << 8],
            capture: 1 << 5,
        },
        prescaler_reset: PSR321,
    },
    TimerRegisters {
        control_a: None,
        control: 0x45,
        counter: 0x44,
        compare: &[0x43],
        capture: None,
        flags: FlagMasks {
            overflow: 1 << 6,
            compare: [1 << 7, 0, 0],
            capture: 0,
        },
        prescaler_reset: PSR321,
    },
    TimerRegisters {
        control_a: Some(0x8b),
        control: 0x8a,
        counter: 0x88,
        compare: &[0x86, 0x84, 0x82],
        capture: Some(0x80),
        flags: FlagMasks {
            overflow: 1 << 10,
            compare: [1 << 12, 1 << 11, 1 << 9],
            capture: 1 << 13,
        },
        prescaler_reset: PSR321,
    },
];
