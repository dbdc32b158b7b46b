// SPDX-License-Identifier: GPL-3.0-or-later
//! The worst that each interrupt of a limiter takes, for the response times of regehr2005 §5: every kind of it, of every flavour, policy and timing.
mod adversary;
mod events;

use std::collections::BTreeMap;
use std::path::PathBuf;

use rayon::prelude::*;
use serde::Deserialize;
use toml::Spanned;

use self::adversary::{Attack, Target, in_step, storm};
use self::events::{Kind, Watch, longest};
use super::ExperimentError;
use super::batch::{Job, run_each};
use super::bench::{Bench, flood};
use super::file::Flavour;
use crate::chip::ATMEGA128;
use crate::line::Line;
use crate::run::{Flood, Stimulus};

/// What is measured, and how hard.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WorstSpec {
    /// What the handler's body takes, in cycles: it is no cost of the limiter's.
    pub body: u64,
    /// For each firmware so many attacks in step with the interval, and so many at random as long as the experiment's run.
    pub attacks: u64,
    /// What is compiled, by names `FLAVOUR.NAME`, besides what the flavour has.
    pub firmware: BTreeMap<String, Flavour>,
    /// One line behind a limiter.
    pub limited: Vec<LimitedSpec>,
    /// One line without one: a handler of its own, or a timer that looks after it.
    pub plain: Vec<PlainSpec>,
    /// Several lines, one timer.
    pub shared: Vec<SharedSpec>,
}

/// A limiter. Its firmware is given NODE_POLICY, NODE_TIMING, NODE_CHANNEL and the other parameters of limited.c.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LimitedSpec {
    /// `FLAVOUR.POLICY.TIMING`; may be there more than once: the worst counts.
    pub id: Spanned<String>,
    /// The firmware.
    pub of: String,
    /// The compare channels with which it is measured.
    pub channels: Vec<String>,
    /// Cycles of a tick.
    pub prescaler: u64,
    /// In ticks.
    pub interval: u64,
    pub burst: u64,
    /// In ticks.
    #[serde(default)]
    pub lag: u64,
}

/// A line without a limiter.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlainSpec {
    /// `FLAVOUR.POLICY`.
    pub id: Spanned<String>,
    /// The firmware.
    pub of: String,
    /// In cycles, which the attacks are in step with.
    pub interval: u64,
}

/// Sources on one timer. The firmware is given NODE_SOURCES and NODE_CHANNEL.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SharedSpec {
    /// `FLAVOUR.POLICY`.
    pub id: Spanned<String>,
    /// The firmware.
    pub of: String,
    /// The compare channels with which it is measured.
    pub channels: Vec<String>,
    /// Measured with 1 source, 2 and so on up to this many, INT0 upwards; at least 2.
    pub most_sources: u64,
    /// In cycles, which the attacks are in step with.
    pub interval: u64,
    pub burst: u64,
}

/// Cycles by the name of the event, by `FLAVOUR.POLICY.TIMING`.
pub(super) type Costs = BTreeMap<String, BTreeMap<&'static str, u64>>;

/// What was measured.
#[derive(Debug, Default)]
pub(super) struct Worst {
    /// Whatever the channel.
    pub any: Costs,
    /// By the channel.
    pub by_channel: BTreeMap<String, Costs>,
}

const BASE: &str = "expiry_base";
const CLEAR: &str = "clear_empty";

/// Every id of which something is measured.
pub(super) fn ids(spec: &WorstSpec) -> impl Iterator<Item = String> {
    let limited = spec.limited.iter().map(|one| &one.id);
    let plain = spec.plain.iter().map(|one| &one.id);
    let shared = spec.shared.iter().map(|one| &one.id);
    let names = Kind::ALL.into_iter().map(Kind::name).chain([BASE, CLEAR]);
    limited.chain(plain).chain(shared).flat_map(move |id| {
        names
            .clone()
            .map(move |name| format!("{}.{name}", id.get_ref()))
    })
}

/// One firmware under attack.
#[derive(Debug)]
struct Subject {
    id: String,
    of: String,
    /// None if it has no choice.
    channel: Option<String>,
    defines: Vec<String>,
    lines: Vec<Line>,
    watch: Watch,
    target: Target,
    /// On a shared timer: how many.
    sources: Option<u64>,
}

