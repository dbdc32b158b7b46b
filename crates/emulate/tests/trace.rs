// SPDX-License-Identifier: GPL-3.0-or-later
//! Tests the trace of events with a firmware that masks a line and unmasks it from a timer.

use weir_emulate::board::EmulatedBoard;
use weir_emulate::line::Line;
use weir_emulate::run::{BoardEvent, EventKind, run};

const EIMSK: u16 = 0x59;
const TIMSK: u16 = 0x57;
const TIFR: u16 = 0x56;
const TCNT0: u16 = 0x52;
const OCR0: u16 = 0x51;
const INT5: u8 = 6;
const TIMER0_COMP: u8 = 15;

#[test]
fn a_trace_tells_the_story_of_one_request_in_order() {
    let (_folder, elf) = crate::common::build("traced.c", &[]);
    let mut spec = EmulatedBoard::ATMEGA128.spec(&elf, 4_000_000, 4000);
    spec.warmup_cycles = 1000;
    spec.floods.push(
        EmulatedBoard::ATMEGA128
            .stimulus("INT5=1kHz", 4_000_000)
            .unwrap(),
    );
    spec.marks = vec!["__vector_6".to_owned()];
    spec.trace = true;
    let result = run(&spec).unwrap();
    let events: Vec<&BoardEvent> = result.events.iter().collect();

    let at = |wanted: &dyn Fn(&EventKind) -> bool| {
        events.iter().position(|event| wanted(&event.kind)).unwrap()
    };
    let written = |register: u16, content: u8| {
        at(&|kind| {
            *kind
                == EventKind::IoWritten {
                    address: register,
                    value: content,
                }
        })
    };
    let story = [
        at(&|kind| *kind == EventKind::PinEdge(Line::INT5)),
        at(&|kind| *kind == EventKind::VectorEntered(INT5)),
        at(&|kind| *kind == EventKind::PcReached("__vector_6".to_owned())),
        written(EIMSK, 0),
        at(&|kind| matches!(kind, EventKind::IoRead { address: TCNT0, .. })),
        at(&|kind| matches!(kind, EventKind::IoWritten { address: OCR0, .. })),
        written(TIFR, 1 << 1),
        written(TIMSK, 1 << 1),
        at(&|kind| *kind == EventKind::Reti),
        at(&|kind| *kind == EventKind::VectorEntered(TIMER0_COMP)),
        written(TIMSK, 0),
        written(EIMSK, 1 << 5),
    ];
    assert!(story.is_sorted_by(|a, b| a < b), "{story:?} in {events:?}");
    assert!(events.is_sorted_by_key(|event| event.cycle));

    let edge = events[story[0]].cycle;
    assert_eq!(
        events[story[1]].cycle, edge,
        "taken in the cycle of the edge: the processor sleeps"
    );
    assert_eq!(
        result.marks["__vector_6"],
        [edge + 4 + 4 + 3],
        "taking, waking, JMP"
    );
    let read = match events[story[4]].kind {
        EventKind::IoRead { value, .. } => value,
        _ => unreachable!("the position is one of an IoRead"),
    };
    assert_eq!(
        events[story[5]].kind,
        EventKind::IoWritten {
            address: OCR0,
            value: read.wrapping_add(20)
        }
    );
    // The expiry is 21 edges of clk/8 after the edge at which the counter took the value that was
    // read. That edge was 0 to 7 cycles before the read.
    let expiry = events[story[9]].cycle - events[story[4]].cycle;
    assert!((20 * 8 + 1..=21 * 8).contains(&expiry), "{expiry}");
    assert_eq!(result.wakeups, 2);
}

#[test]
fn a_run_without_a_trace_has_no_events() {
    let (_folder, elf) = crate::common::build("traced.c", &[]);
    let mut spec = EmulatedBoard::ATMEGA128.spec(&elf, 4_000_000, 40_000);
    spec.floods.push(
        EmulatedBoard::ATMEGA128
            .stimulus("INT5=1kHz", 4_000_000)
            .unwrap(),
    );
    let result = run(&spec).unwrap();
    assert!(result.events.is_empty() && !result.vectors.is_empty());
}
