// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares runs with SimSo 0.8.5, an independent simulator of real-time scheduling. Both get the
//! same task sets, with an interrupt as the task of the highest priority, and must give the same
//! response times.
//!
//! The Python packages are in an environment of their own below target/, which the first run
//! installs. `scripts/bootstrap.sh host` installs what that needs.
mod python;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use weir_sim::{SimulationEvent, Track};

use crate::{common, is_long};
use python::{SimSoTask, simso};

const CLOCK: u64 = 1_000_000;
const DURATION: u64 = 400_000;

/// Returns the response times of the jobs of a track, in cycles. Jobs end in the order of their
/// releases.
fn responses(log: &common::Log, released: SimulationEvent, track: Track) -> Vec<u64> {
    let releases = log.instants(released);
    let ends = log.instants(SimulationEvent::Ends(track));
    ends.iter()
        .zip(releases)
        .map(|(end, release)| end - release)
        .collect()
}

fn compare(interrupt: SimSoTask, tasks: &[SimSoTask]) {
    let mut text = common::CPU.replace("INTERRUPTS", "flat");
    text += &format!(
        "[[source]]\nname = \"stream\"\nvector = \"IRQ\"\norder = 0\nhandler = \"{} cycles\"\nmax_work = 1\n",
        interrupt.wcet - 10
    );
    for (index, task) in tasks.iter().enumerate() {
        text += &format!(
            "[[receiver]]\nname = \"t{index}\"\nurgency = {}\nperiod = \"{} cycles\"\nwcet = \"{} cycles\"\n",
            task.priority, task.period, task.wcet
        );
    }
    let system = common::parse(&text);
    let mut options = common::options(DURATION);
    let rate = CLOCK as f64 / interrupt.period as f64;
    options.feeds = vec![common::feed(&system, "stream", &format!("{rate}Hz"))];
    let (_, log) = common::run(&system, &options);
    let mut ours = vec![responses(
        &log,
        SimulationEvent::Arrived(0),
        Track::Request(0),
    )];
    ours.extend(
        (0..tasks.len())
            .map(|task| responses(&log, SimulationEvent::Released(task), Track::Task(task))),
    );

    let mut all = vec![interrupt];
    all.extend(tasks);
    let theirs = simso(&all, DURATION).responses;
    for (index, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
        // Only one of the simulators may count a job that ends exactly at the end of the run.
        let common = ours.len().min(theirs.len());
        assert!(
            ours.len().abs_diff(theirs.len()) <= 1 && common > 1,
            "{index}: {} and {} jobs",
            ours.len(),
            theirs.len()
        );
        let different = (0..common).find(|&job| ours[job] != theirs[job]);
        assert!(
            different.is_none(),
            "job {different:?} of task {index} of {all:?}: {:?}, and SimSo says {:?}",
            different.map(|job| ours[job]),
            different.map(|job| theirs[job])
        );
    }
}

#[test]
fn responses_are_those_of_simso() {
    let count = if is_long() { 12 } else { 2 };
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let sets = std::iter::repeat_with(|| {
        let interrupt = SimSoTask {
            period: *[50, 80, 100, 125, 200]
                .get(rng.random_range(0..5_usize))
                .expect("five"),
            wcet: rng.random_range(11..30),
            priority: 200,
        };
        let tasks: Vec<SimSoTask> = (0..3)
            .map(|index| {
                let period = rng.random_range(1_000..20_000);
                SimSoTask {
                    period,
                    wcet: rng.random_range(1..=period / 5),
                    priority: 100 - index,
                }
            })
            .collect();
        (interrupt, tasks)
    });
    let sets: Vec<_> = sets.take(count).collect();
    // SimSo uses one processor core and takes most of the time.
    let (some, others) = sets.split_at(count / 2);
    std::thread::scope(|scope| {
        for share in [some, others] {
            scope.spawn(move || {
                for (interrupt, tasks) in share {
                    compare(*interrupt, tasks);
                }
            });
        }
    });
}
