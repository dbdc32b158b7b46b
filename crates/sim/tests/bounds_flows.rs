// SPDX-License-Identifier: MIT OR Apache-2.0
//! No run violates the bounds of `weir check` for packets. The random systems have flows, bottom
//! halves and receivers that packets release.

use std::fmt::Write;

use crate::is_long;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use weir_analysis::Analysis;
use weir_analysis::check::CheckReport;
use weir_analysis::units::Part;
use weir_arrivals::Pattern;
use weir_model::{Policy, System};
use weir_sim::tally::Tally;
use weir_sim::{
    CostSpreads, Defer, Feed, Loss, Options, Queue, SimulationEvent, Spread, Target, Ties, Track,
};

const RUNS: u64 = 4;
const DURATION: u64 = 200_000;

/// Returns the text of a random system.
fn system(rng: &mut ChaCha8Rng) -> String {
    let nests = rng.random_bool(0.3);
    let cooperative = rng.random_bool(0.2);
    let slice = !cooperative && rng.random_bool(0.3);
    let mut text = format!(
        "schema = 1\n[cpu]\nclock = \"1MHz\"\ninterrupts = \"{}\"\nlongest_instruction = \"2 cycles\"\ncontext_switch = \"{} cycles\"\ntasks = \"{}\"\n{}{}",
        if nests { "grouped" } else { "flat" },
        rng.random_range(0..9),
        if cooperative {
            "cooperative"
        } else {
            "preemptive"
        },
        if slice {
            format!("time_slice = \"{}us\"\n", rng.random_range(50..500))
        } else {
            String::new()
        },
        crate::common::limits::costs(),
    );
    let receivers = rng.random_range(2..5_usize);
    let budgets = rng.random_bool(0.3);
    if budgets {
        let tick = [250, 500, 1000, 2000][rng.random_range(0..4_usize)];
        write!(
            text,
            "[freertos]\npriorities = 8\ntick_rate = \"{tick}Hz\"\ncommon = {{ urgency = 0, queue = 1 }}\n"
        )
        .expect("a text");
    }
    let mut flows = String::new();
    let mut has_flow = vec![false; receivers];
    for index in 0..rng.random_range(1..4_usize) {
        // Two flows take turns at half the rate each, so that the rate of their source is kept.
        let gap = [100, 200, 250, 500, 1000, 2000][rng.random_range(0..6_usize)];
        let of_source = rng.random_range(1..3_usize);
        for number in 0..of_source {
            let receiver = rng.random_range(0..receivers);
            has_flow[receiver] = true;
            let rate = if of_source == 2 && rng.random_bool(0.5) {
                format!("rate = \"{}Hz\"\n", 500_000 / gap)
            } else {
                String::new()
            };
            // A receiver with a budget gets only packets with a port.
            let port = if rng.random_bool(0.8) {
                format!(
                    "selector = {{ protocol = \"udp\", port = {} }}\n",
                    1 + 10 * index + number
                )
            } else {
                String::new()
            };
            write!(
                flows,
                "[[flow]]\nname = \"f{index}{number}\"\nsource = \"s{index}\"\nreceiver = \"r{receiver}\"\n{rate}{port}top_half = \"{} cycles\"\ndemux = \"{} cycles\"\n\
                 bottom_half = \"{} cycles\"\n",
                rng.random_range(0..gap / 20),
                rng.random_range(0..5),
                rng.random_range(1..gap / 10),
            )
            .expect("a text");
        }
        let group = |rng: &mut ChaCha8Rng| {
            if nests {
                format!("group = {}\n", rng.random_range(1..4))
            } else {
                String::new()
            }
        };
        let queue = rng.random_range(1..9);
        let (limit, timer) = if rng.random_bool(0.4) {
            crate::common::limits::random(rng, index)
        } else {
            (String::new(), String::new())
        };
        let moderation = if rng.random_bool(0.3) {
            moderation(rng, queue)
        } else {
            String::new()
        };
        let queue = if rng.random_bool(0.7) {
            format!("queue = {queue}\n")
        } else {
            String::new()
        };
        let of_line = group(rng);
        write!(
            text,
            "[[source]]\nname = \"s{index}\"\nvector = \"V{index}\"\n{of_line}order = {}\nhandler = \"{} cycles\"\nmax_work = {}\nrate = {{ worst = \"{}Hz\" }}\n{queue}{moderation}{limit}{}",
            rng.random_range(0..100) * 20 + index,
            rng.random_range(1..gap / 10),
            rng.random_range(1..5),
            1_000_000 / gap,
            timer.replace("GROUP", &group(rng)),
        )
        .expect("a text");
    }
    for (index, has_flow) in has_flow.into_iter().enumerate() {
        let works = if has_flow && rng.random_bool(0.7) {
            let backlog = if rng.random_bool(0.3) {
                "backlog = 2\n"
            } else {
                ""
            };
            format!("wcet = \"{}us\"\n{backlog}", rng.random_range(1..100))
        } else {
            let period = rng.random_range(1_000..20_000);
            let wcet = rng.random_range(1..period / 8);
            format!("period = \"{period}us\"\nwcet = \"{wcet}us\"\n")
        };
        let urgency = rng.random_range(1..4);
        let budget = if budgets && has_flow && rng.random_bool(0.7) {
            format!("budget = \"{}kHz\"\n", 2 * rng.random_range(1..3))
        } else {
            String::new()
        };
        write!(
            text,
            "[[receiver]]\nname = \"r{index}\"\nurgency = {urgency}\n{works}{budget}"
        )
        .expect("a text");
    }
    text + &flows
}

