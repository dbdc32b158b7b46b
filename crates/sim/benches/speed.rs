// SPDX-License-Identifier: MIT OR Apache-2.0
//! How fast a run is: interrupts per second, the cost of an event by the number of tasks, and the same system as SimSo's.
#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../tests/simso/python.rs"]
mod python;

use std::fmt::Write;
use std::hint::black_box;
use std::time::Instant;

use criterion::{BenchmarkId, Criterion, Throughput};
use weir_model::System;
use weir_sim::{Options, simulate};

use python::{SimSoTask, simso};

/// Three tasks, and a line of which `limit` says how often it may interrupt.
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

/// Interrupts that were taken.
fn run(system: &System, options: &Options) -> u64 {
    simulate(system, options, &mut ())
        .map(|tally| tally.interrupts)
        .unwrap_or_else(|error| panic!("{error}"))
}

fn tasks(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("jobs by the number of tasks");
    group.sample_size(10);
    for count in [10_u64, 100, 1_000, 10_000] {
        let mut text = String::new();
        for index in 0..count {
            // All of them together want half of the processor.
            let period = 1_000 * count + 7 * index;
            write!(
                text,
                "[[receiver]]\nname = \"t{index}\"\nurgency = {}\nperiod = \"{period} cycles\"\nwcet = \"500 cycles\"\n",
                index % 256
            )
            .expect("a text");
        }
        let system = common::flat(&text);
        let options = common::options(1_000_000 * 1_000);
        let jobs = simulate(&system, &options, &mut ())
            .map(|tally| tally.tasks.iter().map(|task| task.ended).sum())
            .unwrap_or_else(|error| panic!("{error}"));
        group.throughput(Throughput::Elements(jobs));
        group.bench_function(BenchmarkId::from_parameter(count), |bencher| {
            bencher.iter(|| black_box(run(&system, &options)));
        });
    }
    group.finish();
}

/// The same three tasks with a stream of 15 kHz, here and in SimSo, in one run.
fn beside_simso() {
    let system = flooded("");
    let rounds: u32 = 5;
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
    for _ in 0..rounds {
        let theirs = simso(&tasks, duration);
        let begin = Instant::now();
        let tally = simulate(&system, &options, &mut ()).unwrap_or_else(|error| panic!("{error}"));
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
    println!(
        "beside SimSo: {:.0} to {:.0} times as fast, median {:.0}",
        ratios[0],
        ratios[ratios.len() - 1],
        ratios[ratios.len() / 2]
    );
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    interrupts(&mut criterion);
    tasks(&mut criterion);
    criterion.final_summary();
    beside_simso();
}
