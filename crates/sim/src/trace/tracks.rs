// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tracks of a system's trace: numbers, names, groups and order.
use std::borrow::Cow;
use std::cmp::Reverse;

use weir_model::{Expiry, Level, Nesting, System};

use super::messages::{
    ChildTracksOrdering, CounterDescriptor, CounterUnit, EventName, TrackDescriptor,
};
use crate::observer::{Loss, Queue, Track};

/// The uuids of the groups. 0 is reserved: Perfetto uses it for the root track.
const SYSTEM: u64 = 1;
const SOURCES: u64 = 2;
const INTERRUPTS: u64 = 3;
const BOTTOM_HALVES: u64 = 4;
const TASKS: u64 = 5;
const QUEUES: u64 = 6;
/// The uuid of the first track. The name of a track's slices is interned under the track's uuid;
/// other names have lower numbers.
const FIRST: u64 = 16;

/// An instant event on a source's track.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Note {
    Arrived,
    Lost(Loss),
    Masked,
    Released,
    Missed,
}

impl Note {
    /// Returns the number of the note's interned name, from 1 to 15.
    pub fn iid(self) -> u64 {
        match self {
            Self::Arrived => 1,
            Self::Masked => 2,
            Self::Released => 3,
            Self::Missed => 4,
            Self::Lost(loss) => 5 + loss as u64,
        }
    }

    fn name(self) -> Cow<'static, str> {
        match self {
            Self::Arrived => "arrived".into(),
            Self::Masked => "masked".into(),
            Self::Released => "released".into(),
            Self::Missed => "deadline missed".into(),
            Self::Lost(why) => format!("lost: {}", why.reason()).into(),
        }
    }

    fn all() -> impl Iterator<Item = Self> {
        [Self::Arrived, Self::Masked, Self::Released, Self::Missed]
            .into_iter()
            .chain(Loss::ALL.map(Self::Lost))
    }
}

/// Assigns uuids to the tracks of a system. Every packet contains a uuid, so small numbers keep the
/// trace small.
#[derive(Debug, Clone, Copy)]
pub(super) struct Uuids {
    sources: usize,
    timers: usize,
    flows: usize,
    receivers: usize,
}

impl Uuids {
    pub fn of(system: &System) -> Self {
        Self {
            sources: system.sources.len(),
            timers: system.timers.len(),
            flows: system.flows.len(),
            receivers: system.receivers.len(),
        }
    }

    /// Returns the track for events at the source with this index.
    pub fn source(self, index: usize) -> u64 {
        self.of_source(0, index)
    }

    /// Returns the uuid of the track of this work.
    pub fn track(self, track: Track) -> u64 {
        match track {
            Track::Request(source) => self.of_source(1, source),
            Track::Expiry(source) => self.of_source(2, source),
            Track::Orphan(source) => self.of_source(3, source),
            Track::Timer(timer) => self.beyond_sources(timer),
            Track::BottomHalf(flow) => self.of_flow(0, flow),
            Track::Task(receiver) => self.of_receiver(0, receiver),
            Track::Tick => self.of_receiver(2, 0),
        }
    }

    /// Returns the track that shows the length of this queue.
    pub fn queue(self, queue: Queue) -> u64 {
        match queue {
            Queue::Device(source) => self.of_source(4, source),
            Queue::Orphans(source) => self.of_source(5, source),
            Queue::Deferred(flow) => self.of_flow(1, flow),
            Queue::Backlog(receiver) => self.of_receiver(1, receiver),
        }
    }

    /// Returns one more than the highest uuid.
    pub fn end(self) -> u64 {
        self.track(Track::Tick) + 1
    }

    fn of_source(self, block: usize, index: usize) -> u64 {
        FIRST + (block * self.sources + index) as u64
    }

    fn beyond_sources(self, index: usize) -> u64 {
        self.of_source(6, index)
    }

    fn of_flow(self, block: usize, index: usize) -> u64 {
        self.beyond_sources(self.timers + block * self.flows + index)
    }

    fn of_receiver(self, block: usize, index: usize) -> u64 {
        self.of_flow(2, block * self.receivers + index)
    }
}

/// The declarations that come before the first event.
pub(super) struct Declarations {
    /// The declared tracks. Groups come before their members.
    pub tracks: Vec<TrackDescriptor>,
    /// The names of all slices and instants.
    pub names: Vec<EventName>,
}

