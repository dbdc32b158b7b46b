// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests PREDICT-* against exact arithmetic.

use proptest::prelude::*;
use weir_core_sys::demux::CLASSES;
use weir_core_sys::predict::{History, Prediction, Predictor};

const ALL: f64 = History::ALL as f64;

/// The exact share of each class in recent packets, and the share of the unseen packets before the
/// first.
struct Exact {
    shares: Vec<f64>,
    unseen: f64,
}

impl Exact {
    fn new() -> Self {
        Exact {
            shares: vec![0.0; usize::from(CLASSES)],
            unseen: 1.0,
        }
    }

    fn handled(&mut self, class: Option<u8>, shift: u8) {
        let weight = 0.5_f64.powi(shift.into());
        for share in self.shares.iter_mut().chain([&mut self.unseen]) {
            *share *= 1.0 - weight;
        }
        if let Some(class) = class {
            self.shares[usize::from(class)] += weight;
        }
    }

    /// Returns the share of packets that are at least as urgent as a class.
    fn above(&self, class: u8) -> f64 {
        self.unseen + self.shares[usize::from(class)..].iter().sum::<f64>()
    }
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Wait(u8),
    StopWaiting(u8),
    Register(u8),
    Unregister(u8),
    Handled(Option<u8>),
    Deferred,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let class = || prop_oneof![Just(0_u8), Just(3), Just(7), Just(20), Just(63), 0..CLASSES];
    let event = prop_oneof![
        2 => class().prop_map(Event::Wait),
        2 => class().prop_map(Event::StopWaiting),
        1 => class().prop_map(Event::Register),
        1 => class().prop_map(Event::Unregister),
        6 => class().prop_map(|class| Event::Handled(Some(class))),
        1 => Just(Event::Handled(None)),
        2 => Just(Event::Deferred),
    ];
    prop::collection::vec(event, 1..300)
}

fn histories() -> impl Strategy<Value = History> {
    (1..=History::ALL, 0_u8..=8, any::<u8>()).prop_map(|(share, shift, patience)| History {
        share,
        shift,
        patience: patience % 20,
    })
}

proptest! {
    #![proptest_config(crate::cases(200, 1000))]

    /// Checks PREDICT-WAITING-1, -REGISTERED-1, -HISTORY-1, -2 and -5 in any sequence of events.
    /// Checks -6: the difference from exact shares is at most the rounding error.
    #[test]
    fn predictions_are_those_of_exact_counts(events in events(), history in histories()) {
        let mut predictor = Predictor::new(history).unwrap();
        let mut exact = Exact::new();
        let mut waits = [0_u32; CLASSES as usize];
        let mut registers = [0_u32; CLASSES as usize];
        let mut deferrals = 0;
        for event in events {
            let count = |counts: &mut [u32], class: u8, by: i32| {
                let changed = counts[usize::from(class)].checked_add_signed(by);
                counts[usize::from(class)] = changed.unwrap_or(0);
                changed.is_some()
            };
            match event {
                Event::Wait(class) => prop_assert_eq!(predictor.wait(class), count(&mut waits, class, 1)),
                Event::StopWaiting(class) => prop_assert_eq!(predictor.stop_waiting(class), count(&mut waits, class, -1)),
                Event::Register(class) => prop_assert_eq!(predictor.register(class), count(&mut registers, class, 1)),
                Event::Unregister(class) => {
                    let was = count(&mut registers, class, -1);
                    prop_assert_eq!(predictor.unregister(class), was);
                    if was && registers[usize::from(class)] == 0 {
                        exact.shares[usize::from(class)] = 0.0;
                    }
                }
                Event::Handled(class) => {
                    deferrals = 0;
                    predictor.handled(class);
                    exact.handled(class, history.shift);
                }
                Event::Deferred => {
                    deferrals += 1;
                    predictor.deferred();
                }
            }
            let most = |counts: &[u32]| (0..CLASSES).rev().find(|&class| counts[usize::from(class)] > 0);
            let waiting = most(&waits);
            prop_assert_eq!(predictor.predict(Prediction::Waiting), waiting);
            prop_assert_eq!(predictor.predict(Prediction::Registered), most(&registers));
            let predicted = predictor.predict(Prediction::History);
            prop_assert!(predicted <= waiting, "{:?} above {:?}", predicted, waiting);
            if deferrals >= u32::from(history.patience) {
                prop_assert_eq!(predicted, waiting);
            } else if let Some(waiting) = waiting {
                // Each share is too small by less than 2^shift units, and no share is too large.
                let error = 65.0 * f64::from(1_u32 << history.shift) / ALL;
                let share = f64::from(history.share) / ALL;
                let quantile = |share: f64| (0..=waiting).rev().find(|&class| exact.above(class) >= share);
                prop_assert!(predicted <= quantile(share - 1e-9), "above the exact quantile");
                prop_assert!(predicted >= quantile(share + error), "below the exact quantile");
            }
        }
    }
}

