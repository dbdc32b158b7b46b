// SPDX-License-Identifier: GPL-3.0-or-later
//! Classifies the interrupts in a trace by what they did.
use std::collections::BTreeMap;

use weir_emulate::run::{BoardEvent, EventKind};

/// The kinds of interrupts that a limiter causes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LimiterInterrupt {
    /// An interrupt of the line that ran the handler.
    RequestServed,
    /// An interrupt of the line that did not run the handler.
    RequestRefused,
    /// An interrupt of the timer that ran the handler for a waiting request.
    ExpiryServed,
    /// An interrupt of the timer that did not run the handler.
    ExpiryEmpty,
}

impl LimiterInterrupt {
    pub const ALL: [Self; 4] = [
        Self::RequestServed,
        Self::RequestRefused,
        Self::ExpiryServed,
        Self::ExpiryEmpty,
    ];

    /// The kind's key in the file of the board's costs.
    pub fn name(self) -> &'static str {
        match self {
            Self::RequestServed => "request_served",
            Self::RequestRefused => "request_refused",
            Self::ExpiryServed => "expiry_served",
            Self::ExpiryEmpty => "expiry_empty",
        }
    }
}

/// The interrupts to observe, and how to recognise that the handler ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InterruptWatch {
    /// The vector numbers of the lines.
    pub lines: Vec<u8>,
    /// The vector number of the timer.
    pub timer: u8,
    /// The address of a register in data space that only the handler's body writes.
    pub mark: u16,
    /// The length of the handler's body, in cycles.
    pub body: u64,
}

/// The longest interrupt of each kind in cycles, from its taking to the end of its RETI, without
/// the handler's body. Kinds that never occurred are missing. Interrupts do not nest in the
/// measured firmware.
pub(super) fn longest(
    events: &[BoardEvent],
    watch: &InterruptWatch,
) -> BTreeMap<LimiterInterrupt, u64> {
    let mut longest = BTreeMap::new();
    let mut taken: Option<(u8, u64)> = None;
    let mut served = false;
    for event in events {
        match &event.kind {
            EventKind::VectorEntered(number) => {
                taken = Some((*number, event.cycle));
                served = false;
            }
            EventKind::IoWritten { address, .. } if *address == watch.mark => served = true,
            EventKind::Reti => {
                let Some((number, begin)) = taken.take() else {
                    continue;
                };
                let kind = match (watch.lines.contains(&number), number == watch.timer, served) {
                    (true, _, true) => LimiterInterrupt::RequestServed,
                    (true, _, false) => LimiterInterrupt::RequestRefused,
                    (false, true, true) => LimiterInterrupt::ExpiryServed,
                    (false, true, false) => LimiterInterrupt::ExpiryEmpty,
                    (false, false, _) => continue,
                };
                let body = if served { watch.body } else { 0 };
                let cycles = event.cycle.saturating_sub(begin).saturating_sub(body);
                let most = longest.entry(kind).or_insert(0);
                *most = cycles.max(*most);
            }
            _ => {}
        }
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_is_what_it_did() {
        let watch = InterruptWatch {
            lines: vec![1, 2],
            timer: 12,
            mark: 0x43,
            body: 10,
        };
        let mut events = Vec::new();
        let mut interrupt = |number: u8, begin: u64, cycles: u64, mark: Option<u16>| {
            let mut add = |cycle, kind| events.push(BoardEvent { cycle, kind });
            add(begin, EventKind::VectorEntered(number));
            if let Some(address) = mark {
                add(begin + 1, EventKind::IoWritten { address, value: 0 });
            }
            add(begin + cycles, EventKind::Reti);
        };
        interrupt(1, 100, 60, Some(0x43));
        interrupt(2, 200, 66, Some(0x43));
        interrupt(1, 300, 50, None);
        // The handler does not write this register.
        interrupt(1, 400, 51, Some(0x59));
        interrupt(12, 500, 40, None);
        interrupt(12, 600, 90, Some(0x43));
        // The first interrupt has another vector. The second one does not end within the trace.
        interrupt(15, 700, 900, Some(0x43));
        events.push(BoardEvent {
            cycle: 2000,
            kind: EventKind::VectorEntered(1),
        });
        let expected = BTreeMap::from([
            (LimiterInterrupt::RequestServed, 56),
            (LimiterInterrupt::RequestRefused, 51),
            (LimiterInterrupt::ExpiryServed, 80),
            (LimiterInterrupt::ExpiryEmpty, 40),
        ]);
        assert_eq!(longest(&events, &watch), expected);
    }
}
