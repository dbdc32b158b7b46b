// SPDX-License-Identifier: GPL-3.0-or-later
//! Compares the timers with the ATmega128 data sheet's chapters on them, and tests features that
//! the board does not emulate.

use weir_emulate::atmega128::Atmega128Board;
use weir_emulate::board::EmulatedBoard;
use weir_emulate::chip::ATMEGA128;
use weir_emulate::elf::Image;
use weir_emulate::run::{RunError, run};

const TOV0: u8 = 1 << 0;
const OCF0: u8 = 1 << 1;
const OCF1B: u8 = 1 << 3;
const OCF1A: u8 = 1 << 4;
const ICF1: u8 = 1 << 5;
const OCF2: u8 = 1 << 7;
const OCF1C: u8 = 1 << 0;
const OCF3C: u8 = 1 << 1;
const OCF3B: u8 = 1 << 3;
const OCF3A: u8 = 1 << 4;

/// Returns the program's results in out0 to out7.
fn outputs(defines: &[&str]) -> [u8; 8] {
    let (_folder, elf) = crate::common::build("timers.S", defines);
    let image = Image::load(&elf, &ATMEGA128).unwrap();
    let mut board = Atmega128Board::new(&ATMEGA128, &image, 4_000_000, false).unwrap();
    board.run_until(5000).unwrap();
    std::array::from_fn(|index| {
        let variable = image.variable(&format!("out{index}")).unwrap();
        u8::try_from(board.read(variable)).unwrap()
    })
}

#[test]
fn the_counter_counts_every_cycle_and_goes_on_after_a_stop() {
    assert_eq!(outputs(&["CASE_COUNT"])[..7], [0, 1, 3, 5, 6, 10, 11]);
}

#[test]
fn a_divided_clock_keeps_the_prescalers_phase() {
    // The prescaler has edges at the start of cycles 9 and 17. An OUT in cycle 1 + DELAY starts the
    // timer, with effect from the end of the next cycle.
    for (delay, count) in [(0, 2), (6, 2), (7, 1), (14, 1), (15, 0)] {
        let defines = ["CASE_PRESCALER".to_owned(), format!("DELAY={delay}")];
        let outputs = outputs(&defines.each_ref().map(String::as_str));
        assert_eq!(outputs[..2], [count, 0], "started {delay} cycles later");
    }
}

#[test]
fn synchronisation_mode_holds_the_prescaler() {
    assert_eq!(outputs(&["CASE_HOLD"])[..4], [0, 0x82, 0, 1]);
}

#[test]
fn the_compare_flag_is_set_at_the_edge_after_the_match_and_ctc_does_not_overflow() {
    assert_eq!(outputs(&["CASE_COMPARE_FLAG"])[..5], [0, 0, OCF0, 1, OCF0]);
}

#[test]
fn flags_are_cleared_by_ones_only() {
    let all = OCF0 | OCF1A | OCF1B | OCF2;
    let all_extended = OCF1C | OCF3A | OCF3B | OCF3C;
    let expected = [all, all, all & !OCF0, all_extended, all_extended & !OCF3C];
    assert_eq!(outputs(&["CASE_FLAGS"])[..5], expected);
}

#[test]
fn writing_the_counter_blocks_the_next_match() {
    assert_eq!(outputs(&["CASE_BLOCK"])[..2], [0, OCF0]);
}

#[test]
fn a_match_that_is_jumped_over_is_not_seen() {
    assert_eq!(outputs(&["CASE_JUMP"])[..2], [0, 0]);
}

#[test]
fn the_overflow_flag_is_set_at_the_edge_to_zero() {
    assert_eq!(outputs(&["CASE_OVERFLOW"])[..3], [0, TOV0, 1]);
}

#[test]
fn sixteen_bits_are_read_and_written_at_once() {
    assert_eq!(
        outputs(&["CASE_TEMP"]),
        [0, 0x34, 0x12, 0, 0x34, 0x12, 0xff, 0]
    );
}

#[test]
fn the_capture_register_can_be_the_top() {
    assert_eq!(
        outputs(&["CASE_CAPTURE_TOP"])[..3],
        [OCF1A | OCF1B, OCF1A | OCF1B | ICF1, 1]
    );
}

#[test]
fn what_is_not_modelled_is_an_error_that_names_the_place() {
    for (case, says) in [
        ("CASE_PWM", "runs TIMER0 in a PWM mode"),
        ("CASE_EXTERNAL_CLOCK", "clocks TIMER1 from its external pin"),
        (
            "CASE_ILLEGAL",
            "executes an instruction that the chip does not have",
        ),
        ("CASE_OVERFLOWING_STACK", "overflows its stack"),
        ("CASE_POWER_DOWN", "sleeps in another mode than idle"),
    ] {
        let (_folder, elf) = crate::common::build("timers.S", &[case]);
        let error = run(&EmulatedBoard::ATMEGA128.spec(&elf, 4_000_000, 2000)).unwrap_err();
        assert!(
            matches!(error, RunError::Firmware { .. }),
            "{case}: {error}"
        );
        let message = error.to_string();
        assert!(
            message.contains(says) && message.contains("0x00"),
            "{case}: {message}"
        );
    }
}

#[test]
fn an_interrupt_without_a_handler_is_an_error_that_names_it() {
    let (_folder, elf) = crate::common::build("no_handler.c", &[]);
    let message = run(&EmulatedBoard::ATMEGA128.spec(&elf, 4_000_000, 2000))
        .unwrap_err()
        .to_string();
    assert!(
        message.contains("takes the interrupt TIMER0_OVF, for which it has no handler"),
        "{message}"
    );
}

#[test]
fn a_reset_by_the_watchdog_is_an_error() {
    let (_folder, elf) = crate::common::build("watchdog.c", &[]);
    let message = run(&EmulatedBoard::ATMEGA128.spec(&elf, 4_000_000, 4_000_000))
        .unwrap_err()
        .to_string();
    assert!(message.contains("is reset by the watchdog"), "{message}");
}
