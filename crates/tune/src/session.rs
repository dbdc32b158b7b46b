// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tunes a system file, from its text to the text with limits.

use toml_edit::{DocumentMut, Item, TableLike, Value};
use weir_model::{Diagnostics, Expiry, Policy, System, parse};

use crate::band::Band;
use crate::explain::{Conflict, explain};
use crate::plan::LimitPlan;
use crate::platform::Platform;
use crate::probe::ask;
use crate::search::{Progress, TuningSolution, alternatives, judge, search};
use crate::task::{Options, TuningTask};
use crate::write::write_back;

/// A system file to be tuned.
#[derive(Debug)]
pub struct Session {
    name: String,
    text: String,
    system: System,
    platform: Platform,
    options: Options,
    keep: Vec<usize>,
    out_of_reach: Vec<usize>,
}

/// A tuned file.
#[derive(Debug)]
pub struct Outcome {
    /// The text; the one that was read if nothing is better.
    pub text: String,
    /// The system that the text describes.
    pub system: System,
    /// The limits that were chosen. Indices of timers are those of the system before.
    pub found: TuningSolution,
    /// Other choices that hold at the same scale, with the chosen one among them.
    pub alternatives: Vec<TuningSolution>,
    /// The worth of the limits that the file had; none if a tuned source has none, or if they do
    /// not keep every deadline.
    pub before: Option<TuningSolution>,
}

/// The most rounds of a search. Each starts from the result of the one before; none was seen to
/// need more than two.
const MOST_ROUNDS: usize = 4;

impl Session {
    /// Reads the text of the file called `name`.
    ///
    /// # Errors
    /// Those of [`weir_model::parse`].
    pub fn new(name: &str, text: &str, options: Options) -> Result<Self, Diagnostics> {
        let system = parse(name, text)?;
        let answers = ask(text, &system);
        let mut keep = stated_off(text, &system);
        keep.extend(&answers.out_of_reach);
        Ok(Self {
            platform: answers.platform,
            out_of_reach: answers.out_of_reach,
            name: name.to_owned(),
            text: text.to_owned(),
            system,
            options,
            keep,
        })
    }

    /// The system of the file.
    #[must_use]
    pub fn system(&self) -> &System {
        &self.system
    }

    /// The timers that the system can use.
    #[must_use]
    pub fn platform(&self) -> &Platform {
        &self.platform
    }

    /// The sources that state a band and can have no limit, as indices in [`System::sources`]: the
    /// port does not limit their interrupts.
    pub fn out_of_reach(&self) -> impl Iterator<Item = usize> + '_ {
        self.out_of_reach.iter().copied().filter(|&source| {
            self.system.sources.get(source).is_some_and(|of| {
                of.limit.policy == Policy::Off && Band::new(&of.rates, 0.0).is_some()
            })
        })
    }

    /// The task: what is tuned, and within which bounds.
    #[must_use]
    pub fn task(&self) -> TuningTask<'_> {
        TuningTask::new(
            &self.system,
            &self.platform,
            self.options.clone(),
            &self.keep,
        )
    }

    /// The best limits; none if there are none with which every deadline holds.
    pub fn tune(&self, progress: Progress) -> Option<Outcome> {
        let (mut found, mut text) = self.round(progress)?;
        let mut tuned = self.again(&text)?;
        // The written policies narrow the next search. The search ends when tuning the file again
        // changes nothing.
        for _ in 1..MOST_ROUNDS {
            let (next, next_text) = tuned.round(&|_, _| ())?;
            let is_end = next_text == text;
            (found, text) = (next, next_text);
            tuned = self.again(&text)?;
            if is_end {
                break;
            }
        }
        let task = self.task();
        Some(Outcome {
            alternatives: alternatives(&task, &found),
            before: LimitPlan::current(&task)
                .and_then(|plan| judge(&task, plan, found.measure.scale_percent)),
            system: tuned.system,
            text,
            found,
        })
    }

    /// The same session with another text, on the same processor.
    fn again(&self, text: &str) -> Option<Self> {
        Some(Self {
            name: self.name.clone(),
            text: text.to_owned(),
            system: parse(&self.name, text).ok()?,
            platform: self.platform.clone(),
            options: self.options.clone(),
            keep: self.keep.clone(),
            out_of_reach: self.out_of_reach.clone(),
        })
    }

    fn round(&self, progress: Progress) -> Option<(TuningSolution, String)> {
        let accepts = |plan: &LimitPlan| self.read_back(plan).is_some();
        let task = TuningTask {
            accepts: Some(&accepts),
            ..self.task()
        };
        let found = search(&task, progress)?;
        let text = self.read_back(&found.plan)?;
        Some((found, text))
    }

    /// The file with the limits of the plan, if it can be read and means what was planned.
    fn read_back(&self, plan: &LimitPlan) -> Option<String> {
        let text = write_back(&self.text, &self.system, &self.platform, plan).ok()?;
        let read = parse(&self.name, &text).ok()?;
        let planned = plan.apply(&self.system, &self.platform);
        are_alike(&read, &planned).then_some(text)
    }

    /// Explains which demands cannot be kept together, if there are no limits.
    #[must_use]
    pub fn explain(&self) -> Conflict {
        let accepts = |plan: &LimitPlan| self.read_back(plan).is_some();
        let task = TuningTask {
            accepts: Some(&accepts),
            ..self.task()
        };
        explain(&task, &self.keep)
    }
}

/// Do the limits of both systems mean the same? The order of timers does not matter.
fn are_alike(a: &System, b: &System) -> bool {
    a.sources.len() == b.sources.len()
        && a.timers.len() == b.timers.len()
        && a.sources.iter().zip(&b.sources).all(|(of_a, of_b)| {
            match (&of_a.limit.expiry, &of_b.limit.expiry) {
                (Some(Expiry::Shared(timer_a)), Some(Expiry::Shared(timer_b))) => {
                    let mut limit = of_a.limit.clone();
                    limit.expiry = Some(Expiry::Shared(*timer_b));
                    a.timers.get(*timer_a) == b.timers.get(*timer_b) && limit == of_b.limit
                }
                _ => of_a.limit == of_b.limit,
            }
        })
}

/// The sources whose limit the file turns off by `policy = "off"`.
fn stated_off(text: &str, system: &System) -> Vec<usize> {
    let Ok(document) = text.parse::<DocumentMut>() else {
        return Vec::new();
    };
    let name_if_off = |source: &dyn TableLike| {
        let policy = source.get("limit")?.as_table_like()?.get("policy")?;
        (policy.as_str() == Some("off")).then(|| source.get("name")?.as_str().map(str::to_owned))?
    };
    let names: Vec<String> = match document.get("source") {
        Some(Item::ArrayOfTables(tables)) => tables
            .iter()
            .filter_map(|table| name_if_off(table))
            .collect(),
        Some(Item::Value(Value::Array(array))) => array
            .iter()
            .filter_map(Value::as_inline_table)
            .filter_map(|table| name_if_off(table))
            .collect(),
        _ => Vec::new(),
    };
    system
        .sources
        .iter()
        .enumerate()
        .filter(|(_, source)| names.contains(&source.name))
        .map(|(index, _)| index)
        .collect()
}
