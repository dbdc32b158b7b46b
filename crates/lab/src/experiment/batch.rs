// SPDX-License-Identifier: GPL-3.0-or-later
//! Many runs in parallel.
use std::collections::BTreeMap;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use rayon::prelude::*;

use super::error::ExperimentError;
use weir_board::run::{RunResult, RunSpec, run};

/// One run, with the key of its result.
#[derive(Debug)]
pub(super) struct BatchRun<K> {
    pub key: K,
    /// The firmware's name, for messages.
    pub firmware: String,
    pub spec: RunSpec,
}

/// A progress bar on stderr for this number of runs, if stderr is a terminal.
pub(super) fn bar(runs: u64) -> ProgressBar {
    let style =
        ProgressStyle::with_template("{bar:40} {percent:>3} %, {pos} of {len} runs, {eta} left")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::new(runs).with_style(style);
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// Carries out all runs on all processors, with a progress bar on stderr if it is a terminal. The
/// first failure ends the batch.
pub(super) fn run_all<K: Ord + Send>(
    jobs: Vec<BatchRun<K>>,
) -> Result<BTreeMap<K, RunResult>, ExperimentError> {
    run_each(jobs, |_, result| result)
}

/// Like [`run_all`], but keeps only what `digest` extracts from each result: a trace is long.
pub(super) fn run_each<K: Ord + Send, T: Send>(
    jobs: Vec<BatchRun<K>>,
    digest: impl Fn(&K, RunResult) -> T + Sync,
) -> Result<BTreeMap<K, T>, ExperimentError> {
    carry_out(jobs, |job| {
        let result = run_one(&job.firmware, &job.spec)?;
        let digested = digest(&job.key, result);
        Ok((job.key, digested))
    })
}

/// Carries out one run of the firmware of this name.
pub(super) fn run_one(firmware: &str, spec: &RunSpec) -> Result<RunResult, ExperimentError> {
    run(spec).map_err(|cause| ExperimentError::Run {
        firmware: firmware.to_owned(),
        cause: Box::new(cause),
    })
}

/// Executes `one` for each job, on all processors. The first failure ends the batch.
pub(super) fn carry_out<J: Send, K: Ord + Send, T: Send>(
    jobs: Vec<J>,
    one: impl Fn(J) -> Result<(K, T), ExperimentError> + Sync,
) -> Result<BTreeMap<K, T>, ExperimentError> {
    let bar = bar(jobs.len() as u64);
    let results = jobs
        .into_par_iter()
        .map(|job| one(job).inspect(|_| bar.inc(1)))
        .collect();
    bar.finish_and_clear();
    results
}
