// SPDX-License-Identifier: GPL-3.0-or-later
//! Compares interrupts with the ATmega128 data sheet's "Reset and Interrupt Handling", "External
//! Interrupts" and "Idle Mode".

use weir_emulate::board::EmulatedBoard;
use weir_emulate::line::Line;
use weir_emulate::run::{BoardEvent, EventKind, LineStimulus, RunResult, RunSpec, Stimulus, run};

fn edges(line: Line, times: &[u64]) -> LineStimulus {
    LineStimulus {
        line,
        stimulus: Stimulus::Trace {
            name: "test".to_owned(),
            times: times.to_vec().into(),
        },
    }
}

fn run_case(defines: &[&str], cycles: u64, prepare: impl FnOnce(&mut RunSpec)) -> RunResult {
    let (_folder, elf) = crate::common::build("interrupts.S", defines);
    let mut spec = EmulatedBoard::ATMEGA128.spec(&elf, 4_000_000, cycles);
    spec.trace = true;
    prepare(&mut spec);
    run(&spec).unwrap()
}

fn entered(events: &[BoardEvent]) -> Vec<(u64, u8)> {
    let vector = |event: &BoardEvent| match event.kind {
        EventKind::VectorEntered(vector) => Some((event.cycle, vector)),
        _ => None,
    };
    events.iter().filter_map(vector).collect()
}

fn taken(result: &RunResult, name: &str) -> u64 {
    result
        .vectors
        .iter()
        .find(|vector| vector.name == name)
        .map_or(0, |vector| vector.taken)
}

#[test]
fn taking_an_interrupt_costs_4_cycles() {
    let result = run_case(&["CASE_FREE"], 400, |spec| {
        spec.floods.push(edges(Line::INT0, &[100]));
        spec.marks = vec!["vector_int0".to_owned(), "handle_int0".to_owned()];
    });
    assert_eq!(entered(&result.events), [(100, 1)]);
    assert_eq!(result.marks["vector_int0"], [104]);
    assert_eq!(result.marks["handle_int0"], [107], "JMP takes 3");
    // Taking the interrupt costs 4 cycles, JMP 3, and RETI 4.
    assert_eq!(
        (result.vectors[0].cycles, result.vectors[0].longest_cycles),
        (11, 11)
    );
    assert_eq!(result.background_cycles, result.cycles - 11);
}

#[test]
fn waking_costs_4_more_and_is_counted() {
    let result = run_case(&["CASE_SLEEP"], 1000, |spec| {
        spec.floods.push(edges(Line::INT0, &[100, 500]));
        spec.marks = vec!["vector_int0".to_owned()];
    });
    assert_eq!(result.marks["vector_int0"], [108, 508]);
    assert_eq!(result.wakeups, 2);
    assert_eq!(taken(&result, "INT0"), 2);
    // The run has 12 cycles from the reset to SLEEP, two interrupts of 15 cycles, and RJMP and
    // SLEEP twice.
    assert_eq!(result.vectors[0].cycles, 30);
    assert_eq!(
        result.sleep_cycles + result.background_cycles + 30,
        result.cycles
    );
    assert!(result.sleep_cycles >= 940, "{}", result.sleep_cycles);
}

#[test]
fn a_flag_raised_while_masked_fires_when_the_bit_is_set() {
    let result = run_case(&["CASE_MASKED"], 2000, |spec| {
        spec.floods.push(edges(Line::INT0, &[100, 200]));
        spec.marks = vec!["enabled".to_owned()];
    });
    assert_eq!(taken(&result, "INT0"), 1);
    let (cycle, _) = entered(&result.events)[0];
    assert!(cycle >= 1000, "{cycle}");
    assert_eq!(
        result.marks["enabled"].first(),
        Some(&(cycle + 4 + 3 + 4)),
        "at once: before the next instruction"
    );
    assert_eq!((result.lines[0].offered, result.lines[0].missed), (2, 1));
}

#[test]
fn writing_a_one_clears_the_flag_and_a_zero_keeps_it() {
    for (clear, still_taken) in [
        ("CLEAR=0x01", [0, 1]),
        ("CLEAR=0x02", [1, 0]),
        ("CLEAR=0x00", [1, 1]),
    ] {
        let result = run_case(&["CASE_MASKED", clear], 2000, |spec| {
            spec.floods
                .extend([edges(Line::INT0, &[100]), edges(Line::INT1, &[100])]);
        });
        assert_eq!(
            [taken(&result, "INT0"), taken(&result, "INT1")],
            still_taken,
            "{clear}"
        );
    }
}

