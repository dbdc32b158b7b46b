// SPDX-License-Identifier: GPL-3.0-or-later
//! Tests of complete runs: floods, limits, counters, a second chip, and rejected specifications.

use std::path::Path;

use weir_emulate::board::EmulatedBoard;
use weir_emulate::line::Line;
use weir_emulate::run::{
    FrontController, HardwareLimit, LineStimulus, RunResult, RunSpec, Stimulus, run,
};

/// The cycles of one iteration of `counter.c`'s background loop: four LDS, ADIW, two ADC, four STS,
/// RJMP and so on.
const CYCLES_PER_PROGRESS: u64 = 22;

fn flood(text: &str) -> LineStimulus {
    EmulatedBoard::ATMEGA128.stimulus(text, 4_000_000).unwrap()
}

fn taken(result: &RunResult, name: &str) -> u64 {
    result
        .vectors
        .iter()
        .find(|vector| vector.name == name)
        .map_or(0, |vector| vector.taken)
}

#[test]
fn every_cycle_is_charged_to_somebody_and_every_request_is_counted() {
    let (_folder, elf) = crate::common::build("counter.c", &[]);
    let mut spec = EmulatedBoard::ATMEGA128.spec(&elf, 4_000_000, 4_000_000);
    spec.warmup_cycles = 400_000;
    spec.floods.push(flood("INT0=4kHz:phase=50us"));
    spec.counters = ["progress", "handled", "handled_byte"]
        .map(str::to_owned)
        .to_vec();
    let result = run(&spec).unwrap();
    let int0 = &result.vectors[0];
    assert_eq!(
        (int0.taken, result.lines[0].offered, result.lines[0].missed),
        (4000, 4000, 0)
    );
    assert_eq!(int0.cycles, int0.longest_cycles * 4000, "all alike");
    assert_eq!(result.background_cycles + int0.cycles, result.cycles);
    assert_eq!(result.counters["handled"], 4000);
    assert_eq!(
        result.counters["handled_byte"], 4000,
        "its wrap-arounds are followed"
    );
    let expected = result.background_cycles / CYCLES_PER_PROGRESS;
    assert!(
        result.counters["progress"].abs_diff(expected) <= 1,
        "{} {expected}",
        result.counters["progress"]
    );
}

#[test]
fn counters_do_not_begin_or_end_within_a_carry() {
    let (_folder, elf) = crate::common::build("counter.c", &[]);
    // 256 counts take 5632 cycles. The test ends a run at every cycle of one count around the
    // carry.
    for cycles in 5632 - 22..5632 + 60 {
        let mut spec = EmulatedBoard::ATMEGA128.spec(&elf, 4_000_000, cycles);
        spec.counters = vec!["progress".to_owned()];
        let result = run(&spec).unwrap();
        let expected = result.cycles / CYCLES_PER_PROGRESS;
        assert!(
            result.counters["progress"].abs_diff(expected) <= 4,
            "{cycles}: {}",
            result.counters["progress"]
        );
    }
}

#[test]
fn the_same_run_twice_and_in_parallel_gives_the_same_result() {
    let (_folder, elf) = crate::common::build("counter.c", &[]);
    let mut spec = EmulatedBoard::ATMEGA128.spec(&elf, 4_000_000, 400_000);
    spec.floods.push(flood("INT0=poisson:20kHz:seed=7"));
    spec.counters = vec!["progress".to_owned()];
    spec.trace = true;
    let first = run(&spec).unwrap();
    let others: Vec<RunResult> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| run(&spec).unwrap()))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert!(others.iter().all(|other| *other == first));
    assert!(first.lines[0].missed > 0);
}

#[test]
fn a_hardware_limit_holds_the_rate() {
    let (_folder, elf) = crate::common::build("counter.c", &[]);
    let mut spec = EmulatedBoard::ATMEGA128.spec(&elf, 4_000_000, 4_000_000);
    spec.warmup_cycles = 400_500;
    spec.floods.push(flood("INT0=20kHz"));
    spec.hardware_limits.push(HardwareLimit {
        line: Line::INT0,
        interval_cycles: 1000,
    });
    let result = run(&spec).unwrap();
    assert_eq!(
        (taken(&result, "INT0"), result.lines[0].offered),
        (4000, 4000)
    );
}

