// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks the contracts of moderated queues in random runs with wraps, late timers, polling,
//! changes and several queues, at every width.

use proptest::prelude::*;
use weir_core_sys::moderate::{Moderator, QueueConfig};
use weir_core_sys::{W16, W32, W64, Width};

/// The greatest lateness of the port, in ticks: L of CONTRACTS.md.
const LATE: u64 = 9;

#[derive(Clone, Debug)]
enum Event {
    Wait(u64),
    Packets(u32),
    /// The interrupt takes this many packets, if one is raised.
    Take(u32),
    /// A receiver takes this many packets without an interrupt.
    Poll(u32),
    Late(u64),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fact {
    Accepted,
    Dropped,
    Raised,
    Removed(u32),
    Done,
}

/// The events of one queue, each with its instant.
type History = Vec<(u64, Fact)>;

struct Port<W: Width> {
    nic: Moderator<W>,
    now: u64,
    late: u64,
    /// The instant for which the timer is set; the timer fires `late` ticks after it.
    armed: Option<u64>,
    histories: Vec<History>,
}

impl<W: Width> Port<W> {
    fn note(&mut self, queue: usize, fact: Fact) {
        self.histories[queue].push((self.now, fact));
    }

    fn arm(&mut self) {
        self.armed = match self.nic.next(self.now) {
            // If the queue is already due, it was due when the timer was set.
            Some(at) if at == self.now => self.armed.or(Some(at)),
            at => at,
        };
    }

    fn advance(&mut self, to: u64) {
        while let Some(fires) = self.armed.map(|at| at + self.late).filter(|&at| at <= to) {
            self.now = self.now.max(fires);
            let due: Vec<usize> = self.nic.due(self.now).collect();
            assert!(!due.is_empty(), "MODERATE-NEXT-1: fires for nothing");
            for queue in due {
                self.note(queue, Fact::Raised);
            }
            self.arm();
        }
        self.now = to;
    }

