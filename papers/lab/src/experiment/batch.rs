// SPDX-License-Identifier: GPL-3.0-or-later
//! Many runs in parallel.
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::thread;
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle, WeakProgressBar};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use rayon::prelude::*;

use super::error::ExperimentError;
use weir_emulate::run::{RunResult, RunSpec, run};

/// Keeps each thread of the runs on a processor of its own, and with it the emulator that it
/// starts: QEMU's threads take turns, and do so a quarter faster on one processor than on two.
/// To be called before the first run.
pub fn place_threads() {
    let this = Pid::from_raw(0);
    let Ok(allowed) = sched_getaffinity(this) else {
        return;
    };
    let processors: Vec<usize> = (0..CpuSet::count())
        .filter(|&processor| allowed.is_set(processor) == Ok(true))
        .collect();
    // Where fewer may be used than are allowed, others use them, too.
    if std::thread::available_parallelism().is_ok_and(|usable| usable.get() < processors.len()) {
        return;
    }
    let own = move |thread: usize| {
        let mut set = CpuSet::new();
        let processor = processors[thread % processors.len()];
        // A thread without a processor of its own is slower, and no more.
        let _ = set
            .set(processor)
            .and_then(|()| sched_setaffinity(this, &set));
    };
    // There is no such pool yet; one that a caller has made is as good.
    let _ = rayon::ThreadPoolBuilder::new()
        .start_handler(own)
        .build_global();
}

/// One run, with the key of its result.
#[derive(Debug)]
pub(super) struct BatchRun<K> {
    pub key: K,
    /// The firmware's name, for messages.
    pub firmware: String,
    pub spec: RunSpec,
}

/// Time between two lines that say how far the runs are, where stderr is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(60);

/// The progress of this number of runs on stderr: a bar on a terminal, elsewhere a line each
/// minute.
pub(super) fn bar(runs: u64) -> ProgressBar {
    let write = move |state: &ProgressState, out: &mut dyn Write| {
        // What cannot be written is not shown.
        let _ = write!(out, "{}", line(state.pos(), runs, state.elapsed()));
    };
    let style = ProgressStyle::with_template("{bar:30} {runs}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .with_key("runs", write);
    let bar = ProgressBar::new(runs).with_style(style);
    if io::stderr().is_terminal() {
        bar.enable_steady_tick(Duration::from_millis(200));
    } else {
        let shown = bar.downgrade();
        thread::spawn(move || print_lines(&shown, runs));
    }
    bar
}

/// Prints the progress now and then, until the runs are over.
fn print_lines(of: &WeakProgressBar, runs: u64) {
    loop {
        thread::sleep(LINE_EVERY);
        match of.upgrade() {
            Some(bar) if !bar.is_finished() => {
                eprintln!("{}", line(bar.position(), runs, bar.elapsed()));
            }
            _ => return,
        }
    }
}

/// Says how far the runs are, and how long the others will take by the mean of those that are over.
/// The library's own guess follows the last runs: where a run takes a minute, it jumps to years.
fn line(done: u64, all: u64, elapsed: Duration) -> String {
    let left = elapsed.as_secs() * all.saturating_sub(done);
    // Before the first run is over, nobody knows.
    let left = match left.checked_div(done) {
        Some(left) => format!(", {} left", HumanDuration(Duration::from_secs(left))),
        None => String::new(),
    };
    format!("{} %, {done} of {all} runs{left}", 100 * done / all.max(1))
}

/// Carries out all runs on all processors, with their progress on stderr. The first failure ends
/// the batch.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_many_runs_are_over() {
        let after = |minutes: u64, done| line(done, 165, Duration::from_secs(60 * minutes));
        assert_eq!(after(1, 0), "0 %, 0 of 165 runs");
        assert_eq!(after(14, 70), "42 %, 70 of 165 runs, 19 minutes left");
        assert_eq!(after(33, 165), "100 %, 165 of 165 runs, 0 seconds left");
    }
}
