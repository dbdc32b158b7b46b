// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tunes a system file, from its text to the text with limits.

use crate::check::{has_flow_deadlines, keeps_deadlines};
use toml_edit::{DocumentMut, Item, TableLike, Value};
use weir_boards::Flavour;
use weir_model::{
    Diagnostics, Expiry, Hardware, Limit, LinuxBoundError, Place, Policy, System,
    parse_to_be_limited, with_hardware,
};

use crate::tune::band::{Band, Percent, SAME, WHOLE};
use crate::tune::explain::{Conflict, Remedy, explain};
use crate::tune::plan::LimitPlan;
use crate::tune::platform::Platform;
use crate::tune::probe::ask;
use crate::tune::search::{
    Progress, TuningSolution, alternatives, is_feasible, judge, last, search,
};
use crate::tune::task::{Options, TuningTask};
use crate::tune::write::{
    write_back, write_burst, write_expected, write_flavour, write_in_hardware, write_priority_of,
};

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
    only_shared: bool,
    missing_costs: Vec<String>,
}

/// The reason why a file has nothing to tune.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idleness {
    /// No source states an expected or a tolerated rate.
    NoRate,
    /// Each source that does says `policy = "off"`.
    AllOff,
    /// The file does not state what limiters cost.
    NoCosts,
    /// No timer can limit the sources that state one.
    NoTimer,
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
    /// The worth of the limits that the file had, at the share of the tolerated rates that they let
    /// through; none if a tuned source has none, or if they do not keep every deadline.
    pub before: Option<TuningSolution>,
    /// The bursts of the file with which there were no limits, and what they are now.
    pub lowered: Vec<LoweredBurst>,
}

/// A burst that the file states and that had to be lowered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoweredBurst {
    /// Index in [`System::sources`].
    pub source: usize,
    /// The burst in the file.
    pub stated: u32,
    /// The burst that was chosen.
    pub burst: u32,
}

/// Reads a file, with all the work that its limits have to leave time for. They may let through
/// less than its flows bring: those that are chosen do not ([`Band::at_least`]).
fn read(name: &str, text: &str) -> Result<System, SessionError> {
    Ok(parse_to_be_limited(name, text)?.with_kernel_work()?)
}

/// Why a file cannot be tuned.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum SessionError {
    /// The file is wrong, or what it asks for no limit can give.
    #[error(transparent)]
    #[diagnostic(transparent)]
    File(#[from] Diagnostics),
    /// A deadline on Linux has no bound, whatever the limits are.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Linux(#[from] LinuxBoundError),
}

/// The flavour of a port whose limits may all have channels of their own.
pub const OTHER_FLAVOUR: Flavour = Flavour::C;

/// The most rounds of a search. Each starts from the result of the one before; none was seen to
/// need more than three.
pub(crate) const MOST_ROUNDS: usize = 4;

impl Session {
    /// Reads the text of the file called `name`.
    ///
    /// # Errors
    /// Those of [`weir_model::parse`], a deadline without a bound on Linux, and what no search
    /// would find a limit for: a source that is tuned and can have none at its priority, or
    /// tolerates less than its flows bring.
    pub fn new(name: &str, text: &str, options: Options) -> Result<Self, SessionError> {
        let system = read(name, text)?;
        let mut keep = stated_off(text, &system);
        let answers = ask(text, &system, &keep);
        keep.extend(&answers.out_of_reach);
        let session = Self {
            platform: answers.platform,
            out_of_reach: answers.out_of_reach,
            only_shared: answers.only_shared,
            missing_costs: answers.missing_costs,
            name: name.to_owned(),
            text: text.to_owned(),
            system,
            options,
            keep,
        };
        let software = |of: &usize| {
            let source = session.system.sources.get(*of);
            source.is_some_and(|source| source.limit.place == Place::Software)
        };
        let tuned = session.task().tuned;
        let limited: Vec<usize> = tuned.iter().map(|of| of.source).filter(software).collect();
        let tuned: Vec<usize> = tuned.iter().map(|of| of.source).collect();
        let check = |hardware: &Hardware<'_>| -> Result<(), Diagnostics> {
            hardware.check_priorities(name, &limited)?;
            hardware.check_rates(name, &session.system, &tuned)
        };
        with_hardware(text, check).transpose()?;
        Ok(session)
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