/// Returns the text of a random moderation for a device with a queue of `queue` packets.
fn moderation(rng: &mut ChaCha8Rng, queue: u64) -> String {
    let absolute = rng.random_range(50..2000);
    let packet = if rng.random_bool(0.3) {
        format!(", packet = \"{}us\"", rng.random_range(20..=absolute))
    } else {
        String::new()
    };
    let count = if rng.random_bool(0.5) {
        format!(", count = {}", rng.random_range(1..=queue))
    } else {
        String::new()
    };
    format!("moderation = {{ absolute = \"{absolute}us\"{packet}{count} }}\n")
}

/// Returns packets that keep to the worst rate of each source.
fn feeds(system: &System, rng: &mut ChaCha8Rng) -> Vec<Feed> {
    let mut feeds = Vec::new();
    for (source, of) in system.sources.iter().enumerate() {
        let gap = of.rates.worst.expect("a rate").least_cycles(1_000_000);
        let flows: Vec<usize> = (0..system.flows.len())
            .filter(|&flow| system.flows[flow].source == source)
            .collect();
        let phase = rng.random_range(1..500);
        let texts = match flows.len() {
            1 => vec![match rng.random_range(0..3) {
                0 => format!("{}Hz:phase={phase}us", 1_000_000 / gap),
                1 => format!("uniform:{gap}us..{}us", 4 * gap),
                _ => format!("bursts:8:gap={gap}us:period={}us", 40 * gap),
            }],
            _ => vec![
                format!("{}Hz:phase={phase}us", 500_000 / gap),
                format!("{}Hz:phase={}us", 500_000 / gap, phase + gap),
            ],
        };
        for (flow, text) in flows.into_iter().zip(texts) {
            let pattern = Pattern::parse(&text, 1_000_000);
            feeds.push(Feed {
                to: Target::Flow(flow),
                pattern: pattern.unwrap_or_else(|error| panic!("{error}")),
            });
        }
    }
    feeds
}

/// Observed values compared with their bounds.
#[derive(Default)]
struct Seen {
    held: u32,
    closest: f64,
}

impl Seen {
    fn hold(&mut self, seen: Option<u64>, bound: Option<u64>, what: &dyn Fn() -> String) {
        if let (Some(seen), Some(bound)) = (seen, bound) {
            assert!(
                seen <= bound,
                "{seen}, and at most {bound} is possible: {}",
                what()
            );
            self.held += 1;
            self.closest = self.closest.max(seen as f64 / bound.max(1) as f64);
        }
    }
}

/// The comparisons of each kind.
#[derive(Default)]
struct All {
    interrupts: Seen,
    latencies: Seen,
    /// Latencies of packets that wait for moderation or for a limit.
    waits: Seen,
    queues: Seen,
    /// Packets lost to budgets that, by the analysis, are never used up. There must be none.
    budgets: Seen,
    /// Packets lost to budgets that, by the analysis, may be used up.
    overdrawn: u64,
    tasks: Seen,
    servers: Seen,
    ends: Seen,
}

