// SPDX-License-Identifier: GPL-3.0-or-later
//! Measures response times in a trace of the board.
use super::attack::Aim;
use weir_emulate::line::Line;
use weir_emulate::run::{BoardEvent, EventKind};

/// The jobs or interrupts to observe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResponseWatch {
    /// The jobs of the main loop, from the first instruction to the end of the last. A job writes 1
    /// to a register in data space when it begins, and 0 when it ends.
    Job {
        /// The register's address in data space.
        mark: u16,
    },
    /// The interrupts of a line, from the edge that sets the pending bit to the end of the RETI.
    Interrupt {
        /// The observed line.
        line: Line,
        /// The number of the line's vector.
        vector: u8,
    },
}

/// The longest response of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Response {
    /// The length in cycles, or 0 if no response ended in the run.
    pub cycles: u64,
    /// Where the response lies in the trace.
    pub aim: Aim,
}

/// Interrupts count as near the worst job from this many cycles before its release.
const BEFORE: u64 = 4000;

/// Finds the longest response. A response that has not ended when the trace ends does not count.
pub(super) fn worst(events: &[BoardEvent], watch: ResponseWatch) -> Response {
    let (from, to) = match watch {
        ResponseWatch::Job { mark } => longest_job(events, mark),
        ResponseWatch::Interrupt { line, vector } => longest_interrupt(events, line, vector),
    };
    let instants = events
        .iter()
        .filter(|event| (from.saturating_sub(BEFORE)..=to).contains(&event.cycle))
        .filter(|event| matches!(event.kind, EventKind::VectorEntered(_) | EventKind::Reti))
        .map(|event| event.cycle)
        .collect();
    Response {
        cycles: to - from,
        aim: Aim { from, to, instants },
    }
}

fn longest_job(events: &[BoardEvent], mark: u16) -> (u64, u64) {
    let mut longest = (0, 0);
    let mut begun = None;
    for event in events {
        let EventKind::IoWritten { address, value } = event.kind else {
            continue;
        };
        if address != mark {
            continue;
        }
        if value != 0 {
            begun = Some(event.cycle);
        } else if let Some(from) = begun.take() {
            // The trace records the two writes alike. Each takes one cycle, and that of the last
            // one belongs to the job.
            longest = longer(longest, (from, event.cycle + 1));
        }
    }
    longest
}

fn longest_interrupt(events: &[BoardEvent], line: Line, vector: u8) -> (u64, u64) {
    let mut longest = (0, 0);
    let mut pending = None;
    // Interrupts do not nest on this chip.
    let mut running = None;
    for event in events {
        match event.kind {
            EventKind::PinEdge(at) if at == line => {
                pending.get_or_insert(event.cycle);
            }
            EventKind::VectorEntered(number) if number == vector => running = pending.take(),
            EventKind::Reti => {
                if let Some(from) = running.take() {
                    longest = longer(longest, (from, event.cycle));
                }
            }
            _ => {}
        }
    }
    longest
}

fn longer(a: (u64, u64), b: (u64, u64)) -> (u64, u64) {
    if b.1 - b.0 > a.1 - a.0 { b } else { a }
}

/// The longest interrupt of a vector in cycles, from its taking to the end of its RETI, or 0 if
/// there was none.
pub(super) fn longest_run(events: &[BoardEvent], vector: u8) -> u64 {
    let mut longest = 0;
    let mut begun = None;
    for event in events {
        match event.kind {
            EventKind::VectorEntered(number) => begun = (number == vector).then_some(event.cycle),
            EventKind::Reti => {
                if let Some(from) = begun.take() {
                    longest = longest.max(event.cycle - from);
                }
            }
            _ => {}
        }
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARK: u16 = 0x43;

    fn event(cycle: u64, kind: EventKind) -> BoardEvent {
        BoardEvent { cycle, kind }
    }

    fn mark(cycle: u64, value: u8) -> BoardEvent {
        let address = MARK;
        event(cycle, EventKind::IoWritten { address, value })
    }

    #[test]
    fn a_job_lasts_from_its_first_instruction_to_the_end_of_its_last() {
        let other = EventKind::IoWritten {
            address: 0x59,
            value: 1,
        };
        let events = [
            // This job began before the trace did.
            mark(5, 0),
            mark(100, 1),
            mark(199, 0),
            mark(202, 1),
            event(210, other),
            event(220, EventKind::VectorEntered(1)),
            event(290, EventKind::Reti),
            mark(399, 0),
            mark(402, 1),
        ];
        let found = worst(&events, ResponseWatch::Job { mark: MARK });
        assert_eq!(
            (found.cycles, found.aim.from, found.aim.to),
            (198, 202, 400)
        );
        assert_eq!(found.aim.instants, [220, 290]);
        assert_eq!(longest_run(&events, 1), 70);
        assert_eq!(longest_run(&events, 2), 0);
    }

    #[test]
    fn an_interrupt_responds_to_the_edge_that_set_its_pending_bit() {
        let line = Line::INT1;
        let events = [
            event(10, EventKind::PinEdge(Line::INT0)),
            event(14, EventKind::VectorEntered(1)),
            event(20, EventKind::PinEdge(line)),
            // An edge is no new request if the pending bit is already set.
            event(30, EventKind::PinEdge(line)),
            event(60, EventKind::Reti),
            event(61, EventKind::VectorEntered(2)),
            event(70, EventKind::PinEdge(line)),
            event(100, EventKind::Reti),
            event(101, EventKind::VectorEntered(2)),
            event(140, EventKind::Reti),
        ];
        let found = worst(&events, ResponseWatch::Interrupt { line, vector: 2 });
        assert_eq!((found.cycles, found.aim.from), (80, 20));
        let none = worst(&events[..2], ResponseWatch::Interrupt { line, vector: 2 });
        assert_eq!(none.cycles, 0);
    }
}
