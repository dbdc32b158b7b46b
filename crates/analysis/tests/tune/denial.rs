// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that limits which the tuner denies do not exist, and that the changes which it advises are
//! sufficient. The tests try everything on a grid without the tuner's code.

use crate::is_long;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use weir_analysis::check::keeps_deadlines;
use weir_analysis::tune::{Demand, Options, Remedy, Session};
use weir_model::{Expiry, Policy, System, parse};

/// The share by which a limit may exceed what is asked of it; this is the default.
const OVER_ADMISSION: f64 = 0.1;

/// A source of a random file.
#[derive(Debug, Clone)]
struct Line {
    expected: f64,
    tolerated: Option<f64>,
    handler: u64,
    /// The policy that the file states, and its burst; `None` if it states none.
    policy: Option<(&'static str, u32)>,
    flow: Option<Packets>,
}

/// The flow of a source. Its packets have a deadline, and an interrupt takes one of them.
#[derive(Debug, Clone, Copy)]
struct Packets {
    hertz: f64,
    deadline: u64,
}

/// The hardware of a random file.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Ground {
    /// A board whose timers can be shared.
    Board,
    /// The same board with the flavour that limits one source, or several on one shared timer.
    Fast,
    /// A processor whose file states no costs for a shared timer.
    Described,
}

/// A random file with one task, which has a deadline and is below some sources.
#[derive(Debug, Clone)]
struct Case {
    ground: Ground,
    channels: [&'static str; 2],
    lines: Vec<Line>,
    deadline: u64,
    wcet: u64,
}

/// The channels of the sources. They belong to two counters, or to one counter whose channels have
/// one prescaler.
const CHANNELS: [[&str; 2]; 2] = [["TIMER1A", "TIMER3A"], ["TIMER1A", "TIMER1B"]];
/// The channels of the flavour `fast`.
const FAST_CHANNELS: [&str; 2] = ["TIMER0", "TIMER2"];

impl Line {
    /// The least rate that a limit may let through. It is the expected rate, or the rate of the
    /// packets if that is more.
    fn asked(&self) -> f64 {
        self.flow.map_or(0.0, |flow| flow.hertz).max(self.expected)
    }

    /// The limit that the file states, which may let through too much.
    fn stated(&self, channel: &str) -> Option<String> {
        let (policy, burst) = self.policy?;
        Some(limit(policy, burst, self.expected * 1.3, channel))
    }

    /// The limits that are worth trying on this channel. They keep a policy that the file states,
    /// and also a bucket's burst as long as that is possible.
    fn own_limits(&self, channel: &str) -> Vec<String> {
        let mut shapes: Vec<(&str, u32)> = Vec::new();
        match self.policy {
            None => {
                shapes.push(("strict", 1));
                shapes.extend(BURSTS.map(|burst| ("bursty", burst)));
            }
            Some(("bursty", _)) => shapes.extend(BURSTS.map(|burst| ("bursty", burst))),
            Some(("bucket", most)) => shapes.extend((1..=most).map(|burst| ("bucket", burst))),
            Some((policy, burst)) => shapes.push((policy, burst)),
        }
        let rates = [1.0001, 1.03, 1.08];
        let of_shape = |(policy, burst): (&'static str, u32)| {
            rates.map(|above| limit(policy, burst, self.asked() * above, channel))
        };
        shapes.into_iter().flat_map(of_shape).collect()
    }

