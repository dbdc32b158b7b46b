// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests DEFER-* against a model that keeps every packet.

use proptest::prelude::*;
use weir_core_sys::defer::{Class, Defer, Ties, TooManyClasses};
use weir_core_sys::demux::CLASSES;

fn classes(capacity: u16, urgencies: &[u8]) -> Vec<Class> {
    let class = |&urgency| Class { capacity, urgency };
    urgencies.iter().map(class).collect()
}

/// The waiting packets in the order of their arrival, and the started bottom halves, innermost
/// last.
struct Model {
    classes: Vec<Class>,
    waiting: Vec<u8>,
    begun: Vec<u8>,
}

impl Model {
    fn count(&self, class: u8) -> usize {
        self.waiting.iter().filter(|&&of| of == class).count()
    }

    fn urgency(&self, class: u8) -> u8 {
        self.classes[usize::from(class)].urgency
    }

    fn push(&mut self, class: u8) -> bool {
        let room = self.classes.get(usize::from(class));
        let fits = room.is_some_and(|room| self.count(class) < usize::from(room.capacity));
        if fits {
            self.waiting.push(class);
        }
        fits
    }

    fn next(&mut self, running: Option<u8>, ties: Ties) -> Option<u8> {
        let mut candidates = self.waiting.clone();
        candidates.retain(|class| !self.begun.contains(class));
        let best = candidates
            .into_iter()
            .max_by_key(|&class| (self.urgency(class), class))?;
        let urgency = self.urgency(best);
        let beats_process = match running {
            None => true,
            Some(running) => urgency > running || (urgency == running && ties == Ties::Run),
        };
        let beats_bottom_half = self
            .begun
            .last()
            .is_none_or(|&inner| urgency > self.urgency(inner));
        if !beats_process || !beats_bottom_half {
            return None;
        }
        let oldest = self.waiting.iter().position(|&class| class == best);
        self.waiting.remove(oldest.expect("it waits"));
        self.begun.push(best);
        Some(best)
    }

    fn done(&mut self, class: u8) -> bool {
        let is_inner = self.begun.last() == Some(&class);
        if is_inner {
            self.begun.pop();
        }
        is_inner
    }
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Push(u8),
    Next(Option<u8>, Ties),
    Done,
    DoneWrong(u8),
    SetUrgency(u8, u8),
    SetClass(u8, u16, u8),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let ties = || prop_oneof![Just(Ties::Wait), Just(Ties::Run)];
    let class = || prop_oneof![8 => 0_u8..5, 1 => Just(63), 1 => 0..CLASSES, 1 => Just(200)];
    let event = prop_oneof![
        6 => class().prop_map(Event::Push),
        5 => (prop::option::of(0_u8..6), ties()).prop_map(|(running, ties)| Event::Next(running, ties)),
        4 => Just(Event::Done),
        1 => class().prop_map(Event::DoneWrong),
        2 => (class(), 0_u8..6).prop_map(|(class, urgency)| Event::SetUrgency(class, urgency)),
        1 => (class(), 0_u16..4, 0_u8..6).prop_map(|(class, capacity, urgency)| Event::SetClass(class, capacity, urgency)),
    ];
    prop::collection::vec(event, 1..200)
}

proptest! {
    #![proptest_config(crate::cases(300, 2000))]

    /// DEFER-ORDER-1, -BOUND-1, -TIES-1, -NEST-1, -URGENCY-1: in any sequence of events, the same
    /// bottom half runs as in the model.
    #[test]
    fn what_runs_is_what_the_sorted_list_says(
        urgencies in prop::collection::vec(0_u8..6, 64),
        capacity in 0_u16..5,
        events in events(),
    ) {
        let given = classes(capacity, &urgencies);
        let mut defer = Defer::new(&given).unwrap();
        let mut model = Model { classes: given, waiting: Vec::new(), begun: Vec::new() };
        for event in events {
            match event {
                Event::Push(class) => prop_assert_eq!(defer.push(class), model.push(class)),
                Event::Next(running, ties) => {
                    let would = defer.would_run(running, ties);
                    let best = defer.best();
                    let next = defer.next(running, ties);
                    prop_assert_eq!(next, model.next(running, ties));
                    prop_assert_eq!(would.then_some(best).flatten(), next);
                }
                Event::Done => {
                    if let Some(&inner) = model.begun.last() {
                        prop_assert!(defer.done(inner) && model.done(inner));
                    }
                }
                Event::DoneWrong(class) => prop_assert_eq!(defer.done(class), model.done(class)),
                Event::SetUrgency(class, urgency) => {
                    let known = class < CLASSES;
                    prop_assert_eq!(defer.set_urgency(class, urgency), known);
                    if known {
                        model.classes[usize::from(class)].urgency = urgency;
                    }
                }
                Event::SetClass(class, capacity, urgency) => {
                    let to = Class { capacity, urgency };
                    prop_assert_eq!(defer.set_class(class, to).is_ok(), class < CLASSES);
                    if class < CLASSES {
                        model.classes[usize::from(class)] = to;
                    }
                }
            }
            for class in 0..CLASSES {
                prop_assert_eq!(usize::from(defer.waiting(class)), model.count(class));
            }
        }
        // DEFER-LIVE-1: once nothing else runs, every waiting packet is handled.
        let left = model.waiting.len() + model.begun.len();
        let mut ran = 0;
        while let Some(&inner) = model.begun.last() {
            prop_assert!(defer.done(inner) && model.done(inner));
            ran += 1;
        }
        while let Some(class) = defer.next(None, Ties::Wait) {
            prop_assert!(defer.done(class));
            ran += 1;
        }
        prop_assert_eq!(ran, left);
    }
}