impl WorstSpec {
    fn subjects(&self) -> Result<Vec<Subject>, ExperimentError> {
        let mut subjects = Vec::new();
        for one in &self.limited {
            for channel in &one.channels {
                subjects.push(self.limited_subject(one, channel)?);
            }
        }
        for one in &self.plain {
            let id = one.id.get_ref();
            subjects.push(Subject {
                id: id.clone(),
                of: one.of.clone(),
                channel: None,
                defines: vec![
                    "NODE_MARK=OCR2".to_owned(),
                    format!("NODE_INTERVAL={}", one.interval),
                ],
                lines: vec![Line::INT0],
                watch: self.watch(id, &[Line::INT0], "TIMER1A")?,
                target: Target {
                    interval: one.interval,
                    burst: 1,
                    block: 0,
                    wrap: one.interval,
                },
                sources: None,
            });
        }
        for one in &self.shared {
            for channel in &one.channels {
                for sources in 1..=one.most_sources {
                    let id = one.id.get_ref();
                    let lines: Vec<Line> = (0..sources)
                        .filter_map(|number| Line::from_number(usize::try_from(number).ok()?))
                        .collect();
                    subjects.push(Subject {
                        id: id.clone(),
                        of: one.of.clone(),
                        channel: Some(channel.clone()),
                        defines: vec![
                            "NODE_MARK=OCR2".to_owned(),
                            format!("NODE_SOURCES={sources}"),
                            format!("NODE_CHANNEL={channel}"),
                        ],
                        watch: self.watch(id, &lines, channel)?,
                        lines,
                        target: Target {
                            interval: one.interval,
                            burst: one.burst,
                            block: 0,
                            wrap: one.interval,
                        },
                        sources: Some(sources),
                    });
                }
            }
        }
        Ok(subjects)
    }

    fn limited_subject(
        &self,
        one: &LimitedSpec,
        channel: &str,
    ) -> Result<Subject, ExperimentError> {
        let id = one.id.get_ref();
        let mut parts = id.split('.').skip(1);
        let (Some(policy), Some(timing)) = (parts.next(), parts.next()) else {
            return Err(ExperimentError::Evaluation(format!(
                "`{id}` is no limiter: write FLAVOUR.POLICY.TIMING, for example c.strict.lazy"
            )));
        };
        // INT0 is the line that blocks.
        let line = Line::INT6;
        let interval = one.interval.saturating_mul(one.prescaler);
        let work = interval / 2;
        let bits = if is_8_bit(channel) { 8 } else { 16 };
        let constant = |name: &str| format!("WEIR_LIMIT_{}", name.to_ascii_uppercase());
        Ok(Subject {
            id: id.clone(),
            of: one.of.clone(),
            channel: Some(channel.to_owned()),
            defines: vec![
                format!("NODE_MARK={}", mark(channel).0),
                format!("NODE_BLOCK={work}"),
                format!("NODE_LINE={}", line.number()),
                format!("NODE_CHANNEL={channel}"),
                format!("NODE_PRESCALER={}", one.prescaler),
                format!("NODE_POLICY={}", constant(policy)),
                format!("NODE_TIMING={}", constant(timing)),
                format!("NODE_INTERVAL={}", one.interval),
                format!("NODE_LAG={}", one.lag),
                format!("NODE_BURST={}", one.burst),
            ],
            lines: vec![line],
            watch: self.watch(id, &[line], channel)?,
            target: Target {
                interval,
                burst: one.burst,
                // With a part of what surrounds the work: so that the next request comes before its end.
                block: work + 20,
                wrap: (1_u64 << bits).saturating_mul(one.prescaler),
            },
            sources: None,
        })
    }

    fn watch(&self, id: &str, lines: &[Line], channel: &str) -> Result<Watch, ExperimentError> {
        let unknown = |name: String| {
            ExperimentError::Evaluation(format!(
                "`{id}` needs the interrupt {name}, which the chip does not have"
            ))
        };
        let number = |name: String| vector(&name).ok_or_else(|| unknown(name));
        Ok(Watch {
            lines: lines
                .iter()
                .map(|line| number(line.to_string()))
                .collect::<Result<_, _>>()?,
            timer: number(channel_vector(channel))?,
            mark: mark(channel).1,
            body: self.body,
        })
    }
}

