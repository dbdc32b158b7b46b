// SPDX-License-Identifier: MIT OR Apache-2.0
//! The speed of a run: interrupts per second, the time of a job by the number of tasks, and the
//! same system in SimSo. Exits with 1 if a goal is missed.
//!
//! Criterion measures and compares with the run before. The goals are judged by the fastest of
//! several runs, since other load can only make a run longer.
#[path = "../../../crates/sim/tests/common/mod.rs"]
mod common;
#[path = "../../../crates/sim/tests/simso/python.rs"]
mod python;

use std::fmt::Write;
use std::hint::black_box;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Instant;

use criterion::{BenchmarkId, Criterion, Throughput};
use weir_model::System;
use weir_report::{Claim, Goal, claims_table};
use weir_sim::{Options, simulate};

use python::{SimSoTask, simso};

/// Three tasks, and a line whose interrupts `limit` bounds.
fn flooded(limit: &str) -> System {
    common::flat(&format!(
        r#"
[[receiver]]
name = "fast"
urgency = 30
period = "1ms"
wcet = "100us"
[[receiver]]
name = "middle"
urgency = 20
period = "5ms"
wcet = "500us"
[[receiver]]
name = "slow"
urgency = 10
period = "20ms"
wcet = "2ms"
[[timer]]
name = "own"
width = 16
order = 2
[[source]]
name = "line"
vector = "INT0"
order = 1
handler = "5 cycles"
max_work = 1
{limit}
"#
    ))
}

fn interrupts(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("interrupts");
    let strict =
        "limit = { policy = \"strict\", timing = \"eager\", interval = \"50us\", timer = \"own\" }";
    for (name, limit, pattern) in [
        ("periodic", "", "15kHz"),
        ("poisson", "", "poisson:15kHz"),
        ("strict limit, flooded", strict, "50kHz"),
    ] {
        let system = flooded(limit);
        let mut options = common::options(20_000_000);
        options.feeds = vec![common::feed(&system, "line", pattern)];
        let taken = run(&system, &options);
        group.throughput(Throughput::Elements(taken));
        group.bench_function(name, |bencher| {
            bencher.iter(|| black_box(run(&system, &options)));
        });
    }
    group.finish();
}

/// The number of interrupts taken.
fn run(system: &System, options: &Options) -> u64 {
    simulate(system, options)
        .map(|tally| tally.interrupts)
        .unwrap_or_else(|error| panic!("{error}"))
}

/// A system of so many tasks, which together need half of the processor.
fn tasks(count: u64) -> System {
    let mut text = String::new();
    for index in 0..count {
        let period = 1_000 * count + 7 * index;
        write!(
            text,
            "[[receiver]]\nname = \"t{index}\"\nurgency = {}\nperiod = \"{period} cycles\"\nwcet = \"500 cycles\"\n",
            index % 256
        )
        .expect("a text");
    }
    common::flat(&text)
}

/// A run of a million jobs, whatever the number of tasks.
const JOBS_TIME: u64 = 1_000_000 * 1_000;

fn jobs(system: &System, options: &Options) -> u64 {
    simulate(system, options)
        .map(|tally| tally.tasks.iter().map(|task| task.ended).sum())
        .unwrap_or_else(|error| panic!("{error}"))
}

fn by_tasks(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("jobs by the number of tasks");
    group.sample_size(10);
    for count in [10, 100, 1_000, 10_000] {
        let system = tasks(count);
        let options = common::options(JOBS_TIME);
        group.throughput(Throughput::Elements(jobs(&system, &options)));
        group.bench_function(BenchmarkId::from_parameter(count), |bencher| {
            bencher.iter(|| black_box(jobs(&system, &options)));
        });
    }
    group.finish();
}