    /// The limit on a shared timer with this period in cycles; `None` if the policy cannot share a
    /// timer.
    fn shared_limit(&self, period: u64) -> Option<String> {
        if !matches!(self.policy, None | Some(("bursty", _))) {
            return None;
        }
        let burst = (self.asked() * period as f64 / CLOCK).ceil();
        (burst <= 255.0).then(|| {
            format!("limit = {{ policy = \"bursty\", burst = {burst}, timer = \"common\" }}")
        })
    }
}

const BOARD: &str = r#"schema = 1
[cpu]
board = "atmega128"
clock = "4MHz"
"#;

const DESCRIBED: &str = r#"schema = 1
[cpu]
clock = "4MHz"
interrupts = "grouped"
longest_instruction = "4 cycles"
[cpu.costs]
off = { request_served = "26 cycles" }
strict.lazy = { request_served = "59 cycles", request_refused = "54 cycles", expiry_served = "71 cycles", expiry_empty = "60 cycles" }
bursty.lazy = { request_served = "66 cycles", request_refused = "60 cycles", expiry_served = "100 cycles", expiry_empty = "97 cycles" }
bucket.lazy = { request_served = "80 cycles", request_refused = "109 cycles", expiry_served = "102 cycles", expiry_empty = "101 cycles" }
[[timer]]
name = "TIMER1A"
width = 32
group = 3
order = 20
[[timer]]
name = "TIMER3A"
width = 32
group = 3
order = 21
"#;

const CLOCK: f64 = 4e6;
const BURSTS: [u32; 7] = [2, 3, 5, 9, 20, 50, 128];

fn limit(policy: &str, burst: u32, hertz: f64, channel: &str) -> String {
    let burst = match policy {
        "bursty" | "bucket" => format!(", burst = {burst}"),
        _ => String::new(),
    };
    format!(
        "limit = {{ policy = \"{policy}\", rate = \"{hertz:.4}Hz\", timer = \"{channel}\"{burst} }}"
    )
}

impl Case {
    /// The file with these limits, and with a shared timer of this period.
    fn text(&self, limits: &[Option<String>], shared: Option<u64>) -> String {
        let mut text = match self.ground {
            Ground::Board => BOARD.to_owned(),
            Ground::Fast => format!("{BOARD}flavour = \"fast\"\n"),
            Ground::Described => DESCRIBED.to_owned(),
        };
        if let Some(period) = shared {
            let letter = if self.ground == Ground::Fast {
                "A"
            } else {
                "C"
            };
            text += &format!(
                "[[timer]]\nname = \"common\"\nchannel = \"TIMER1{letter}\"\nperiod = \"{period} cycles\"\n"
            );
        }
        for (number, (line, limit)) in self.lines.iter().zip(limits).enumerate() {
            let tolerated = line.tolerated.map_or(String::new(), |hertz| {
                format!(", tolerated = \"{hertz:.4}Hz\"")
            });
            let vector = if self.ground == Ground::Described {
                format!("{{ name = \"INT{number}\", group = 3, order = {number} }}")
            } else {
                format!("\"INT{number}\"")
            };
            text += &format!(
                "[[source]]\nname = \"line{number}\"\nvector = {vector}\n\
                 handler = \"{} cycles\"\nmax_work = 1\n{}\
                 rate = {{ expected = \"{:.4}Hz\"{tolerated} }}\n{}\n",
                line.handler,
                line.flow.map_or("", |_| "queue = 2\n"),
                line.expected,
                limit.clone().unwrap_or_default(),
            );
        }
        for (number, line) in self.lines.iter().enumerate() {
            let Some(flow) = line.flow else { continue };
            text += &format!(
                "[[receiver]]\nname = \"reader{number}\"\nurgency = {}\nwcet = \"40 cycles\"\n\
                 [[flow]]\nname = \"flow{number}\"\nsource = \"line{number}\"\n\
                 receiver = \"reader{number}\"\nrate = \"{:.4}Hz\"\ndeadline = \"{} cycles\"\n\
                 top_half = \"20 cycles\"\nbottom_half = \"90 cycles\"\nqueue = 4\n",
                2 + number,
                flow.hertz,
                flow.deadline
            );
        }
        text + &format!(
            "[[receiver]]\nname = \"work\"\nurgency = 1\nperiod = \"{0} cycles\"\n\
             deadline = \"{0} cycles\"\nwcet = \"{1} cycles\"\n",
            self.deadline, self.wcet
        )
    }

    fn stated(&self) -> String {
        let limits = self.lines.iter().zip(self.channels);
        let limits: Vec<Option<String>> = limits.map(|(line, of)| line.stated(of)).collect();
        self.text(&limits, None)
    }

    /// A file that keeps every deadline and lies in the bands; `None` if the grid has no such file.
    fn by_force(&self) -> Option<String> {
        let own: Vec<Vec<Option<String>>> = self
            .lines
            .iter()
            .zip(self.channels)
            .map(|(line, channel)| line.own_limits(channel).into_iter().map(Some).collect())
            .collect();
        let alone = product(&own).into_iter().map(|limits| (limits, None));
        let periods = (0..25).map(|step| (500.0 * 1.22_f64.powi(step)) as u64);
        let periods = periods.filter(|_| self.ground != Ground::Described);
        let shared = periods.flat_map(|period| {
            let ways: Vec<Vec<Option<String>>> = self
                .lines
                .iter()
                .zip(&own)
                .map(|(line, own)| {
                    let few = own.iter().step_by(3).cloned();
                    let shared = line.shared_limit(period).map(Some);
                    shared.into_iter().chain(few).collect()
                })
                .collect();
            product(&ways)
                .into_iter()
                .map(move |limits| (limits, Some(period)))
        });
        alone.chain(shared).find_map(|(limits, period)| {
            let text = self.text(&limits, period);
            let system = parse("force.toml", &text).ok()?;
            (self.lies_in_bands(&system) && keeps_deadlines(&system)).then_some(text)
        })
    }

