// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random sequences of events are written to the trace completely, and at most one thing runs at a
//! time.
use std::collections::{BTreeMap, HashSet};

use proptest::prelude::*;
use weir_sim::{Queue, SimulationEvent, Track};

use super::reader::{Seen, Slice};
use super::seen;

/// The next action of the simulated processor.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// Switches to this track, unless work of the track is in progress.
    To(Track),
    /// Ends the running work and resumes the work that was preempted last.
    Back,
    /// Reports an event without switching.
    Tell(SimulationEvent),
}

fn track() -> impl Strategy<Value = Track> {
    prop_oneof![
        (0..2_usize).prop_map(Track::Request),
        Just(Track::Expiry(0)),
        Just(Track::Timer(0)),
        Just(Track::Tick),
        (0..2_usize).prop_map(Track::BottomHalf),
        (0..2_usize).prop_map(Track::Orphan),
        (0..2_usize).prop_map(Track::Task),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let told = prop_oneof![
        (0..2_usize).prop_map(SimulationEvent::Arrived),
        (0..2_usize).prop_map(SimulationEvent::Masked),
        (0..2_usize).prop_map(SimulationEvent::Unmasked),
        (0..2_usize).prop_map(SimulationEvent::Released),
        (0..2_usize).prop_map(SimulationEvent::Missed),
        (0..2_usize, 0..1000_u64)
            .prop_map(|(queue, waiting)| SimulationEvent::Depth(Queue::Deferred(queue), waiting)),
    ];
    prop_oneof![4 => track().prop_map(Step::To), 4 => Just(Step::Back), 3 => told.prop_map(Step::Tell)]
}

/// The expected job parts, in cycles, and the events that produce them.
#[derive(Debug, Default)]
struct Run {
    events: Vec<(u64, SimulationEvent)>,
    /// Each job's track and parts.
    jobs: Vec<(Track, Vec<(u64, u64)>)>,
    /// The indices of the jobs in progress; the last one runs.
    under_way: Vec<usize>,
    /// The masked sources, with the cycle at which each was masked.
    masked: BTreeMap<usize, u64>,
    masks: Vec<(usize, u64, u64)>,
    since: u64,
    now: u64,
}

impl Run {
    fn of(steps: &[(u64, Step)]) -> Self {
        let mut run = Self::default();
        for &(pause, step) in steps {
            run.now += pause;
            match step {
                Step::To(track) => run.go_to(track),
                Step::Back => run.go_back(),
                Step::Tell(event) => run.tell(event),
            }
        }
        if !run.under_way.is_empty() {
            run.part();
        }
        let masked = std::mem::take(&mut run.masked);
        run.masks.extend(
            masked
                .into_iter()
                .map(|(source, begin)| (source, begin, run.now)),
        );
        run
    }

    fn tell(&mut self, event: SimulationEvent) {
        match event {
            SimulationEvent::Masked(source) => {
                self.masked.entry(source).or_insert(self.now);
            }
            SimulationEvent::Unmasked(source) => {
                let begin = self.masked.remove(&source);
                self.masks
                    .extend(begin.map(|begin| (source, begin, self.now)));
            }
            _ => {}
        }
        self.events.push((self.now, event));
    }

    fn running(&self) -> Option<Track> {
        self.under_way.last().map(|&job| self.jobs[job].0)
    }

    /// Ends the current part of the running job.
    fn part(&mut self) {
        let job = *self.under_way.last().unwrap();
        self.jobs[job].1.push((self.since, self.now));
    }

    fn go_to(&mut self, track: Track) {
        if self.under_way.iter().any(|&job| self.jobs[job].0 == track) {
            return;
        }
        if let Some(running) = self.running() {
            self.part();
            self.tell(SimulationEvent::Stops(running));
        }
        self.under_way.push(self.jobs.len());
        self.jobs.push((track, Vec::new()));
        self.since = self.now;
        self.tell(SimulationEvent::Starts(track));
    }

    fn go_back(&mut self) {
        let Some(running) = self.running() else {
            return;
        };
        self.part();
        self.tell(SimulationEvent::Ends(running));
        self.under_way.pop();
        if let Some(track) = self.running() {
            self.since = self.now;
            self.tell(SimulationEvent::Resumes(track));
        }
    }
}

/// Returns the last component of the track's path.
fn name(track: Track) -> &'static str {
    match track {
        Track::Request(0) => "ETH: eth",
        Track::Request(_) => "EXTI4: switch",
        Track::Expiry(_) => "TIM3: limit of eth",
        Track::Timer(_) => "TIM2: timer slow",
        Track::Tick => "clock tick",
        Track::BottomHalf(0) => "bottom halves/rest",
        Track::BottomHalf(_) => "bottom halves/modbus",
        Track::Orphan(0) => "bottom halves/eth: no receiver",
        Track::Orphan(_) => "bottom halves/switch: no receiver",
        Track::Task(0) => "tasks/log",
        Track::Task(_) => "tasks/control",
    }
}