fn is_8_bit(channel: &str) -> bool {
    matches!(channel, "TIMER0" | "TIMER2")
}

/// A compare register that the channel leaves free: its name and its address in data space.
fn mark(channel: &str) -> (&'static str, u16) {
    if channel == "TIMER2" {
        ("OCR0", 0x51)
    } else {
        ("OCR2", 0x43)
    }
}

/// The data sheet's name of a channel's interrupt: TIMER1_COMPA for TIMER1A.
fn channel_vector(channel: &str) -> String {
    let (timer, compare) = channel
        .split_at_checked("TIMER1".len())
        .unwrap_or((channel, ""));
    format!("{timer}_COMP{compare}")
}

fn vector(name: &str) -> Option<u8> {
    let index = ATMEGA128.vectors.iter().position(|known| known == name)?;
    u8::try_from(index + 1).ok()
}

/// Runs every firmware under every attack.
pub(super) fn measure(bench: &Bench, spec: &WorstSpec) -> Result<Worst, ExperimentError> {
    let subjects = spec.subjects()?;
    let elves = subjects
        .par_iter()
        .enumerate()
        .map(|(index, subject)| compile(bench, spec, index, subject))
        .collect::<Result<Vec<PathBuf>, _>>()?;
    let length = bench.length_cycles;
    let mut jobs = Vec::new();
    for (index, subject) in subjects.iter().enumerate() {
        for seed in 0..spec.attacks {
            for (kind, attack) in [
                in_step(&subject.target, seed),
                storm(&subject.target, seed, length),
            ]
            .into_iter()
            .enumerate()
            {
                let mut run = bench.spec(&elves[index]);
                run.counters.clear();
                run.warmup_cycles = 0;
                run.trace = true;
                run.cycles = attack.end;
                run.floods = floods(subject, &attack);
                jobs.push(Job {
                    key: (index, seed, kind),
                    firmware: subject.id.clone(),
                    spec: run,
                });
            }
        }
    }
    let results = run_each(jobs, |(index, ..), result| {
        longest(&result.events, &subjects[*index].watch)
    })?;
    let mut of_subject: Vec<BTreeMap<Kind, u64>> = vec![BTreeMap::new(); subjects.len()];
    for ((index, ..), found) in results {
        for (kind, cycles) in found {
            let most = of_subject[index].entry(kind).or_insert(0);
            *most = cycles.max(*most);
        }
    }
    summed_up(&subjects, &of_subject)
}

fn compile(
    bench: &Bench,
    spec: &WorstSpec,
    index: usize,
    subject: &Subject,
) -> Result<PathBuf, ExperimentError> {
    let unknown = |what: &str| {
        ExperimentError::Evaluation(format!(
            "`{}` is measured on `{}`, but the file has no {what} of that name",
            subject.id, subject.of
        ))
    };
    let flavour = subject.of.split('.').next().unwrap_or_default();
    let common = bench
        .file
        .flavour
        .get(flavour)
        .ok_or_else(|| unknown("flavour"))?;
    let own = spec
        .firmware
        .get(&subject.of)
        .ok_or_else(|| unknown("firmware"))?;
    let defines = Flavour {
        defines: subject.defines.clone(),
        ..Flavour::default()
    };
    bench.compile_parts(&format!("worst{index}"), &[common, own, &defines])
}

/// The same edges on every line, one after the other by less than an interrupt takes.
fn floods(subject: &Subject, attack: &Attack) -> Vec<Flood> {
    let trace = |times: Vec<u64>| Stimulus::Trace {
        name: subject.id.clone(),
        times: times.into(),
    };
    let mut floods: Vec<Flood> = (0_u64..)
        .zip(&subject.lines)
        .map(|(index, line)| Flood {
            line: *line,
            stimulus: trace(
                attack
                    .requests
                    .iter()
                    .map(|edge| edge + 7 * index)
                    .collect(),
            ),
        })
        .collect();
    if subject.target.block > 0 {
        floods.push(flood(trace(attack.blocks.clone())));
    }
    floods
}