    fn lies_in_bands(&self, system: &System) -> bool {
        system
            .sources
            .iter()
            .zip(&self.lines)
            .all(|(source, line)| {
                let limit = &source.limit;
                let interval = match limit.expiry {
                    Some(Expiry::Shared(timer)) => system.timers[timer].period,
                    _ => limit.interval,
                };
                let requests = match limit.policy {
                    Policy::Bursty => limit.burst,
                    _ => 1,
                };
                let hertz = f64::from(requests) * CLOCK / interval.cycles() as f64;
                let most = line.asked() * (1.0 + OVER_ADMISSION);
                let most = line.tolerated.map_or(most, |tolerated| tolerated.min(most));
                hertz >= line.asked() && hertz <= most
            })
    }
}

/// The Cartesian product: all ways to choose one element of each list.
fn product(ways: &[Vec<Option<String>>]) -> Vec<Vec<Option<String>>> {
    ways.iter().fold(vec![Vec::new()], |before, ways| {
        let longer = |choice: &Vec<Option<String>>| {
            let choice = choice.clone();
            ways.iter()
                .map(move |way| [&choice[..], std::slice::from_ref(way)].concat())
        };
        before.iter().flat_map(longer).collect()
    })
}

fn case() -> impl Strategy<Value = Case> {
    let policy = prop_oneof![
        1 => Just(None),
        1 => Just(Some(("strict", 1))),
        1 => (2..9_u32).prop_map(|burst| Some(("bursty", burst))),
        2 => (4..24_u32).prop_map(|burst| Some(("bucket", burst))),
    ];
    let tolerated = prop::option::of(1.0..3.0_f64);
    // Below about 122 Hz a timer of 16 bits needs a prescaler.
    let expected = (60_f64.ln()..5_000_f64.ln()).prop_map(f64::exp);
    // The values are factors: of the expected rate, and of its interval for the deadline.
    let flow = prop::option::weighted(0.3, (0.3..1.3_f64, 0.5..16.0_f64));
    let line = (expected, tolerated, 30..250_u64, policy, flow).prop_map(
        |(expected, times, handler, policy, flow)| Line {
            expected,
            tolerated: times.map(|times| expected * 1.35 * times),
            handler,
            policy,
            flow: flow.map(|(share, intervals)| Packets {
                hertz: expected * share,
                deadline: (intervals * CLOCK / expected) as u64,
            }),
        },
    );
    let lines = prop::collection::vec(line, 1..=2);
    let kind = prop_oneof![
        2 => Just((Ground::Described, CHANNELS[0])),
        1 => Just((Ground::Fast, FAST_CHANNELS)),
        1 => Just((Ground::Board, CHANNELS[0])),
        1 => Just((Ground::Board, CHANNELS[1])),
    ];
    (kind, lines, 1_500..40_000_u64, 0.3..0.85_f64).prop_map(
        |((ground, channels), mut lines, deadline, share)| {
            if ground == Ground::Fast {
                // A stated policy may need a timer of its own, which only one source can have.
                lines.iter_mut().for_each(|line| line.policy = None);
            }
            Case {
                ground,
                channels,
                lines,
                deadline,
                wcet: (deadline as f64 * share) as u64,
            }
        },
    )
}

fn session(text: &str) -> Session {
    Session::new("test.toml", text, Options::default()).unwrap()
}

/// The indices of the sources that have a flow, in the file's order.
fn flowing(case: &Case) -> Vec<usize> {
    let lines = case.lines.iter().enumerate();
    lines
        .filter(|(_, line)| line.flow.is_some())
        .map(|(number, _)| number)
        .collect()
}

/// The file with the change that the remedy asks for; `None` if it does not change the text.
fn remedied(case: &Case, remedy: Remedy) -> Option<(Case, Options)> {
    let mut case = case.clone();
    let mut options = Options::default();
    match remedy {
        Remedy::Deadline(Demand::TaskDeadline(_), cycles) => {
            // The period does not change, because the remedy only makes the deadline longer.
            return (cycles <= case.deadline).then(|| (case.clone(), options.clone()));
        }
        Remedy::Expected(source, hertz) => {
            let line = &mut case.lines[source];
            // The stated limit stays valid if it lets through more than the expected rate.
            line.expected = hertz;
        }
        Remedy::Deadline(Demand::FlowDeadline(flow), cycles) => {
            let number = flowing(&case)[flow];
            case.lines[number].flow.as_mut()?.deadline = cycles;
        }
        Remedy::FlowRate(flow, hertz) => {
            let number = flowing(&case)[flow];
            case.lines[number].flow.as_mut()?.hertz = hertz;
        }
        Remedy::Handler(source, cycles) => case.lines[source].handler = cycles,
        Remedy::Wcet(_, cycles) => case.wcet = cycles,
        Remedy::OtherFlavour => {
            case.ground = Ground::Board;
            case.channels = CHANNELS[0];
        }
        Remedy::OverAdmission(share) => options.over_admission = share,
        _ => return None,
    }
    Some((case, options))
}

#[test]
fn what_is_denied_does_not_exist_and_what_is_advised_is_enough() {
    let count = if is_long() { 64 } else { 32 };
    let mut runner = TestRunner::deterministic();
    let (mut found, mut lowered, mut denied, mut advised) = (0, 0, 0, 0);
    let (mut with_packets, mut denied_packets) = (0, 0);
    let (mut found_fast, mut denied_fast) = (0, 0);
    for _ in 0..count {
        let case = case().new_tree(&mut runner).unwrap().current();
        let text = case.stated();
        // The prescalers of limits on one counter can contradict each other.
        let Ok(session) = Session::new("test.toml", &text, Options::default()) else {
            continue;
        };
        match session.tune(&|_, _| ()) {
            Some(outcome) => {
                found += 1;
                found_fast += usize::from(case.ground == Ground::Fast);
                with_packets += usize::from(!outcome.system.flows.is_empty());
                // The reader refuses limits that let through less than what flows bring.
                parse("test.toml", &outcome.text).unwrap();
                lowered += usize::from(!outcome.lowered.is_empty());
                assert!(keeps_deadlines(&outcome.system), "{text}\n{}", outcome.text);
                for of in &outcome.lowered {
                    assert!(of.burst < of.stated, "{of:?}\n{text}");
                }
            }
            None => {
                denied += 1;
                denied_fast += usize::from(case.ground == Ground::Fast);
                denied_packets += usize::from(!session.system().flows.is_empty());
                if let Some(exists) = case.by_force() {
                    panic!("denied:\n{text}\nexists:\n{exists}");
                }
                for remedy in session.explain().remedies {
                    let Some((case, options)) = remedied(&case, remedy) else {
                        continue;
                    };
                    advised += 1;
                    let text = case.stated();
                    let session = Session::new("test.toml", &text, options).unwrap();
                    assert!(session.tune(&|_, _| ()).is_some(), "{remedy:?}\n{text}");
                }
            }
        }
    }
    // The cases are drawn such that all of these occur.
    assert!(found > count / 8 && denied > count / 8, "{found} {denied}");
    assert!(with_packets > count / 16, "{with_packets}");
    assert!(denied_packets > count / 16, "{denied_packets}");
    assert!(
        found_fast > 0 && denied_fast > 0,
        "{found_fast} {denied_fast}"
    );
    assert!(lowered > 0 && advised > count / 10, "{lowered} {advised}");
}

/// A fast and a slow source on channels of one counter, which needs the prescaler of the slow
/// source. The limits of the file miss the deadline.
const ONE_PRESCALER: &str = r#"schema = 1
[cpu]
board = "atmega128"
clock = "4MHz"
[[source]]
name = "fast"
vector = "INT1"
handler = "73 cycles"
max_work = 1
rate = { expected = "936Hz", tolerated = "3536Hz" }
limit = { policy = "paced", timing = "lazy", rate = "1029Hz", timer = "TIMER1B" }
[[source]]
name = "slow"
vector = "INT4"
handler = "201 cycles"
max_work = 1
rate = { expected = "102Hz", tolerated = "359Hz" }
limit = { policy = "paced", timing = "lazy", rate = "112Hz", timer = "TIMER1A" }
[[receiver]]
name = "work"
urgency = 1
period = "60000 cycles"
deadline = "60000 cycles"
wcet = "WCET cycles"
"#;

#[test]
fn sources_of_one_counter_are_tuned_with_the_prescaler_that_both_can_have() {
    let with = |wcet: u64| ONE_PRESCALER.replace("WCET", &wcet.to_string());
    let slowest = |wcet: u64| {
        with(wcet)
            .replace("1029Hz", "937Hz")
            .replace("112Hz", "102.1Hz")
    };
    let keeps = |text: &str| keeps_deadlines(&parse("test.toml", text).unwrap());
    // This is the most work for which the slowest limits leave time.
    let works: Vec<u64> = (1..60_000).collect();
    let most = works[works.partition_point(|&wcet| keeps(&slowest(wcet))) - 1];
    assert!(!keeps(&with(most)));
    let outcome = session(&with(most)).tune(&|_, _| ()).unwrap();
    assert!(keeps_deadlines(&outcome.system), "{}", outcome.text);
}