#[test]
fn the_lowest_vector_goes_first_and_one_instruction_runs_after_sei_and_reti() {
    let result = run_case(&["CASE_CLI"], 2000, |spec| {
        spec.floods
            .extend([edges(Line::INT1, &[100]), edges(Line::INT0, &[200])]);
        spec.marks = vec!["enabled".to_owned(), "body".to_owned()];
    });
    let enabled = result.marks["enabled"][0];
    // The order is SEI, NOP, INT0 (11 cycles), RJMP (2 cycles), INT1.
    assert_eq!(
        entered(&result.events),
        [(enabled + 1, 1), (enabled + 1 + 11 + 2, 2)]
    );
    assert_eq!(result.marks["body"][0], enabled + 1 + 11);
}

#[test]
fn after_sei_in_the_middle_of_a_batch_one_instruction_runs_too() {
    let result = run_case(&["CASE_BATCH"], 4000, |spec| {
        spec.floods.push(edges(Line::INT0, &[100, 1000, 2001]))
    });
    // Every SEI is followed by CLI, so no request is ever served.
    assert_eq!(taken(&result, "INT0"), 0);
    assert_eq!(result.lines[0].missed, 2);
}

#[test]
fn a_low_level_lets_one_instruction_through_per_interrupt() {
    let result = run_case(&["CASE_LEVEL"], 3000, |spec| {
        let stimulus = Stimulus::Level {
            low_cycles: 1_000_000,
            high_cycles: 1,
        };
        spec.floods.push(LineStimulus {
            line: Line::INT0,
            stimulus,
        });
    });
    let entered = entered(&result.events);
    assert!(entered.len() > 200);
    for pair in entered.windows(2) {
        assert!(
            matches!(pair[1].0 - pair[0].0, 12 | 13),
            "11 cycles and a NOP or the RJMP: {pair:?}"
        );
    }
}

#[test]
fn a_low_level_has_no_pending_bit() {
    let level = |low_cycles| {
        move |spec: &mut RunSpec| {
            let stimulus = Stimulus::Level {
                low_cycles,
                high_cycles: 1_000_000,
            };
            spec.floods.push(LineStimulus {
                line: Line::INT0,
                stimulus,
            });
        }
    };
    assert_eq!(
        taken(&run_case(&["CASE_LEVEL_LATE"], 3000, level(500)), "INT0"),
        0
    );
    assert!(taken(&run_case(&["CASE_LEVEL_LATE"], 3000, level(2000)), "INT0") > 10);
}

#[test]
fn nested_interrupts_are_charged_to_themselves() {
    let result = run_case(&["CASE_NESTED"], 1000, |spec| {
        spec.floods
            .extend([edges(Line::INT0, &[100]), edges(Line::INT1, &[120])]);
    });
    let cycles: Vec<u64> = result.vectors.iter().map(|vector| vector.cycles).collect();
    // The outer interrupt has 4 cycles to take it, JMP 3, SEI, 40 NOP and RETI 4. The inner
    // interrupt has 4, 3 and 4 cycles.
    assert_eq!(cycles, [4 + 3 + 1 + 40 + 4, 11]);
}

#[test]
fn a_compare_interrupt_is_taken_in_the_cycle_in_which_its_flag_is_set() {
    let result = run_case(&["CASE_COMPARE"], 1000, |spec| {
        spec.marks = vec!["start".to_owned()]
    });
    let start = result.marks["start"][0];
    // OUT is executed in cycle 0. The counter is 99 in cycle 100, and the flag is set at the edge
    // to cycle 101.
    let expected: Vec<(u64, u8)> = (0..3).map(|k| (start + 101 + 100 * k, 15)).collect();
    assert_eq!(entered(&result.events)[..3], expected);
}

#[test]
fn a_request_that_finds_the_flag_set_is_missed() {
    let result = run_case(&["CASE_FREE"], 4000, |spec| {
        spec.floods
            .push(edges(Line::INT0, &[100, 104, 111, 112, 2000]))
    });
    // The request at cycle 100 is taken at once, and the one at 104 waits. The handler ends at 111.
    // One instruction runs before the processor finds the flag of 104. That request is taken at
    // 112.
    assert_eq!(result.lines[0].offered, 5);
    assert_eq!(taken(&result, "INT0") + result.lines[0].missed, 5);
    assert_eq!(result.lines[0].missed, 2);
}
