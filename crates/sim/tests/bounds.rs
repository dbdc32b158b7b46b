// SPDX-License-Identifier: MIT OR Apache-2.0
//! No run violates the bounds of `weir check`. The systems are random, and their sources keep to
//! their worst rates in many ways.

use std::fmt::Write;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use weir_analysis::units::Part;
use weir_arrivals::Pattern;
use weir_model::System;
use weir_sim::{CostSpreads, Defer, Feed, Options, Spread, Target, Ties};

const SYSTEMS: u64 = 400;
const DURATION: u64 = 300_000;

/// Returns the text of a random system, and for each source the minimum time between two requests.
fn system(rng: &mut ChaCha8Rng) -> (String, Vec<u64>) {
    let nests = rng.random_bool(0.3);
    let mut text = format!(
        "schema = 1\n[cpu]\nclock = \"1MHz\"\ninterrupts = \"{}\"\nlongest_instruction = \"2 cycles\"\ncontext_switch = \"{} cycles\"\n{}",
        if nests { "grouped" } else { "flat" },
        rng.random_range(0..9),
        crate::common::limits::costs()
    );
    let group = |rng: &mut ChaCha8Rng| {
        if nests {
            format!("group = {}\n", rng.random_range(1..4))
        } else {
            String::new()
        }
    };
    let mut gaps = Vec::new();
    for index in 0..rng.random_range(1..4_usize) {
        let rate = [500, 1000, 2000, 5000, 20_000][rng.random_range(0..5_usize)];
        gaps.push(1_000_000 / rate);
        let (limit, timer) = crate::common::limits::random(rng, index);
        let order = rng.random_range(0..100) * 20 + index;
        let own = group(rng);
        write!(
            text,
            "[[source]]\nname = \"s{index}\"\nvector = \"V{index}\"\n{own}order = {order}\nhandler = \"{} cycles\"\nmax_work = 1\nrate = {{ worst = \"{rate}Hz\" }}\n{limit}{}",
            rng.random_range(1..60),
            timer.replace("GROUP", &group(rng)),
        )
        .expect("a text");
    }
    for index in 0..rng.random_range(1..4) {
        let period = rng.random_range(2_000..20_000);
        write!(
            text,
            "[[receiver]]\nname = \"r{index}\"\nurgency = {}\nperiod = \"{period}us\"\njitter = \"{}us\"\ndeadline = \"{period}us\"\nwcet = \"{}us\"\n",
            rng.random_range(1..4),
            rng.random_range(0..period / 4),
            rng.random_range(1..period / 4),
        )
        .expect("a text");
    }
    (text, gaps)
}

/// Returns a random pattern whose arrivals are at least `gap` cycles apart.
fn pattern(rng: &mut ChaCha8Rng, gap: u64) -> Pattern {
    let text = match rng.random_range(0..3) {
        0 => format!("{}Hz:phase={}us", 1_000_000 / gap, rng.random_range(1..500)),
        1 => format!("uniform:{gap}us..{}us", 4 * gap),
        _ => format!("bursts:{}:gap={gap}us:period={}us", 5, 25 * gap),
    };
    Pattern::parse(&text, 1_000_000).unwrap_or_else(|error| panic!("{error}"))
}

fn check(system: &System, gaps: &[u64], rng: &mut ChaCha8Rng, text: &str) -> (u32, f64) {
    let analysis = weir_analysis::analyse(system);
    let (mut held, mut closest) = (0, 0.0_f64);
    for _ in 0..3 {
        let mut feeds = Vec::new();
        for (source, &gap) in gaps.iter().enumerate() {
            feeds.push(Feed {
                to: Target::Source(source),
                pattern: pattern(rng, gap),
            });
        }
        let spread = if rng.random_bool(0.5) {
            Spread::Worst
        } else {
            Spread::Uniform { least: 30.0 }
        };
        let options = Options {
            duration: DURATION,
            seed: rng.random(),
            costs: CostSpreads::all(spread),
            limits: true,
            moderation: true,
            defer: Defer::Exact(Ties::Run),
            tick: None,
            closed_loops: Vec::new(),
            feeds,
        };
        let (tally, _) = crate::common::run(system, &options);
        for (task, tally) in tally.tasks.iter().enumerate() {
            let bound = analysis
                .row(Part::Task(task))
                .and_then(|row| row.outcome.as_ref().ok())
                .map(|solution| solution.response);
            if let (Some(bound), Some(worst)) = (bound, tally.responses.most()) {
                assert!(
                    worst <= bound,
                    "r{task} took {worst} cycles, and at most {bound} is possible\n{text}\n{options:?}"
                );
                held += 1;
                closest = closest.max(worst as f64 / bound as f64);
            }
        }
    }
    (held, closest)
}

#[test]
fn no_response_is_longer_than_its_bound() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let (mut held, mut close) = (0, 0);
    for _ in 0..SYSTEMS {
        let (text, gaps) = system(&mut rng);
        let system = crate::common::parse(&text);
        let (bounds, closest) = check(&system, &gaps, &mut rng, &text);
        held += bounds;
        close += u32::from(closest > 0.9);
    }
    println!(
        "{held} responses within their bounds; in {close} systems of {SYSTEMS} one came within a tenth of it"
    );
    assert!(
        held > 1500 && close > 100,
        "{held}, {close}: not the mix that is meant"
    );
}
