// SPDX-License-Identifier: MIT OR Apache-2.0
//! `weir-load spin`
use miette::IntoDiagnostic;
use weir_report::terminal::print_answer;

use crate::bound::Time;
use crate::commands::shown;
use crate::place::ThreadPlace;
use crate::spin::Jobs;

/// Work like a CPU-bound process, once or every period, and say how much longer than alone it took
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// What a job takes where nothing disturbs it
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    work: Time,

    /// Rounds of work per second where nothing disturbs, as an earlier run has printed it; measured
    /// first if not given
    #[arg(long, value_name = "ROUNDS")]
    speed: Option<f64>,

    /// From one job's release to the next one's; without it each job begins when the one before has
    /// ended
    #[arg(long, value_name = "TIME")]
    period: Option<Time>,

    /// A job's deadline, from its release; its period if not given
    #[arg(long, value_name = "TIME")]
    deadline: Option<Time>,

    /// How many jobs; as many as fit into the time if not given
    #[arg(long, value_name = "COUNT")]
    jobs: Option<u64>,

    /// For how long at most; 10 minutes at most
    #[arg(long = "for", value_name = "TIME", default_value = "10s")]
    time: Time,

    #[command(flatten)]
    place: ThreadPlace,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  weir-load spin --work 500ms --jobs 1
  weir-load spin --work 95ms --period 100ms --jobs 30 --policy fifo:50 --cpu 1
  weir-load spin --work 10ms --for 2s --speed 3.1e8 --json

The speed is measured before the first job. Where something disturbs already, measure it before and
give it with --speed.";

/// Carries the command out.
///
/// # Errors
/// More work than time, a place that cannot be had.
pub fn execute(arguments: &Args) -> miette::Result<()> {
    arguments.place.take().into_diagnostic()?;
    let jobs = Jobs {
        work: arguments.work,
        speed: arguments.speed,
        period: arguments.period,
        deadline: arguments.deadline,
        count: arguments.jobs,
        time: arguments.time,
    };
    let spun = jobs.run().into_diagnostic()?;
    print_answer(&spun, arguments.json, || {
        let ratio = spun.ratio.map_or_else(String::new, |ratio| {
            format!(", {ratio:.4} times as long as alone")
        });
        format!(
            "{} jobs of {}{ratio}; {} missed their deadlines; response {} at most; speed {:.6e}",
            spun.finished,
            shown(arguments.work.nanoseconds()),
            spun.missed,
            shown(spun.response.max),
            spun.speed
        )
    })
}