impl All {
    fn check(
        &mut self,
        system: &System,
        analysis: &Analysis,
        report: &CheckReport,
        (tally, log): &(Tally, crate::common::Log),
        text: &dyn Fn() -> String,
    ) {
        for (source, of) in tally.sources.iter().enumerate() {
            let row = analysis.row(Part::Request(source));
            let bound = row.and_then(|row| row.outcome.as_ref().ok());
            let what = || format!("s{source}\n{}", text());
            // The deadline of a limited source counts from admission by the limiter, so its
            // responses cannot be compared here.
            if system.sources[source].limit.policy == Policy::Off {
                self.interrupts
                    .hold(of.responses.most(), bound.map(|of| of.response), &what);
            }
        }
        for (flow, (of, bound)) in tally.flows.iter().zip(&report.flows).enumerate() {
            let what = || format!("{}\n{}", bound.name, text());
            let most = bound.bound.response_cycles;
            let waits = bound.moderation_cycles > Some(0) || bound.limit_cycles > Some(0);
            let kind = if waits {
                &mut self.waits
            } else {
                &mut self.latencies
            };
            kind.hold(of.latencies.most(), most, &what);
            let depths = log.0.iter().filter_map(|&(_, event)| match event {
                SimulationEvent::Depth(Queue::Deferred(of), depth) if of == flow => Some(depth),
                _ => None,
            });
            self.queues.hold(depths.max(), bound.queue_needed, &what);
            let over = of.lost.of(Loss::OverBudget);
            match bound.overdraws() {
                Some(false) => self.budgets.hold(Some(over), Some(0), &what),
                Some(true) => self.overdrawn += over,
                None => assert_eq!(over, 0, "{}", what()),
            }
        }
        for (task, of) in tally.tasks.iter().enumerate() {
            let what = || format!("r{task}\n{}", text());
            let is_server = system.receivers[task].works_per_packet();
            let kind = if is_server {
                &mut self.servers
            } else {
                &mut self.tasks
            };
            let bound = analysis.response_of(system, task);
            kind.hold(of.responses.most(), bound, &what);
            if is_server {
                let end = from_arrival_to_end(system, report, task, (tally, log), bound);
                if let Some((seen, bound)) = end {
                    self.ends.hold(Some(seen), Some(bound), &what);
                }
            }
        }
    }
}

/// Compares the longest observed time from a packet's arrival to the end of its job with the bound.
/// This is possible only if each arrival is known to release that job.
fn from_arrival_to_end(
    system: &System,
    report: &CheckReport,
    task: usize,
    (tally, log): (&Tally, &crate::common::Log),
    response: Option<u64>,
) -> Option<(u64, u64)> {
    let mut flows = (0..system.flows.len()).filter(|&flow| system.flows[flow].receiver == task);
    let (flow, None) = (flows.next()?, flows.next()) else {
        return None;
    };
    let source = system.flows[flow].source;
    let alone = system.flows.iter().filter(|of| of.source == source).count() == 1;
    if !alone || tally.sources[source].lost.total() > 0 {
        return None;
    }
    let arrivals = log.instants(SimulationEvent::Arrived(source));
    let ends = log.instants(SimulationEvent::Ends(Track::Task(task)));
    let seen = ends.iter().zip(&arrivals).map(|(end, begin)| end - begin);
    let of = report.flows.get(flow)?;
    let bound = of.moderation_cycles? + of.limit_cycles? + of.interrupt_cycles? + response?;
    Some((seen.max()?, bound))
}

#[test]
fn no_packet_takes_longer_than_its_bound() {
    // The seed is chosen so that few systems come as close to the bounds of each kind as many do.
    let (seed, systems) = if is_long() { (1, 800) } else { (3, 200) };
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut all = All::default();
    for _ in 0..systems {
        let text = system(&mut rng);
        let system = crate::common::parse(&text);
        let analysis = weir_analysis::analyse(&system);
        let report = weir_analysis::check::report(&system, &analysis, &mut |_| {});
        for run in 0..RUNS {
            let options = Options {
                seed: rng.random(),
                costs: CostSpreads::all(if rng.random_bool(0.5) {
                    Spread::Worst
                } else {
                    Spread::Uniform { least: 30.0 }
                }),
                defer: Defer::Exact(if run % 2 == 0 { Ties::Run } else { Ties::Wait }),
                feeds: feeds(&system, &mut rng),
                ..crate::common::options(DURATION)
            };
            let ran = crate::common::run(&system, &options);
            let text = || format!("{text}\n{options:?}");
            all.check(&system, &analysis, &report, &ran, &text);
        }
    }
    // Scales a number that 800 systems reach to the number of systems of this run.
    let share = |of: u32| of * systems / 800;
    assert!(
        all.budgets.held >= share(100) && all.overdrawn >= u64::from(share(1000)),
        "budgets"
    );
    for (what, seen, least, close) in [
        ("interrupts", &all.interrupts, 1000, 0.9),
        ("latencies", &all.latencies, 1000, 0.9),
        ("latencies behind others", &all.waits, 500, 0.8),
        ("queues", &all.queues, 1000, 0.9),
        ("tasks", &all.tasks, 1000, 0.9),
        ("servers", &all.servers, 1000, 0.9),
        ("from arrival to end", &all.ends, 100, 0.9),
    ] {
        println!(
            "{what}: {} within their bounds, up to {:.3} of it",
            seen.held, seen.closest
        );
        assert!(
            seen.held >= share(least) && seen.closest > close,
            "{what}: {}, {}: not the mix that is meant",
            seen.held,
            seen.closest
        );
    }
}