#[test]
fn a_chip_in_front_drives_the_line() {
    let (_folder, elf) = crate::common::build("counter.c", &[]);
    let (_front_folder, front) = crate::common::build("repeater.c", &[]);
    let mut spec = EmulatedBoard::ATMEGA128.spec(&elf, 4_000_000, 4_000_000);
    spec.warmup_cycles = 400_500;
    spec.floods.push(flood("INT0=4kHz"));
    spec.counters = vec!["handled".to_owned()];
    let output = "PB0".parse().unwrap();
    spec.front = Some(FrontController {
        elf: front,
        input: Line::INT2,
        output,
        to: Line::INT0,
    });
    assert_eq!(
        run(&spec).unwrap().lines[0].offered,
        0,
        "the repeater listens to INT0"
    );
    spec.front.as_mut().unwrap().input = Line::INT0;
    let result = run(&spec).unwrap();
    assert_eq!(
        (result.counters["handled"], result.lines[0].offered),
        (4000, 4000)
    );
}

#[test]
fn a_sleeping_background_is_woken_once_per_request() {
    let (_folder, elf) = crate::common::build("counter.c", &["SLEEP"]);
    let mut spec = EmulatedBoard::ATMEGA128.spec(&elf, 4_000_000, 4_000_000);
    spec.floods.push(flood("INT0=1kHz:phase=100us"));
    let result = run(&spec).unwrap();
    assert_eq!(result.wakeups, 1000);
    assert!(result.sleep_cycles > 3_900_000);
    assert_eq!(
        result.sleep_cycles + result.background_cycles + result.vectors[0].cycles,
        result.cycles
    );
}

#[test]
fn simavrs_own_peripherals_still_interrupt() {
    let (_folder, elf) = crate::common::build("serial.c", &[]);
    let mut spec = EmulatedBoard::ATMEGA128.spec(&elf, 4_000_000, 4_000_000);
    spec.counters = ["sent", "completed"].map(str::to_owned).to_vec();
    let result = run(&spec).unwrap();
    for vector in ["USART0_UDRE", "USART0_TX"] {
        assert!(taken(&result, vector) > 0, "{vector}: {:?}", result.vectors);
    }
    // At 9615 baud simavr sends 874 bytes, because it uses 11 bits per byte. The chip sends 961.
    assert!(
        (870..970).contains(&result.counters["sent"]),
        "{:?}",
        result.counters
    );
}

#[test]
fn what_cannot_be_run_is_refused_with_advice() {
    let (_folder, elf) = crate::common::build("counter.c", &[]);
    let base = || {
        let mut spec = EmulatedBoard::ATMEGA128.spec(&elf, 4_000_000, 1000);
        spec.floods.push(flood("INT0=1kHz"));
        spec
    };
    let message = |change: &dyn Fn(&mut RunSpec)| {
        let mut spec = base();
        change(&mut spec);
        run(&spec).unwrap_err().to_string()
    };
    let limit = |line, interval_cycles| HardwareLimit {
        line,
        interval_cycles,
    };
    assert!(message(&|spec| spec.clock_hz = 0).contains("a clock of 0 Hz"));
    assert!(message(&|spec| spec.cycles = 0).contains("run at least 1"));
    assert!(message(&|spec| spec.warmup_cycles = u64::MAX).contains("too long"));
    assert!(message(&|spec| spec.floods.push(flood("INT0=2kHz"))).contains("two floods"));
    assert!(
        message(&|spec| spec.hardware_limits.push(limit(Line::INT1, 9))).contains("flood INT1 too")
    );
    assert!(
        message(&|spec| spec.hardware_limits.push(limit(Line::INT0, 0))).contains("at least 1")
    );
    assert!(
        message(&|spec| spec.hardware_limits = vec![limit(Line::INT0, 9); 2])
            .contains("two hardware limits")
    );
    assert!(
        message(&|spec| spec.counters.push("progres".to_owned())).contains("no variable `progres`")
    );
    assert!(
        message(&|spec| spec.marks.push("mian".to_owned())).contains("no place in the code `mian`")
    );
    assert!(
        message(&|spec| spec.elf = Path::new("/nowhere.elf").to_owned())
            .contains("cannot read /nowhere.elf")
    );
    let bad = Stimulus::Trace {
        name: "t".to_owned(),
        times: vec![5, 4].into(),
    };
    assert!(message(&|spec| spec.floods[0].stimulus = bad.clone()).contains("out of order"));
    assert!(
        message(&|spec| spec.floods[0].stimulus = Stimulus::Periodic {
            rate_hz: f64::NAN,
            phase_cycles: 0
        })
        .contains("INT0")
    );
}
