// SPDX-License-Identifier: GPL-3.0-or-later
//! Carries out many runs in parallel.
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

/// Pins each worker thread, and so the emulator that it starts, to a processor of its own. The
/// threads of QEMU alternate, and do so a quarter faster on one processor than on two. Call this
/// before the first run.
pub fn place_threads() {
    let this = Pid::from_raw(0);
    let Ok(allowed) = sched_getaffinity(this) else {
        return;
    };
    let processors: Vec<usize> = (0..CpuSet::count())
        .filter(|&processor| allowed.is_set(processor) == Ok(true))
        .collect();
    // Pin no thread if a quota allows fewer processors than the affinity mask: the processors are
    // then shared with other programs.
    if std::thread::available_parallelism().is_ok_and(|usable| usable.get() < processors.len()) {
        return;
    }
    let own = move |thread: usize| {
        let mut set = CpuSet::new();
        let processor = processors[thread % processors.len()];
        // Ignore an error: a thread that is not pinned is only slower.
        let _ = set
            .set(processor)
            .and_then(|()| sched_setaffinity(this, &set));
    };
    // Ignore an error: a caller may have built the global pool already, and that pool will do.
    let _ = rayon::ThreadPoolBuilder::new()
        .start_handler(own)
        .build_global();
}

/// A run together with the key of its result.
#[derive(Debug)]
pub(super) struct BatchRun<K> {
    pub key: K,
    /// The firmware's name, for messages.
    pub firmware: String,
    pub spec: RunSpec,
}

/// The interval between two progress lines if stderr is not a terminal.
const LINE_EVERY: Duration = Duration::from_secs(60);

/// Shows the progress of `runs` runs on stderr: a bar on a terminal, otherwise a line per minute.
pub(super) fn bar(runs: u64) -> ProgressBar {
    let write = move |state: &ProgressState, out: &mut dyn Write| {
        // Ignore an error: progress is only informative.
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

/// Prints a progress line at intervals until the runs have ended.
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

/// The text of a progress line: how many runs have ended, and an estimate of the time left from
/// their mean duration. The library's own estimate follows the latest runs, and jumps to years
/// where a run takes a minute.
fn line(done: u64, all: u64, elapsed: Duration) -> String {
    let left = elapsed.as_secs() * all.saturating_sub(done);
    // There is no estimate before the first run has ended.
    let left = match left.checked_div(done) {
        Some(left) => format!(", {} left", HumanDuration(Duration::from_secs(left))),
        None => String::new(),
    };
    format!("{} %, {done} of {all} runs{left}", 100 * done / all.max(1))
}

/// Carries out all runs on all processors, and shows their progress on stderr. The first failure
/// stops the batch.
pub(super) fn run_all<K: Ord + Send>(
    jobs: Vec<BatchRun<K>>,
) -> Result<BTreeMap<K, RunResult>, ExperimentError> {
    run_each(jobs, |_, result| result)
}

/// Does the same as [`run_all`], but keeps only what `digest` extracts from each result, because
/// traces are long.
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

/// Carries out one run of the firmware with this name.
pub(super) fn run_one(firmware: &str, spec: &RunSpec) -> Result<RunResult, ExperimentError> {
    run(spec).map_err(|cause| ExperimentError::Run {
        firmware: firmware.to_owned(),
        cause: Box::new(cause),
    })
}

/// Executes `one` for each job, on all processors. The first failure stops the batch.
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