/// DEFER-TIES-1: bottom halves of the same urgency as the running process wait with zhang2006 and
/// run with lee2010. Less urgent ones wait with both.
#[test]
fn ties_are_an_option() {
    let mut defer = Defer::new(&classes(3, &[10, 20, 30])).unwrap();
    assert!(defer.push(1));
    assert_eq!(defer.next(Some(21), Ties::Run), None);
    assert_eq!(defer.next(Some(20), Ties::Wait), None);
    assert_eq!(defer.waiting(1), 1);
    assert_eq!(defer.next(Some(20), Ties::Run), Some(1));
    assert!(defer.done(1));
    assert!(defer.push(1));
    assert_eq!(defer.next(Some(19), Ties::Wait), Some(1));
    assert!(defer.done(1));
    assert_eq!(defer.next(None, Ties::Wait), None);
}

/// zhang2006 §3.2, Figure 4. Case (b): a request for a process that is more urgent than the running
/// one is completed at once. Case (c): a request for a less urgent process waits until the running
/// process has ended. It is completed before the switch to a process that is even less urgent.
#[test]
fn figure_4_of_zhang2006() {
    let (waiting, idle) = (20, None);
    let mut defer = Defer::new(&classes(8, &[waiting])).unwrap();
    // Case (b).
    assert!(defer.push(0));
    assert_eq!(defer.next(Some(10), Ties::Wait), Some(0));
    assert!(defer.done(0));
    // Case (c) at three points: after the top half, at a switch to another urgent process, and at
    // the switch to a less urgent one.
    assert!(defer.push(0));
    assert_eq!(defer.next(Some(30), Ties::Wait), None);
    assert_eq!(defer.next(Some(25), Ties::Wait), None);
    assert_eq!(defer.next(Some(15), Ties::Wait), Some(0));
    assert!(defer.done(0));
    assert_eq!(defer.next(idle, Ties::Wait), None);
}

/// lee2010 §4: the queue is sorted by decreasing priority. Its entries are processed as long as
/// their priority is not below that of the running process.
#[test]
fn the_queue_of_lee2010() {
    let mut defer = Defer::new(&classes(10, &[15, 17, 20, 21])).unwrap();
    for class in [2, 0, 3, 1, 3, 0] {
        assert!(defer.push(class));
    }
    let mut handled = Vec::new();
    while let Some(class) = defer.next(Some(17), Ties::Run) {
        handled.push(class);
        assert!(defer.done(class));
    }
    assert_eq!(handled, [3, 3, 2, 1]);
    assert_eq!(defer.waiting(0), 2);
}

/// DEFER-URGENCY-1: the bottom half of a device whose prediction rises overtakes others (zhang2006
/// §4: at each scheduling point).
#[test]
fn what_waits_moves_with_its_urgency() {
    let mut defer = Defer::new(&classes(4, &[5, 6])).unwrap();
    assert!(defer.push(0) && defer.push(1));
    assert_eq!(defer.best(), Some(1));
    assert!(defer.set_urgency(0, 9));
    assert_eq!(defer.best(), Some(0));
    assert!(defer.set_urgency(0, 1));
    assert_eq!(defer.next(Some(5), Ties::Wait), Some(1));
}

/// A nonexistent class is rejected.
#[test]
fn there_are_64_classes() {
    assert!(Defer::new(&classes(1, &[0; 64])).is_ok());
    assert_eq!(
        Defer::new(&classes(1, &[0; 65])).map(|_| ()),
        Err(TooManyClasses)
    );
    assert_eq!(
        Defer::new(&classes(1, &[0; 300])).map(|_| ()),
        Err(TooManyClasses)
    );
    let mut defer = Defer::new(&[]).unwrap();
    assert!(!defer.push(0) && !defer.push(64) && !defer.push(255));
    assert!(!defer.set_urgency(64, 1) && !defer.done(255) && !defer.done(64));
    assert_eq!(defer.waiting(64), 0);
}