/// Converts cycles at 16 MHz to whole nanoseconds.
fn nanoseconds(cycles: u64) -> u64 {
    cycles * 125 / 2
}

/// Removes the slices of a job from `slices` and returns them in order.
fn take_parts(slices: &mut Vec<Slice>, track: Track, parts: &[(u64, u64)]) -> Vec<Slice> {
    let mut taken = Vec::new();
    for &(begin, end) in parts {
        let at = slices
            .iter()
            .position(|slice| {
                slice.track.ends_with(name(track))
                    && (slice.begin, slice.end) == (nanoseconds(begin), nanoseconds(end))
            })
            .expect("a slice of each part");
        taken.push(slices.remove(at));
    }
    taken
}

fn notes(run: &Run) -> Vec<(u64, String, String)> {
    let names = ["eth", "switch"];
    let tasks = ["log", "control"];
    let mut notes: Vec<_> = run
        .events
        .iter()
        .filter_map(|&(at, event)| match event {
            SimulationEvent::Arrived(source) => Some((
                nanoseconds(at),
                format!("plant/sources/{}", names[source]),
                "arrived",
            )),
            SimulationEvent::Released(task) => Some((
                nanoseconds(at),
                format!("plant/tasks/{}", tasks[task]),
                "released",
            )),
            SimulationEvent::Missed(task) => Some((
                nanoseconds(at),
                format!("plant/tasks/{}", tasks[task]),
                "deadline missed",
            )),
            _ => None,
        })
        .map(|(at, track, what)| (at, track, what.to_owned()))
        .collect();
    // Two arrivals in one cycle are written once.
    let mut told = HashSet::new();
    notes.retain(|note| note.2 != "arrived" || told.insert((note.0, note.1.clone())));
    notes
}

fn check(run: &Run, seen: Seen) -> Result<(), TestCaseError> {
    let (masks, mut slices): (Vec<Slice>, Vec<Slice>) = seen
        .slices
        .into_iter()
        .partition(|slice| slice.track.starts_with("plant/sources"));
    for pair in slices.windows(2) {
        prop_assert!(pair[0].end <= pair[1].begin, "two run at once: {pair:?}");
    }
    let mut flows = HashSet::new();
    for (track, parts) in &run.jobs {
        let taken = take_parts(&mut slices, *track, parts);
        let Some((first, later)) = taken.split_first() else {
            continue;
        };
        prop_assert_eq!(first.flows.0, None);
        for part in later {
            prop_assert_eq!(part.flows, (first.flows.1, None));
        }
        let flow = first.flows.1;
        prop_assert!(later.is_empty() || flow.is_some());
        prop_assert!(
            flow.is_none_or(|flow| flows.insert(flow)),
            "another job has this flow"
        );
    }
    prop_assert!(slices.is_empty(), "{slices:?} did not run");

    let mut masks: Vec<_> = masks
        .iter()
        .map(|mask| (mask.track.as_str(), mask.begin, mask.end))
        .collect();
    let mut expected: Vec<_> = run
        .masks
        .iter()
        .map(|&(source, begin, end)| {
            (
                ["plant/sources/eth", "plant/sources/switch"][source],
                nanoseconds(begin),
                nanoseconds(end),
            )
        })
        .collect();
    masks.sort_unstable();
    expected.sort_unstable();
    prop_assert_eq!(masks, expected);
    prop_assert_eq!(seen.notes, notes(run));
    let depths: Vec<_> = run
        .events
        .iter()
        .filter_map(|&(at, event)| match event {
            SimulationEvent::Depth(Queue::Deferred(queue), waiting) => Some((
                nanoseconds(at),
                format!(
                    "plant/queues/{}: for the bottom half",
                    ["rest", "modbus"][queue]
                ),
                waiting as i64,
            )),
            _ => None,
        })
        .collect();
    prop_assert_eq!(seen.depths, depths);
    Ok(())
}

proptest! {
    #![proptest_config(crate::cases(64, 256))]

    #[test]
    fn the_trace_says_what_happened(steps in prop::collection::vec((0..50_u64, step()), 0..300)) {
        let run = Run::of(&steps);
        check(&run, seen(&run.events, run.now))?;
    }
}