/// Returns the number of packets after which a share that decays from WEIR_PREDICT_ALL is at most
/// `to` units. The decay is geometric at first, and one unit per packet at the end.
fn packets(shift: u8, to: u16) -> usize {
    let weight = 0.5_f64.powi(shift.into());
    let mut parts = ALL;
    let mut n = 0;
    while parts > f64::from(to) {
        parts -= (parts * weight).max(1.0);
        n += 1;
    }
    n
}

/// PREDICT-HISTORY-3 and -4: after any pattern, this many packets for an urgent class raise the
/// prediction to it, and this many for a less urgent one lower it again.
#[test]
fn a_change_of_pattern_is_followed_within_the_promised_packets() {
    for shift in 0..=8 {
        for share in [
            1,
            History::ALL / 64,
            History::ALL / 8,
            History::ALL / 4,
            History::ALL / 2,
            History::ALL - 1,
            History::ALL,
        ] {
            let history = History {
                share,
                shift,
                patience: 255,
            };
            // Rounding makes each share of the three classes too small by up to 2^shift units.
            let Some(others) = History::ALL.checked_sub(share + (3 << shift)) else {
                continue;
            };
            let up = packets(shift, others);
            let down = packets(shift, share - 1);
            let mut predictor = Predictor::new(history).unwrap();
            predictor.wait(42);
            predictor.wait(10);
            for round in 0..4 {
                // The earlier packets differ from round to round.
                for packet in 0..round * 400 {
                    predictor.handled(Some([5, 10, 2, 40][packet % (round + 1)]));
                }
                let rose = (0..=up).find(|&n| {
                    let reached = predictor.predict(Prediction::History) >= Some(40);
                    if n < up {
                        predictor.handled(Some(40 + (n % 3) as u8));
                    }
                    reached
                });
                assert!(
                    rose.is_some(),
                    "shift {shift}, share {share}: not up after {up}"
                );
                let mut fell = None;
                for n in 0..=down {
                    if predictor.predict(Prediction::History) <= Some(10) {
                        fell = Some(n);
                        break;
                    }
                    predictor.handled(Some(10));
                }
                assert!(
                    fell.is_some(),
                    "shift {shift}, share {share}: not down after {down}"
                );
            }
        }
    }
}

/// PREDICT-HISTORY-2: the prediction is that of zhang2006 before the first packet has been handled,
/// and until the share of the unseen past is small enough.
#[test]
fn without_history_it_is_the_most_urgent_waiting() {
    let history = History::default();
    let mut predictor = Predictor::new(history).unwrap();
    predictor.wait(9);
    let unknown = packets(history.shift, history.share - 1);
    for _ in 0..unknown - 1 {
        predictor.handled(Some(1));
        assert_eq!(predictor.predict(Prediction::History), Some(9));
    }
    predictor.handled(Some(1));
    assert_eq!(predictor.predict(Prediction::History), Some(1));
}