    /// Must all limits share one timer? The port's flavour limits one source, or some that share a
    /// timer, and several are to be limited.
    #[must_use]
    pub fn only_shared(&self) -> bool {
        self.only_shared
    }

    /// What the file has to add before the limiters are tried that it does not state the costs of.
    #[must_use]
    pub fn missing_costs(&self) -> &[String] {
        &self.missing_costs
    }

    /// Why no source is tuned; none: some are.
    #[must_use]
    pub fn idleness(&self) -> Option<Idleness> {
        let has_band = |source: usize| {
            let of = self.system.sources.get(source);
            of.is_some_and(|of| Band::new(&of.rates, 0.0).is_some())
        };
        let sources = 0..self.system.sources.len();
        let stated: Vec<usize> = sources.filter(|&source| has_band(source)).collect();
        if !self.task().tuned.is_empty() {
            None
        } else if stated.is_empty() {
            Some(Idleness::NoRate)
        } else if !stated.iter().any(|of| self.out_of_reach.contains(of)) {
            Some(Idleness::AllOff)
        } else if !self.missing_costs.is_empty() {
            Some(Idleness::NoCosts)
        } else {
            Some(Idleness::NoTimer)
        }
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

    /// The best limits; none if there are none with which every deadline holds. A burst that the
    /// file states is lowered only if there are no limits with it, and only as far as it has to be.
    pub fn tune(&self, progress: Progress) -> Option<Outcome> {
        let as_stated = self.tune_as_stated(progress);
        if as_stated.is_some() {
            return as_stated;
        }
        let stated = self.stated_bursts();
        let bursts = self.highest_bursts(&stated)?;
        let outcome = self.with_bursts(&bursts)?.tune_as_stated(progress)?;
        let lowered = stated.iter().zip(&bursts);
        Some(Outcome {
            before: None,
            lowered: lowered
                .filter(|(stated, now)| stated != now)
                .map(|(&(source, stated), &(_, burst))| LoweredBurst {
                    source,
                    stated,
                    burst,
                })
                .collect(),
            ..outcome
        })
    }

    /// The sources whose burst the file states and the search does not choose, each with its burst:
    /// buckets, and limits in hardware.
    fn stated_bursts(&self) -> Vec<(usize, u32)> {
        let tuned = self.task().tuned;
        let limit = |source: usize| Some(&self.system.sources.get(source)?.limit);
        tuned
            .iter()
            .filter_map(|of| Some((of.source, limit(of.source)?)))
            .filter(|(_, limit)| limit.policy == Policy::Bucket || limit.place == Place::Hardware)
            .map(|(source, limit)| (source, limit.burst))
            .filter(|&(_, burst)| burst > 1)
            .collect()
    }

    /// The same session with other bursts; none: the file cannot have them.
    fn with_bursts(&self, bursts: &[(usize, u32)]) -> Option<Self> {
        let mut text = self.text.clone();
        for &(source, burst) in bursts {
            let name = &self.system.sources.get(source)?.name;
            text = write_burst(&text, name, burst).ok()?;
        }
        Self::new(&self.name, &text, self.options.clone()).ok()
    }

    /// The highest bursts up to `stated` with which there are limits: the same cap for all, then
    /// each as high as it can be, in the file's order. None: there are no such bursts.
    fn highest_bursts(&self, stated: &[(usize, u32)]) -> Option<Vec<(usize, u32)>> {
        let holds = |bursts: &[(usize, u32)]| {
            self.with_bursts(bursts)
                .is_some_and(|session| session.is_feasible())
        };
        let most = stated.iter().map(|&(_, burst)| burst).max()?;
        let capped = |cap: u32| -> Vec<(usize, u32)> {
            let all = stated.iter();
            all.map(|&(source, burst)| (source, burst.min(cap)))
                .collect()
        };
        let lowest = self.lowest_cap(stated)?;
        // A lower burst helps every deadline but those of packets, which wait longer for the limit.
        let cap = if has_flow_deadlines(&self.system) {
            let mut caps = (lowest..=most).rev();
            caps.find(|&cap| holds(&capped(cap)))?
        } else {
            last(lowest, most, |cap| holds(&capped(cap)))?
        };
        let mut bursts = capped(cap);
        for (index, &(_, most)) in stated.iter().enumerate() {
            let with = |burst: u32| {
                let mut bursts = bursts.clone();
                if let Some((_, of)) = bursts.get_mut(index) {
                    *of = burst;
                }
                bursts
            };
            let highest = last(cap.min(most), most, |burst| holds(&with(burst)))?;
            bursts = with(highest);
        }
        Some(bursts)
    }

    /// The lowest burst that the file may state for all of `stated`.
    fn lowest_cap(&self, stated: &[(usize, u32)]) -> Option<u32> {
        (1..=2).find(|&cap| {
            let capped = stated.iter().map(|&(source, of)| (source, of.min(cap)));
            self.with_bursts(&capped.collect::<Vec<_>>()).is_some()
        })
    }

    fn is_feasible(&self) -> bool {
        self.with_task(is_feasible)
    }

    /// What `work` gives for the task, with only such plans as the file can state.
    fn with_task<T>(&self, work: impl FnOnce(&TuningTask<'_>) -> T) -> T {
        let accepts = |plan: &LimitPlan| self.read_back(plan).is_some();
        work(&TuningTask {
            accepts: Some(&accepts),
            ..self.task()
        })
    }

    /// The best limits with the bursts that the file states.
    fn tune_as_stated(&self, progress: Progress) -> Option<Outcome> {
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
        Some(Outcome {
            alternatives: self.with_task(|task| alternatives(task, &found)),
            before: current(&self.task()),
            system: tuned.system,
            text,
            found,
            lowered: Vec::new(),
        })
    }

    /// The same session with another text, on the same processor.
    fn again(&self, text: &str) -> Option<Self> {
        Some(Self {
            name: self.name.clone(),
            text: text.to_owned(),
            system: read(&self.name, text).ok()?,
            platform: self.platform.clone(),
            options: self.options.clone(),
            keep: self.keep.clone(),
            out_of_reach: self.out_of_reach.clone(),
            only_shared: self.only_shared,
            missing_costs: self.missing_costs.clone(),
        })
    }

    fn round(&self, progress: Progress) -> Option<(TuningSolution, String)> {
        let found = self.with_task(|task| search(task, progress))?;
        let text = self.read_back(&found.plan)?;
        Some((found, text))
    }

    /// The file with the limits of the plan, if it can be read and means what was planned.
    fn read_back(&self, plan: &LimitPlan) -> Option<String> {
        let text = write_back(&self.text, &self.system, &self.platform, plan).ok()?;
        let read = read(&self.name, &text).ok()?;
        let planned = plan.apply(&self.system, &self.platform);
        // The plan knows nothing of the alarms of groups at rest.
        let holds = read.timers == planned.timers || keeps_deadlines(&read);
        (holds && are_alike(&read, &planned)).then_some(text)
    }

    /// Explains which demands cannot be kept together, if there are no limits. Bursts that the file
    /// states are taken as low as they can be.
    #[must_use]
    pub fn explain(&self) -> Conflict {
        let stated = self.stated_bursts();
        let lowest = self.lowest_cap(&stated).and_then(|cap| {
            let capped = stated.iter().map(|&(source, of)| (source, of.min(cap)));
            self.with_bursts(&capped.collect::<Vec<_>>())
        });
        lowest.as_ref().unwrap_or(self).explain_as_stated()
    }

    fn explain_as_stated(&self) -> Conflict {
        let is_enough = |remedy: Remedy| {
            self.with(remedy)
                .is_some_and(|session| session.is_feasible())
        };
        self.with_task(|task| explain(task, &self.keep, &is_enough))
    }

    /// The same session with what `remedy` changes in the file. None: the file cannot have it, or
    /// it is no change of a source.
    fn with(&self, remedy: Remedy) -> Option<Self> {
        let source = |index: usize| self.system.sources.get(index);
        let text = match remedy {
            Remedy::Expected(index, hertz) => {
                write_expected(&self.text, &source(index)?.name, hertz)
            }
            Remedy::PriorityOf(index) => {
                let task = self.task();
                let names = task.tuned.iter().filter_map(|of| source(of.source));
                let names: Vec<&str> = names.map(|of| of.name.as_str()).collect();
                write_priority_of(&self.text, &source(index)?.name, &names)
            }
            Remedy::InHardware(index) => {
                let of = source(index)?;
                // Silicon rounds intervals up: if any that it has lies in the band, then the next
                // after the shortest does.
                let most = Band::new(&of.rates, self.options.over_admission)?.most(WHOLE);
                let interval = Band::shortest(most, 1, self.system.cpu.clock_hz);
                write_in_hardware(&self.text, &of.name, interval)
            }
            Remedy::OtherFlavour if self.only_shared => {
                write_flavour(&self.text, OTHER_FLAVOUR.name())
            }
            _ => return None,
        };
        Self::new(&self.name, &text.ok()?, self.options.clone()).ok()
    }
}

/// The limits of the file at the largest scale that they serve.
fn current(task: &TuningTask) -> Option<TuningSolution> {
    let plan = task.current()?;
    let clock = task.system.cpu.clock_hz;
    let serves = |scale: Percent| {
        task.tuned.iter().all(|tuned| {
            let effective = plan.effective(tuned.source, clock);
            effective.is_some_and(|hertz| hertz >= tuned.band.asked(scale) * (1.0 - SAME))
        })
    };
    let scale = if task.is_scaled() {
        (1..=WHOLE).rev().find(|&scale| serves(scale))?
    } else {
        WHOLE
    };
    judge(task, plan, scale)
}

/// The number of timers that clear sources.
fn clearing(system: &System) -> usize {
    let timers = system.timers.iter();
    timers.filter(|timer| !system.is_alarm(timer)).count()
}

/// Do limits mean the same, and cost no more? The plan takes a group for as large as it may be.
fn means(read: &Limit, planned: &Limit) -> bool {
    let same = Limit {
        costs: planned.costs,
        ..read.clone()
    };
    let (read, most) = (read.costs, planned.costs);
    same == *planned
        && read.request_served <= most.request_served
        && read.request_refused <= most.request_refused
        && read.expiry_served <= most.expiry_served
        && read.expiry_empty <= most.expiry_empty
}

/// Do the limits of both systems mean the same? The order of timers does not matter.
fn are_alike(a: &System, b: &System) -> bool {
    a.sources.len() == b.sources.len()
        && clearing(a) == clearing(b)
        && a.sources.iter().zip(&b.sources).all(|(of_a, of_b)| {
            match (&of_a.limit.expiry, &of_b.limit.expiry) {
                (Some(Expiry::Shared(timer_a)), Some(Expiry::Shared(timer_b))) => {
                    let mut limit = of_a.limit.clone();
                    limit.expiry = Some(Expiry::Shared(*timer_b));
                    a.timers.get(*timer_a) == b.timers.get(*timer_b) && means(&limit, &of_b.limit)
                }
                _ => means(&of_a.limit, &of_b.limit),
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