impl Declarations {
    pub fn of(system: &System) -> Self {
        let mut declarations = Self {
            tracks: Vec::new(),
            names: Note::all()
                .map(|note| event_name(note.iid(), &note.name()))
                .collect(),
        };
        let uuids = Uuids::of(system);
        declarations.group(
            SYSTEM,
            None,
            &system.name,
            "Processor time and queues, in virtual time",
        );
        declarations.sources(system, uuids);
        declarations.interrupts(system, uuids);
        declarations.bottom_halves(system, uuids);
        declarations.tasks(system, uuids);
        declarations.queues(system, uuids);
        declarations
    }

    fn sources(&mut self, system: &System, uuids: Uuids) {
        let about =
            "What each source asks for, what of it is lost, and when its limiter has it masked";
        self.group(SOURCES, Some(SYSTEM), "sources", about);
        for (index, source) in system.sources.iter().enumerate() {
            self.track(uuids.source(index), SOURCES, &source.name);
        }
    }

    /// Declares the interrupts in the order of their ranks. If interrupts nest, each preemption
    /// group gets a group of tracks.
    fn interrupts(&mut self, system: &System, uuids: Uuids) {
        let about = "Which interrupt runs, the most urgent first";
        self.group(INTERRUPTS, Some(SYSTEM), "interrupts", about);
        // In the simulation the clock tick goes before every other interrupt.
        self.runs(uuids.track(Track::Tick), INTERRUPTS, "clock tick");
        let requests = system
            .sources
            .iter()
            .enumerate()
            .map(|(index, source)| (&source.level, Track::Request(index), source.name.clone()));
        let expiries =
            system
                .sources
                .iter()
                .enumerate()
                .filter_map(|(index, source)| match &source.limit.expiry {
                    Some(Expiry::Own { level, .. }) => Some((
                        level,
                        Track::Expiry(index),
                        format!("limit of {}", source.name),
                    )),
                    Some(Expiry::Shared(_)) | None => None,
                });
        let timers = system.timers.iter().enumerate().map(|(index, timer)| {
            (
                &timer.level,
                Track::Timer(index),
                format!("timer {}", timer.name),
            )
        });
        let mut interrupts: Vec<_> = requests.chain(expiries).chain(timers).collect();
        let nested = system.cpu.nesting == Nesting::Grouped;
        let rank = |level: &Level| (Reverse(if nested { level.group } else { 0 }), level.order);
        interrupts.sort_by_key(|(level, ..)| rank(level));
        let mut group = (INTERRUPTS, None);
        let mut next_group = uuids.end();
        for (level, track, name) in &interrupts {
            if nested && group.1 != Some(level.group) {
                group = (next_group, Some(level.group));
                next_group += 1;
                let about =
                    "None of them preempts another of them; they preempt those of the groups below";
                self.group(
                    group.0,
                    Some(INTERRUPTS),
                    &format!("group {}", level.group),
                    about,
                );
            }
            let uuid = uuids.track(*track);
            self.track(uuid, group.0, &format!("{}: {name}", level.vector));
            self.names.push(event_name(uuid, name));
        }
    }

    fn bottom_halves(&mut self, system: &System, uuids: Uuids) {
        let about = "Which bottom half runs, those for the most urgent receiver first";
        self.group(BOTTOM_HALVES, Some(SYSTEM), "bottom halves", about);
        let urgency = |flow: usize| {
            let receiver = system.receivers.get(system.flows[flow].receiver);
            Reverse(receiver.map(|receiver| receiver.urgency))
        };
        let mut flows: Vec<usize> = (0..system.flows.len()).collect();
        flows.sort_by_key(|&flow| urgency(flow));
        for flow in flows {
            self.runs(
                uuids.track(Track::BottomHalf(flow)),
                BOTTOM_HALVES,
                &system.flows[flow].name,
            );
        }
        for (index, source) in system.sources.iter().enumerate() {
            let name = format!("{}: no receiver", source.name);
            self.runs(uuids.track(Track::Orphan(index)), BOTTOM_HALVES, &name);
        }
    }

    fn tasks(&mut self, system: &System, uuids: Uuids) {
        let about = "Which task runs, the most urgent first; its releases, and its jobs that ended too late";
        self.group(TASKS, Some(SYSTEM), "tasks", about);
        let mut receivers: Vec<usize> = (0..system.receivers.len()).collect();
        receivers.sort_by_key(|&receiver| Reverse(system.receivers[receiver].urgency));
        for receiver in receivers {
            self.runs(
                uuids.track(Track::Task(receiver)),
                TASKS,
                &system.receivers[receiver].name,
            );
        }
    }

