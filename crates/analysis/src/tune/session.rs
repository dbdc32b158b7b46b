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
    /// Each source that states such a rate also states `policy = "off"`.
    AllOff,
    /// The file does not state what limiters cost.
    NoCosts,
    /// No timer can limit the sources that state such a rate.
    NoTimer,
}

/// The result of tuning a file.
#[derive(Debug)]
pub struct Outcome {
    /// The tuned text; the unchanged text if no better limits exist.
    pub text: String,
    /// The system that the text describes.
    pub system: System,
    /// The limits that were chosen. Indices of timers are those of the system before tuning.
    pub found: TuningSolution,
    /// All choices of the same scale that were compared; the chosen one is among them.
    pub alternatives: Vec<TuningSolution>,
    /// The limits that the file had before tuning, judged at the share of the tolerated rates that
    /// they let through. `None` if a tuned source has no limit, or if they do not keep every
    /// deadline.
    pub before: Option<TuningSolution>,
    /// The bursts that had to be lowered because the stated bursts leave no feasible limits.
    pub lowered: Vec<LoweredBurst>,
}

/// A burst that the file states and that tuning had to lower.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoweredBurst {
    /// Index in [`System::sources`].
    pub source: usize,
    /// The burst that the file states, in requests.
    pub stated: u32,
    /// The burst that was chosen, in requests.
    pub burst: u32,
}

/// Reads a file, with the kernel's work that its limits have to leave time for. The limits of the
/// file may let through less than its flows bring; tuning only chooses limits that do not
/// ([`Band::at_least`]).
fn read(name: &str, text: &str) -> Result<System, SessionError> {
    Ok(parse_to_be_limited(name, text)?.with_kernel_work()?)
}

/// Why a file cannot be tuned.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum SessionError {
    /// The file is wrong, or no limit can give what the file asks for.
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

/// The most rounds of a search. Each round starts from the result of the one before. No more than
/// three were ever needed.
pub(crate) const MOST_ROUNDS: usize = 4;

impl Session {
    /// Reads the text of the file called `name`.
    ///
    /// # Errors
    /// Fails as [`weir_model::parse`] does, and if a deadline on Linux has no bound. Also fails if
    /// no search could find a limit: a tuned source can have none at its priority, or it tolerates
    /// less than its flows bring.
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

    /// The sources that state rates but can have no limit, because the port does not limit their
    /// interrupts. The values are indices in [`System::sources`].
    pub fn out_of_reach(&self) -> impl Iterator<Item = usize> + '_ {
        self.out_of_reach.iter().copied().filter(|&source| {
            self.system.sources.get(source).is_some_and(|of| {
                of.limit.policy == Policy::Off && Band::new(&of.rates, 0.0).is_some()
            })
        })
    }

    /// Whether all limits have to share one timer. This is so if several sources are to be limited
    /// and the port's flavour can limit only one source, or several on one shared timer.
    #[must_use]
    pub fn only_shared(&self) -> bool {
        self.only_shared
    }

    /// The costs that the file has to state before the tuner can try further limiters.
    #[must_use]
    pub fn missing_costs(&self) -> &[String] {
        &self.missing_costs
    }

    /// The reason why no source is tuned; `None` if some source is.
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

    /// The tuning task: the sources that are tuned, and their bounds.
    #[must_use]
    pub fn task(&self) -> TuningTask<'_> {
        TuningTask::new(
            &self.system,
            &self.platform,
            self.options.clone(),
            &self.keep,
        )
    }

    /// Finds the best limits; `None` if no limits keep every deadline. A burst that the file states
    /// is lowered only if no limits exist with it, and only as far as necessary.
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

    /// The sources with a burst that the file states and the search does not choose, each with its
    /// burst. These are buckets and limits in hardware.
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

    /// The same session with other bursts; `None` if the file cannot have them.
    fn with_bursts(&self, bursts: &[(usize, u32)]) -> Option<Self> {
        let mut text = self.text.clone();
        for &(source, burst) in bursts {
            let name = &self.system.sources.get(source)?.name;
            text = write_burst(&text, name, burst).ok()?;
        }
        Self::new(&self.name, &text, self.options.clone()).ok()
    }

    /// The highest bursts up to `stated` with which limits exist. One cap for all is found first;
    /// then each burst in the file's order is raised as far as possible. `None` if no such bursts
    /// exist.
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
        // A lower burst helps every deadline except those of packets, which then wait longer for
        // the limit.
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

    /// The lowest cap that the file may state for all bursts of `stated`; `None` if there is none.
    fn lowest_cap(&self, stated: &[(usize, u32)]) -> Option<u32> {
        (1..=2).find(|&cap| {
            let capped = stated.iter().map(|&(source, of)| (source, of.min(cap)));
            self.with_bursts(&capped.collect::<Vec<_>>()).is_some()
        })
    }

    fn is_feasible(&self) -> bool {
        self.with_task(is_feasible)
    }

    /// Runs `work` on the task, which accepts only plans that the file can state.
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
        // The policies that were written narrow the next search. The search ends when tuning the
        // file again changes nothing.
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

    /// The same session with another text for the same processor.
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

    /// The file's text with the limits of the plan; `None` if the text cannot be read back or does
    /// not mean what was planned.
    fn read_back(&self, plan: &LimitPlan) -> Option<String> {
        let text = write_back(&self.text, &self.system, &self.platform, plan).ok()?;
        let read = read(&self.name, &text).ok()?;
        let planned = plan.apply(&self.system, &self.platform);
        // The plan does not include the alarms of groups that are at rest.
        let holds = read.timers == planned.timers || keeps_deadlines(&read);
        (holds && are_alike(&read, &planned)).then_some(text)
    }

    /// Explains which demands cannot be kept together, if there are no feasible limits. The bursts
    /// that the file states are lowered as far as possible for this.
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

    /// The same session with the change `remedy` made in the file. `None` if the file cannot have
    /// the change, or if it does not change a source.
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
                // Silicon rounds intervals up. If any of its intervals lies in the band, the one
                // next above the shortest interval of the band does.
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

/// The limits of the file, judged at the largest scale that they serve.
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

/// The number of timers that clear the counts of sources.
fn clearing(system: &System) -> usize {
    let timers = system.timers.iter();
    timers.filter(|timer| !system.is_alarm(timer)).count()
}

/// Whether the limit as read has the meaning of the planned one and costs no more. It may cost
/// less, because the plan assumes the largest possible group.
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

/// Whether the limits of both systems have the same meaning. The order of timers does not matter.
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
