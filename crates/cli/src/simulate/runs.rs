// SPDX-License-Identifier: MIT OR Apache-2.0
//! Simulates the system as described, and with Weir disabled.
use miette::IntoDiagnostic;
use weir_model::{Policy, System};
use weir_report::{UnfinishedFile, WriteError};
use weir_sim::trace::PerfettoTrace;
use weir_sim::{Defer, Observer, Options, SimulationEvent, Tally};

use crate::output::Patience;

/// Returns the names of the parts of Weir that are disabled in the second run. Empty if the system
/// uses none.
pub(super) fn parts(system: &System, options: &Options) -> Vec<&'static str> {
    let limits = system
        .sources
        .iter()
        .any(|source| source.limit.policy != Policy::Off);
    let moderation = system
        .sources
        .iter()
        .any(|source| source.moderation.is_some());
    let deferral = options.defer != Defer::Immediate
        && system.flows.iter().any(|flow| flow.bottom_half.cycles > 0);
    [
        (limits, "limits"),
        (moderation, "moderation"),
        (deferral, "deferral"),
    ]
    .into_iter()
    .filter_map(|(is, name)| is.then_some(name))
    .collect()
}

/// Returns the options of the same run with all limits and moderation disabled, and with each
/// bottom half right after its interrupt.
pub(crate) fn without(options: &Options) -> Options {
    Options {
        limits: false,
        moderation: false,
        defer: Defer::Immediate,
        ..options.clone()
    }
}

/// The finished runs and their timeline.
pub(super) struct FinishedRuns {
    pub as_described: Option<Tally>,
    pub without: Option<Tally>,
    /// The complete timeline file, which has not been renamed to its final path yet. `None` if no
    /// timeline was requested.
    pub timeline: Option<UnfinishedFile>,
}

/// The text of the progress bar.
const RUNS: &str = "virtual time goes by";
/// The steps of the progress bar for one run.
const PARTS: u64 = 50;

impl FinishedRuns {
    /// Simulates the runs in parallel: one as described, and, if there are `parts`, one without
    /// them. If `only_without` is true, only the latter is simulated. The timeline is that of the
    /// first run.
    ///
    /// # Errors
    /// Fails if the options cannot be simulated, or if the timeline cannot be written.
    pub fn new(
        system: &System,
        options: &Options,
        only_without: bool,
        parts: &[&str],
        timeline: Option<UnfinishedFile>,
    ) -> miette::Result<Self> {
        let without = without(options);
        if only_without {
            let patience = Patience::new(PARTS);
            patience.begins(RUNS);
            let (tally, timeline) = run(system, &without, &patience, timeline)?;
            return Ok(Self {
                as_described: None,
                without: Some(tally),
                timeline,
            });
        }
        let second = (!parts.is_empty()).then_some(&without);
        let patience = Patience::new(PARTS * if second.is_some() { 2 } else { 1 });
        patience.begins(RUNS);
        let (first, second) = rayon::join(
            || run(system, options, &patience, timeline),
            || second.map(|options| run(system, options, &patience, None)),
        );
        let (tally, timeline) = first?;
        Ok(Self {
            as_described: Some(tally),
            without: second.transpose()?.map(|(tally, _)| tally),
            timeline,
        })
    }
}

/// The observer of a run, which updates the progress bar and writes the timeline.
struct Watch<'a> {
    timeline: Option<PerfettoTrace<UnfinishedFile>>,
    patience: &'a Patience,
    part: u64,
    next: u64,
}

impl Observer for Watch<'_> {
    #[inline]
    fn event(&mut self, at: u64, event: SimulationEvent) {
        if at >= self.next {
            let parts = (at - self.next) / self.part + 1;
            self.patience.advances(parts);
            self.next += parts * self.part;
        }
        self.timeline.event(at, event);
    }
}

fn run(
    system: &System,
    options: &Options,
    patience: &Patience,
    timeline: Option<UnfinishedFile>,
) -> miette::Result<(Tally, Option<UnfinishedFile>)> {
    let part = (options.duration / PARTS).max(1);
    let path = timeline.as_ref().map(|file| file.target().to_owned());
    let mut watch = Watch {
        timeline: timeline.map(|file| PerfettoTrace::new(file, system)),
        patience,
        part,
        next: part,
    };
    let tally = weir_sim::simulate_observed(system, options, &mut watch).into_diagnostic()?;
    let timeline = watch.timeline.map(|trace| {
        trace.finish(options.duration).map_err(|cause| WriteError {
            path: path.unwrap_or_default(),
            cause,
        })
    });
    Ok((tally, timeline.transpose().into_diagnostic()?))
}
