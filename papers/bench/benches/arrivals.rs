// SPDX-License-Identifier: MIT OR Apache-2.0
//! The time that one arrival costs the simulator, for each pattern.
#![expect(
    missing_docs,
    reason = "the harness makes a public function without one"
)]
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use weir_arrivals::Pattern;

const CLOCK: u64 = 1_000_000_000;

fn next(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("next");
    group.throughput(Throughput::Elements(1));
    for text in [
        "4.7kHz",
        "poisson:20kHz",
        "uniform:10us..90us",
        "mmpp:20kHz:burst=5000:gap=100ms",
        "bursts:16:gap=20us:period=25ms",
        "level:low=100us:high=1ms",
    ] {
        let pattern = Pattern::parse(text, CLOCK).expect("the texts are right");
        let mut arrivals = pattern.start(CLOCK, 1).expect("the patterns can be run");
        let name = text.split(':').next().unwrap_or(text);
        group.bench_function(name, |bencher| bencher.iter(|| arrivals.next()));
    }
}

criterion_group!(benches, next);
criterion_main!(benches);