    fn queues(&mut self, system: &System, uuids: Uuids) {
        self.group(
            QUEUES,
            Some(SYSTEM),
            "queues",
            "How many requests or packets wait",
        );
        for (index, source) in system.sources.iter().enumerate() {
            self.counter(
                uuids.queue(Queue::Device(index)),
                &format!("{}: in the device", source.name),
            );
            self.counter(
                uuids.queue(Queue::Orphans(index)),
                &format!("{}: no receiver", source.name),
            );
        }
        for (index, flow) in system.flows.iter().enumerate() {
            self.counter(
                uuids.queue(Queue::Deferred(index)),
                &format!("{}: for the bottom half", flow.name),
            );
        }
        for (index, receiver) in system.receivers.iter().enumerate() {
            self.counter(
                uuids.queue(Queue::Backlog(index)),
                &format!("{}: at the receiver", receiver.name),
            );
        }
    }

    /// Declares a group, whose members are shown in the order of declaration.
    fn group(&mut self, uuid: u64, parent: Option<u64>, name: &str, about: &str) {
        self.declare(TrackDescriptor {
            parent_uuid: parent,
            child_ordering: Some(ChildTracksOrdering::Explicit.into()),
            description: Some(about.to_owned()),
            ..track(uuid, name)
        });
    }

    fn track(&mut self, uuid: u64, parent: u64, name: &str) {
        self.declare(TrackDescriptor {
            parent_uuid: Some(parent),
            ..track(uuid, name)
        });
    }

    /// Declares a track whose slices have the track's name.
    fn runs(&mut self, uuid: u64, parent: u64, name: &str) {
        self.track(uuid, parent, name);
        self.names.push(event_name(uuid, name));
    }

    fn counter(&mut self, uuid: u64, name: &str) {
        self.declare(TrackDescriptor {
            parent_uuid: Some(QUEUES),
            counter: Some(CounterDescriptor {
                unit: Some(CounterUnit::Count.into()),
            }),
            ..track(uuid, name)
        });
    }

    fn declare(&mut self, track: TrackDescriptor) {
        let rank = i32::try_from(self.tracks.len()).unwrap_or(i32::MAX);
        self.tracks.push(TrackDescriptor {
            sibling_order_rank: Some(rank),
            ..track
        });
    }
}

fn track(uuid: u64, name: &str) -> TrackDescriptor {
    TrackDescriptor {
        uuid: Some(uuid),
        name: Some(name.to_owned()),
        ..TrackDescriptor::default()
    }
}

fn event_name(iid: u64, name: &str) -> EventName {
    EventName {
        iid: Some(iid),
        name: Some(name.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_notes_share_a_number_with_each_other_or_with_a_track() {
        let iids: HashSet<u64> = Note::all().map(Note::iid).collect();
        assert_eq!(iids.len(), Note::all().count());
        assert!(iids.iter().all(|iid| (1..FIRST).contains(iid)));
    }

    #[test]
    fn every_track_and_queue_has_a_number_of_its_own() {
        let uuids = Uuids {
            sources: 3,
            timers: 2,
            flows: 4,
            receivers: 5,
        };
        let mut all = vec![uuids.track(Track::Tick)];
        for index in 0..3 {
            all.push(uuids.source(index));
            all.extend(
                [
                    Track::Request(index),
                    Track::Expiry(index),
                    Track::Orphan(index),
                ]
                .map(|track| uuids.track(track)),
            );
            all.extend(
                [Queue::Device(index), Queue::Orphans(index)].map(|queue| uuids.queue(queue)),
            );
        }
        all.extend((0..2).map(|index| uuids.track(Track::Timer(index))));
        for index in 0..4 {
            all.extend([
                uuids.track(Track::BottomHalf(index)),
                uuids.queue(Queue::Deferred(index)),
            ]);
        }
        for index in 0..5 {
            all.extend([
                uuids.track(Track::Task(index)),
                uuids.queue(Queue::Backlog(index)),
            ]);
        }
        all.sort_unstable();
        let expected: Vec<u64> = (FIRST..uuids.end()).collect();
        assert_eq!(all, expected);
    }
}
