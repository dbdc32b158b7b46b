// SPDX-License-Identifier: GPL-3.0-or-later
//! The firmware to measure: each limiter in the experiment's file, with the limit that is attacked
//! and the interrupts that are observed.
use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use super::adversary::AttackedLimit;
use super::events::InterruptWatch;
use crate::experiment::bench::{free_register, vector};
use crate::experiment::error::ExperimentError;
use crate::experiment::setup::FlavourSources;
use weir_emulate::line::Line;

/// The limiters to measure, and the number of attacks.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::experiment::kinds::constants) struct WorstSpec {
    /// The length of the handler's body in cycles. It is not a cost of the limiter.
    pub body: u64,
    /// The number of attacks on each firmware that are in step with its interval. As many random
    /// attacks follow, each as long as the experiment's run.
    pub attacks: u64,
    /// Additional source files, by the firmware's name `FLAVOUR.NAME`.
    pub firmware: BTreeMap<String, FlavourSources>,
    /// Limiters of a single line.
    pub limited: Vec<LimitedSpec>,
    /// Lines without a limiter: an ordinary handler, or a timer that polls the line.
    pub plain: Vec<PlainSpec>,
    /// Limiters of several lines that share a timer.
    pub shared: Vec<SharedSpec>,
}

/// A limiter to measure. Its firmware is compiled with NODE_POLICY, NODE_TIMING, NODE_CHANNEL and
/// the other parameters of limited.c.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::experiment::kinds::constants) struct LimitedSpec {
    /// The id `FLAVOUR.POLICY.TIMING` of the costs. If several entries have the same id, their
    /// worst counts.
    pub id: Spanned<String>,
    /// The name of the firmware, as in `firmware`.
    pub of: String,
    /// The compare channels to measure with.
    pub channels: Vec<String>,
    /// The timer's prescaler: cycles per tick.
    pub prescaler: u64,
    /// The interval in ticks.
    pub interval: u64,
    pub burst: u64,
    /// The limit's lag in ticks.
    #[serde(default)]
    pub lag: u64,
    /// The number N of the limited line INTN. INT0 is reserved for the interrupt that delays the
    /// limiter's.
    #[serde(default = "usual_line")]
    pub line: u8,
}

fn usual_line() -> u8 {
    6
}

/// A line without a limiter.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::experiment::kinds::constants) struct PlainSpec {
    /// The cost's id `FLAVOUR.POLICY`.
    pub id: Spanned<String>,
    /// The name of the firmware, as in `firmware`.
    pub of: String,
    /// The interval, in cycles, that the attacks are in step with.
    pub interval: u64,
}

/// Limiters of several sources that share a timer. The firmware is compiled with NODE_SOURCES and
/// NODE_CHANNEL.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::experiment::kinds::constants) struct SharedSpec {
    /// The id `FLAVOUR.POLICY` of the costs.
    pub id: Spanned<String>,
    /// The name of the firmware, as in `firmware`.
    pub of: String,
    /// The compare channels to measure with.
    pub channels: Vec<String>,
    /// The largest number of sources, at least 2. Each number from 1 to this one is measured, on
    /// the lines from INT0 on.
    pub most_sources: u64,
    /// The interval, in cycles, that the attacks are in step with.
    pub interval: u64,
    pub burst: u64,
}

/// One firmware under attack.
#[derive(Debug)]
pub(super) struct Subject {
    pub id: String,
    pub of: String,
    /// The compare channel. `None` if the firmware has no choice of channels.
    pub channel: Option<String>,
    pub defines: Vec<String>,
    pub lines: Vec<Line>,
    pub watch: InterruptWatch,
    pub limit: AttackedLimit,
    /// The number of sources on the shared timer. `None` if the timer is not shared.
    pub sources: Option<u64>,
}

impl WorstSpec {
    /// All firmware to measure: each limiter with each channel, or with each number of sources.
    ///
    /// # Errors
    /// Returns an error if an id names no limiter, if the chip lacks a channel, or if an interval
    /// leaves no room for an attack.
    pub(super) fn subjects(&self) -> Result<Vec<Subject>, ExperimentError> {
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
                limit: AttackedLimit::alone(one.interval, 1),
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
                        limit: AttackedLimit::alone(one.interval, one.burst),
                        sources: Some(sources),
                    });
                }
            }
        }
        for subject in &subjects {
            subject
                .limit
                .check()
                .map_err(|what| ExperimentError::Evaluation(format!("`{}`: {what}", subject.id)))?;
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
        // Reject INT0, which is the line of the blocking interrupt.
        let line = Line::from_number(usize::from(one.line))
            .filter(|line| *line != Line::INT0)
            .ok_or_else(|| {
                ExperimentError::Evaluation(format!(
                    "`{id}`: INT{} is no line that can be limited here; write `line = 1` to 7",
                    one.line
                ))
            })?;
        let interval = one.interval.saturating_mul(one.prescaler);
        let work = interval / 2;
        let bits = if is_8_bit(channel) { 8 } else { 16 };
        let constant = |name: &str| format!("WEIR_LIMIT_{}", name.to_ascii_uppercase());
        Ok(Subject {
            id: id.clone(),
            of: one.of.clone(),
            channel: Some(channel.to_owned()),
            defines: vec![
                format!("NODE_MARK={}", free_register(channel).0),
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
            limit: AttackedLimit {
                interval,
                burst: one.burst,
                // Add a part of the interrupt's entry and exit, so that the next blocking request
                // comes before this interrupt ends.
                block: work + 20,
                wrap: (1_u64 << bits).saturating_mul(one.prescaler),
            },
            sources: None,
        })
    }

    fn watch(
        &self,
        id: &str,
        lines: &[Line],
        channel: &str,
    ) -> Result<InterruptWatch, ExperimentError> {
        let unknown = |name: String| {
            ExperimentError::Evaluation(format!(
                "`{id}` needs the interrupt {name}, which the chip does not have"
            ))
        };
        let number = |name: String| vector(&name).ok_or_else(|| unknown(name));
        Ok(InterruptWatch {
            lines: lines
                .iter()
                .map(|line| number(line.to_string()))
                .collect::<Result<_, _>>()?,
            timer: number(channel_vector(channel))?,
            mark: free_register(channel).1,
            body: self.body,
        })
    }
}

fn is_8_bit(channel: &str) -> bool {
    matches!(channel, "TIMER0" | "TIMER2")
}

/// The data sheet's name of a channel's interrupt, such as TIMER1_COMPA for TIMER1A.
fn channel_vector(channel: &str) -> String {
    let (timer, compare) = channel
        .split_at_checked("TIMER1".len())
        .unwrap_or((channel, ""));
    format!("{timer}_COMP{compare}")
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
}