/// The time of the fastest of several runs in seconds, and its result.
fn fastest(mut run: impl FnMut() -> u64) -> (f64, u64) {
    let timed = (0..ROUNDS).map(|_| {
        let begin = Instant::now();
        let of = black_box(run());
        (begin.elapsed().as_secs_f64(), of)
    });
    timed
        .min_by(|one, other| one.0.total_cmp(&other.0))
        .unwrap_or((f64::NAN, 0))
}

const ROUNDS: usize = 15;

/// Millions of interrupts per second of real time.
fn interrupts_per_second(pattern: &str) -> f64 {
    let system = flooded("");
    let mut options = common::options(20_000_000);
    options.feeds = vec![common::feed(&system, "line", pattern)];
    let (seconds, taken) = fastest(|| run(&system, &options));
    taken as f64 / seconds / 1e6
}

/// The time of a job with 10,000 tasks, as a multiple of that with 10.
fn growth() -> f64 {
    let nanoseconds = |count| {
        let system = tasks(count);
        let options = common::options(JOBS_TIME);
        let (seconds, ended) = fastest(|| jobs(&system, &options));
        seconds / ended as f64
    };
    nanoseconds(10_000) / nanoseconds(10)
}

/// The time of SimSo for the same three tasks with a stream of 15 kHz, as a multiple of ours: the
/// median of pairs of runs.
fn beside_simso() -> f64 {
    const PAIRS: usize = 5;
    let system = flooded("");
    let duration = 2_000_000;
    let mut options = common::options(duration);
    // 66 cycles are 15.15 kHz at 1 MHz.
    options.feeds = vec![common::feed(&system, "line", "15151.515151515152Hz")];
    let stream = SimSoTask {
        period: 66,
        wcet: 15,
        priority: 99,
    };
    let task = |period, wcet, priority| SimSoTask {
        period,
        wcet,
        priority,
    };
    let tasks = [
        stream,
        task(1_000, 100, 30),
        task(5_000, 500, 20),
        task(20_000, 2_000, 10),
    ];
    let mut ratios = Vec::new();
    for _ in 0..PAIRS {
        let theirs = simso(&tasks, duration);
        let begin = Instant::now();
        let tally = simulate(&system, &options).unwrap_or_else(|error| panic!("{error}"));
        let ours = begin.elapsed().as_secs_f64();
        for (task, responses) in tally.tasks.iter().zip(&theirs.responses[1..]) {
            assert_eq!(
                task.responses.most(),
                responses.iter().copied().max(),
                "not the same run"
            );
        }
        ratios.push(theirs.seconds / ours);
    }
    ratios.sort_by(f64::total_cmp);
    ratios[PAIRS / 2]
}

fn main() -> ExitCode {
    let mut criterion = Criterion::default().configure_from_args();
    interrupts(&mut criterion);
    by_tasks(&mut criterion);
    criterion.final_summary();
    let claim = |id: &str, what: &str, unit: &str, goal, measured| Claim {
        id: id.to_owned(),
        what: what.to_owned(),
        unit: unit.to_owned(),
        paper: None,
        goal,
        today: None,
        measured,
    };
    let claims = [
        claim(
            "interrupts.periodic",
            "interrupts of a stream of 15 kHz simulated per second",
            "million/s",
            Goal::AtLeast(5.0),
            interrupts_per_second("15kHz"),
        ),
        claim(
            "interrupts.poisson",
            "the same of a random stream",
            "million/s",
            Goal::AtLeast(5.0),
            interrupts_per_second("poisson:15kHz"),
        ),
        claim(
            "tasks.growth",
            "a job among 10,000 tasks over one among 10",
            "times",
            Goal::AtMost(10_000_f64.log10()),
            growth(),
        ),
        claim(
            "simso",
            "time of SimSo 0.8.5 for the same run",
            "times",
            Goal::AtLeast(500.0),
            beside_simso(),
        ),
    ];
    println!("{}", claims_table(&claims, std::io::stdout().is_terminal()));
    if claims.iter().all(Claim::is_met) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