    fn happen(&mut self, queue: usize, event: &Event) {
        match *event {
            Event::Wait(ticks) => self.advance(self.now + ticks),
            Event::Late(late) => self.late = late,
            Event::Packets(count) => {
                for _ in 0..count {
                    let arrived = self.nic.arrive(queue, self.now);
                    self.note(
                        queue,
                        if arrived.accepted {
                            Fact::Accepted
                        } else {
                            Fact::Dropped
                        },
                    );
                    if arrived.interrupt {
                        self.note(queue, Fact::Raised);
                    }
                }
            }
            Event::Take(count) => {
                if self.nic.is_raised(queue) {
                    let taken = self.nic.remove(queue, count);
                    self.note(queue, Fact::Removed(taken));
                    self.note(queue, Fact::Done);
                    if self.nic.done(queue, self.now) {
                        self.note(queue, Fact::Raised);
                    }
                }
            }
            Event::Poll(count) => {
                let taken = self.nic.remove(queue, count);
                self.note(queue, Fact::Removed(taken));
            }
        }
        self.arm();
    }
}

fn play<W: Width>(configs: &[QueueConfig], before: u64, events: &[(usize, Event)]) -> Vec<History> {
    let start = if W::BITS == 64 {
        1 << 40
    } else {
        (1 << W::BITS) - before
    };
    let mut port: Port<W> = Port {
        nic: Moderator::new(configs).expect("valid"),
        now: start,
        late: 0,
        armed: None,
        histories: vec![Vec::new(); configs.len()],
    };
    for (queue, event) in events {
        port.happen(queue % configs.len(), event);
    }
    port.advance(port.now + 3_000);
    for (queue, history) in port.histories.iter_mut().enumerate() {
        let record = port.nic.record(queue);
        let count = |fact| history.iter().filter(|(_, is)| *is == fact).count() as u32;
        assert_eq!(record.accepted, count(Fact::Accepted), "MODERATE-RECORD-1");
        assert_eq!(record.dropped, count(Fact::Dropped), "MODERATE-RECORD-1");
        assert_eq!(record.interrupts, count(Fact::Raised), "MODERATE-RECORD-1");
        for (at, _) in history {
            *at -= start;
        }
    }
    port.histories
}

/// A window: the time in which packets wait and no interrupt is raised.
#[derive(Debug)]
struct Window {
    began: u64,
    ended: u64,
    /// The arrivals of packets within the window.
    packets: Vec<u64>,
    /// The number of packets that wait at the end of the window.
    waiting: u32,
    /// True if the window ended with an interrupt, false if a receiver polled the queue empty.
    raised: bool,
}

/// Returns the windows of a history, and all interrupts: the instant of each, and whether the count
/// was reached.
fn windows(config: &QueueConfig, history: &History) -> (Vec<Window>, Vec<(u64, bool)>) {
    let (mut windows, mut interrupts) = (Vec::new(), Vec::new());
    let (mut waiting, mut raised) = (0, false);
    let mut open: Option<(u64, Vec<u64>)> = None;
    let close = |open: &mut Option<(u64, Vec<u64>)>, ended, waiting, raised| {
        open.take().map(|(began, packets)| Window {
            began,
            ended,
            packets,
            waiting,
            raised,
        })
    };
    for &(at, fact) in history {
        match fact {
            Fact::Accepted => {
                assert!(waiting < config.size, "MODERATE-FULL-1 at {at}");
                waiting += 1;
                if !raised {
                    open.get_or_insert((at, Vec::new())).1.push(at);
                }
            }
            Fact::Dropped => assert_eq!(waiting, config.size, "MODERATE-FULL-1 at {at}"),
            Fact::Raised => {
                assert!(!raised, "raised twice at {at}");
                assert!(waiting > 0, "MODERATE-EMPTY-1 at {at}");
                raised = true;
                interrupts.push((at, config.count.is_some_and(|count| waiting >= count)));
                windows.extend(close(&mut open, at, waiting, true));
            }
            Fact::Removed(count) => {
                waiting -= count;
                if waiting == 0 {
                    windows.extend(close(&mut open, at, waiting, false));
                }
            }
            Fact::Done => {
                raised = false;
                open = (waiting > 0).then(|| (at, Vec::new()));
            }
        }
    }
    assert!(open.is_none(), "MODERATE-LIVE-1: packets wait for ever");
    (windows, interrupts)
}

/// Checks all contracts of one queue in its history, for a port that is up to `late` ticks late.
fn keeps_its_contracts(config: &QueueConfig, history: &History, late: u64) {
    let (windows, interrupts) = windows(config, history);
    let absolute = config.absolute.unwrap_or(0);
    for window in &windows {
        let length = window.ended - window.began;
        assert!(length <= absolute + late, "MODERATE-WAIT-1: {window:?}");
        let quiet = window.ended - window.packets.last().unwrap_or(&window.began);
        let mut gaps = Vec::new();
        let mut last = window.began;
        for &packet in &window.packets {
            gaps.push(packet - last);
            last = packet;
        }
        let mut ran_out = false;
        if let Some(packet) = config.packet {
            assert!(quiet <= packet + late, "MODERATE-PACKET-1: {window:?}");
            // A packet that comes after the timer has expired ends the window.
            let found = gaps.pop().unwrap_or(0);
            ran_out = quiet >= packet || found >= packet;
            assert!(found <= packet + late, "MODERATE-PACKET-1: {window:?}");
            assert!(
                gaps.iter().all(|&gap| gap < packet),
                "MODERATE-PACKET-1: {window:?}"
            );
        }
        let enough = config.count.is_some_and(|count| window.waiting >= count);
        if let Some(count) = config.count {
            // The packets that an interrupt left may exceed the count. The queue then interrupts at
            // once.
            let left = length == 0 && window.packets.is_empty();
            assert!(
                window.waiting <= count || left,
                "MODERATE-COUNT-1: {window:?}"
            );
        }
        if config.absolute.is_none() {
            assert!(window.raised && length == 0, "MODERATE-OFF-1: {window:?}");
        }
        assert!(
            !window.raised || length >= absolute || ran_out || enough,
            "MODERATE-EARLY-1: {window:?}"
        );
    }
    let apart = config.packet.unwrap_or(absolute);
    for pair in interrupts.windows(2) {
        let ((before, _), (at, enough)) = (pair[0], pair[1]);
        assert!(enough || at - before >= apart, "MODERATE-CURVE-1 at {at}");
    }
}

fn configs() -> impl Strategy<Value = QueueConfig> {
    let packet = prop::option::of(0.0..=1.0);
    let count = prop::option::of(0.0..=1.0);
    (
        prop::option::weighted(0.9, 1_u64..400),
        packet,
        count,
        1_u32..40,
    )
        .prop_map(|(absolute, packet, count, size)| {
            let part = |of: u64, part: f64| ((of as f64 * part).round() as u64).max(1);
            QueueConfig {
                absolute,
                packet: absolute.and_then(|absolute| packet.map(|packet| part(absolute, packet))),
                count: count.map(|count| match absolute {
                    Some(_) => part(size.into(), count) as u32,
                    None => 1,
                }),
                size,
            }
        })
}

fn events() -> impl Strategy<Value = Vec<(usize, Event)>> {
    let event = prop_oneof![
        6 => (1_u64..40).prop_map(Event::Wait),
        2 => (40_u64..600).prop_map(Event::Wait),
        1 => (0x7000_u64..0x2_4000).prop_map(Event::Wait),
        8 => (1_u32..6).prop_map(Event::Packets),
        1 => (6_u32..50).prop_map(Event::Packets),
        3 => (0_u32..50).prop_map(Event::Take),
        2 => (50_u32..51).prop_map(Event::Take),
        1 => (0_u32..50).prop_map(Event::Poll),
        1 => (0..=LATE).prop_map(Event::Late),
    ];
    prop::collection::vec((0_usize..3, event), 1..200)
}

proptest! {
    #![proptest_config(crate::cases(400, 2_000))]

    /// MODERATE-*: the contracts hold at every width, across its wrap, with the same result at each
    /// (MODERATE-TIME-1).
    #[test]
    fn queues_keep_their_contracts(configs in prop::collection::vec(configs(), 1..4), before in 0_u64..300, events in events()) {
        let narrow = play::<W16>(&configs, before, &events);
        for (config, history) in configs.iter().zip(&narrow) {
            keeps_its_contracts(config, history, LATE);
        }
        prop_assert_eq!(&narrow, &play::<W32>(&configs, before, &events));
        prop_assert_eq!(&narrow, &play::<W64>(&configs, before, &events));
    }

    /// MODERATE-CHANGE-1: after a change the window ends as if the new parameters had been in force
    /// since it began, but not in the past.
    #[test]
    fn a_change_is_as_if_it_had_always_been(from in configs(), to in configs(), gaps in prop::collection::vec(0_u64..100, 0..6), after in 0_u64..100) {
        let mut nic: Moderator<W16> = Moderator::new(&[from]).expect("valid");
        let start = 0xff80;
        let (mut now, mut last) = (start, start);
        let mut raised = nic.arrive(0, now).interrupt;
        for gap in gaps {
            // A timer that expires before the change is left out.
            if nic.next(now).is_some_and(|due| now + gap < due) && nic.waiting(0) < from.size {
                now += gap;
                last = now;
                raised |= nic.arrive(0, now).interrupt;
            }
        }
        if nic.next(now).is_some_and(|due| now + after < due) {
            now += after;
        }
        prop_assert!(raised == nic.is_raised(0));
        let at_once = nic.reconfigure(0, &to, now).expect("valid");
        if raised {
            prop_assert!(!at_once && nic.is_raised(0));
        } else {
            let enough = to.count.is_some_and(|count| nic.waiting(0) >= count);
            let due = match to.absolute {
                Some(absolute) if !enough => (start + absolute).min(to.packet.map_or(u64::MAX, |packet| last + packet)).max(now),
                _ => now,
            };
            prop_assert_eq!(at_once, due == now);
            prop_assert_eq!(nic.next(now), (due > now).then_some(due));
        }
        // A queue that is made smaller keeps its packets and drops new ones.
        let waiting = nic.waiting(0);
        prop_assert_eq!(nic.arrive(0, now).accepted, waiting < to.size);
    }
}
