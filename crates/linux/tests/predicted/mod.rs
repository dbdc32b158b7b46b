// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that bottom halves get the urgency of the most urgent waiting receiver, or of the most
//! urgent registered one.
use crate::actor;
use crate::ground;

mod cost;
mod waiting;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ground::Ground;
use weir_linux::predicted::{Basis, DeviceBottomHalf, Prediction};
use weir_linux::receivers::{Follower, Options, PacketKey, Protocol, Reach, RuleSet};
use weir_linux::sched::{self, SchedPolicy};
use weir_linux::urgency::Urgency;

const SOON: Duration = Duration::from_secs(30);

fn udp(port: u16) -> PacketKey {
    let protocol = Protocol::Udp;
    PacketKey { protocol, port }
}

/// The urgencies that a bottom half was given, in order.
type Given = Arc<Mutex<Vec<u8>>>;

/// A device in the receivers' namespace. Its bottom half is a thread that does nothing and records
/// the urgencies that it is given.
fn noting(ground: &Ground, given: &Given) -> DeviceBottomHalf {
    let namespace = ground.receiver.run(|| Reach::find("lo").unwrap().namespace);
    let given = given.clone();
    let (keep, kept) = std::sync::mpsc::channel::<()>();
    let (told, number) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        told.send(nix::unistd::gettid().as_raw()).unwrap();
        // The thread runs until the device is dropped.
        let _ = kept.recv();
    });
    let thread = number.recv().unwrap();
    DeviceBottomHalf {
        reach: Reach {
            index: 0,
            loopback: false,
            namespace,
        },
        set: Box::new(move |urgency: Urgency| {
            let _ = &keep;
            given.lock().unwrap().push(urgency.get());
            sched::set(thread, urgency.policy())
        }),
    }
}

/// A follower, and the mode that gets its changes.
struct Mode {
    follower: Follower,
    predicted: Prediction,
    given: Given,
}

impl Mode {
    /// The period of scans is longer than any test, so all changes are found through events.
    fn start(ground: &Ground, basis: Basis) -> Self {
        Self::scanning(ground, basis, Duration::from_secs(600))
    }

    fn scanning(ground: &Ground, basis: Basis, period: Duration) -> Self {
        let given = Given::default();
        let options = Options {
            period,
            ..Options::default()
        };
        let follower = Follower::start(RuleSet::default(), options).unwrap();
        let setter = Some(SchedPolicy::Fifo(98));
        let predicted = Prediction::start(vec![noting(ground, &given)], basis, setter).unwrap();
        Self {
            follower,
            predicted,
            given,
        }
    }

    fn turn(&mut self) {
        self.follower.poll(Duration::from_millis(20)).unwrap();
        self.predicted.update(self.follower.table()).unwrap();
    }

    fn last(&self) -> u8 {
        self.given.lock().unwrap().last().copied().unwrap_or(0)
    }

    /// Waits until the bottom half has this urgency.
    fn wait_for(&mut self, urgency: u8, what: &str) {
        let end = Instant::now() + SOON;
        while self.last() != urgency {
            let given = self.given.lock().unwrap().clone();
            assert!(Instant::now() < end, "{what}: not {urgency}, {given:?}");
            self.turn();
        }
    }

    /// Checks that the bottom half keeps this urgency.
    fn stays(&mut self, urgency: u8, what: &str) {
        let end = Instant::now() + Duration::from_millis(400);
        while Instant::now() < end {
            self.turn();
            assert_eq!(self.last(), urgency, "{what}");
        }
    }
}