/// The worst over everything that has the same id.
fn summed_up(
    subjects: &[Subject],
    measured: &[BTreeMap<Kind, u64>],
) -> Result<Worst, ExperimentError> {
    let mut worst = Worst::default();
    let mut timers: BTreeMap<(&str, &str), Vec<(u64, u64)>> = BTreeMap::new();
    for (subject, kinds) in subjects.iter().zip(measured) {
        for (kind, cycles) in kinds {
            match (subject.sources, kind, &subject.channel) {
                (Some(sources), Kind::ExpiryEmpty, Some(channel)) => timers
                    .entry((&subject.id, channel))
                    .or_default()
                    .push((sources, *cycles)),
                (_, _, channel) => worst.add(&subject.id, channel.as_deref(), kind.name(), *cycles),
            }
        }
    }
    for ((id, channel), of_timer) in timers {
        let (base, clear) = line_above(&of_timer).ok_or_else(|| {
            ExperimentError::Evaluation(format!(
                "`{id}` shares a timer: measure it with 2 sources at least"
            ))
        })?;
        worst.add(id, Some(channel), BASE, base);
        worst.add(id, Some(channel), CLEAR, clear);
    }
    Ok(worst)
}

impl Worst {
    fn add(&mut self, id: &str, channel: Option<&str>, name: &'static str, cycles: u64) {
        let of_channel =
            channel.map(|channel| self.by_channel.entry(channel.to_owned()).or_default());
        for costs in [Some(&mut self.any), of_channel].into_iter().flatten() {
            let most = costs
                .entry(id.to_owned())
                .or_default()
                .entry(name)
                .or_insert(0);
            *most = cycles.max(*most);
        }
    }
}

/// What a timer's interrupt takes with each number of sources, as a base and a part per source that are nowhere below it: the steepest of the
/// differences, and the base that this leaves.
fn line_above(points: &[(u64, u64)]) -> Option<(u64, u64)> {
    let slope = points
        .windows(2)
        .map(|pair| {
            pair[1]
                .1
                .saturating_sub(pair[0].1)
                .div_ceil((pair[1].0 - pair[0].0).max(1))
        })
        .max()?;
    let base = points
        .iter()
        .map(|(sources, cycles)| cycles.saturating_sub(sources * slope))
        .max()?;
    Some((base, slope))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_are_known_by_their_interrupts() {
        for (channel, name) in [
            ("TIMER1A", "TIMER1_COMPA"),
            ("TIMER3C", "TIMER3_COMPC"),
            ("TIMER0", "TIMER0_COMP"),
        ] {
            assert_eq!(channel_vector(channel), name);
            assert!(vector(name).is_some(), "{name}");
        }
        assert_eq!(vector(&channel_vector("TIMER1A")), Some(12));
        assert_eq!(vector(&channel_vector("")), None);
    }

    #[test]
    fn a_line_lies_above_all_points() {
        assert_eq!(line_above(&[(1, 40), (2, 52), (3, 64)]), Some((28, 12)));
        // The second source costs more than the third.
        assert_eq!(line_above(&[(1, 40), (2, 54), (3, 66)]), Some((26, 14)));
        assert_eq!(line_above(&[(1, 40), (2, 50), (3, 64)]), Some((26, 14)));
        assert_eq!(line_above(&[(1, 40)]), None);
    }

    #[test]
    fn the_worst_of_all_channels_counts() {
        let mut worst = Worst::default();
        worst.add("c.strict.lazy", Some("TIMER1A"), "request_served", 53);
        worst.add("c.strict.lazy", Some("TIMER3A"), "request_served", 59);
        worst.add("c.strict.lazy", Some("TIMER1A"), "request_served", 50);
        worst.add("c.off", None, "request_served", 26);
        assert_eq!(worst.any["c.strict.lazy"]["request_served"], 59);
        assert_eq!(
            worst.by_channel["TIMER1A"]["c.strict.lazy"]["request_served"],
            53
        );
        assert_eq!(worst.any["c.off"]["request_served"], 26);
        assert_eq!(worst.by_channel.len(), 2);
    }
}