/// A class whose share equals the threshold exactly is predicted.
#[test]
fn at_least_a_share_is_no_more_than_the_share() {
    let eighth = History {
        share: History::ALL / 8,
        shift: 3,
        patience: 255,
    };
    let mut predictor = Predictor::new(eighth).unwrap();
    predictor.wait(9);
    (0..300).for_each(|_| predictor.handled(None));
    assert_eq!(predictor.predict(Prediction::History), None);
    predictor.handled(Some(9));
    assert_eq!(predictor.predict(Prediction::History), Some(9));
    let all = History {
        share: History::ALL,
        ..eighth
    };
    let mut predictor = Predictor::new(all).unwrap();
    predictor.wait(9);
    assert_eq!(predictor.predict(Prediction::History), Some(9));
}

/// PREDICT-HISTORY-5: a process that seldom gets packets is served after `patience` deferrals,
/// although history predicts another receiver.
#[test]
fn patience_ends() {
    let history = History {
        patience: 4,
        ..History::default()
    };
    let mut predictor = Predictor::new(history).unwrap();
    predictor.wait(9);
    (0..200).for_each(|_| predictor.handled(Some(1)));
    for _ in 0..4 {
        assert_eq!(predictor.predict(Prediction::History), Some(1));
        predictor.deferred();
    }
    assert_eq!(predictor.predict(Prediction::History), Some(9));
    predictor.deferred();
    assert_eq!(predictor.predict(Prediction::History), Some(9));
    predictor.handled(Some(1));
    assert_eq!(predictor.predict(Prediction::History), Some(1));
}

/// If packets of a flood have no receiver, or one that has closed its socket, the prediction is
/// that there is no receiver.
#[test]
fn a_flood_for_nobody_is_nobodys() {
    let mut predictor = Predictor::new(History::default()).unwrap();
    predictor.wait(9);
    predictor.register(5);
    (0..300).for_each(|_| predictor.handled(None));
    assert_eq!(predictor.predict(Prediction::History), None);
    (0..300).for_each(|_| predictor.handled(Some(5)));
    assert_eq!(predictor.predict(Prediction::History), Some(5));
    predictor.unregister(5);
    assert_eq!(predictor.predict(Prediction::History), None);
    assert_eq!(predictor.predict(Prediction::Waiting), Some(9));
}

/// This is the purpose of history. One packet in forty is for an urgent process that waits; the
/// others are for a process less urgent than the running one. With zhang2006's prediction all of
/// them disturb the running process. With history few of them do, because history is ignored only
/// after `patience` deferrals.
#[test]
fn history_defers_what_the_most_urgent_waiting_lets_through() {
    let history = History::default();
    let mut predictor = Predictor::new(history).unwrap();
    predictor.wait(9);
    let running = 5;
    let (mut by_waiting, mut by_history) = (0, 0);
    for packet in 0..40_000 {
        let receiver = if packet % 40 == 0 { 9 } else { 1 };
        by_waiting += u32::from(predictor.predict(Prediction::Waiting) > Some(running));
        if predictor.predict(Prediction::History) > Some(running) {
            by_history += 1;
            predictor.handled(Some(receiver));
        } else {
            predictor.deferred();
        }
    }
    assert_eq!(by_waiting, 40_000);
    // History learns from the first 66 packets. After that, one packet in patience + 1 disturbs the
    // running process. After each packet that turns out to be urgent, at most about five more do.
    assert!(
        by_history <= 66 + 40_000 / 17 + 40_000 / 17 / 4,
        "{by_history}"
    );
    assert!(by_history >= 40_000 / 17, "{by_history}");
}

/// Parameters that are out of range are rejected.
#[test]
fn nonsense_is_refused() {
    let valid = History::default();
    assert!(Predictor::new(valid).is_ok());
    for bad in [
        History { share: 0, ..valid },
        History {
            share: History::ALL + 1,
            ..valid
        },
        History { shift: 9, ..valid },
    ] {
        assert!(Predictor::new(bad).is_err(), "{bad:?}");
    }
    let mut predictor = Predictor::new(valid).unwrap();
    for class in [CLASSES, 255] {
        assert!(!predictor.wait(class) && !predictor.stop_waiting(class));
        assert!(!predictor.register(class) && !predictor.unregister(class));
        predictor.handled(Some(class));
    }
    assert_eq!(predictor.predict(Prediction::Waiting), None);
}
