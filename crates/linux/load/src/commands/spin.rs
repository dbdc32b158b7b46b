// SPDX-License-Identifier: MIT OR Apache-2.0
//! `weir-load spin`
use miette::IntoDiagnostic;
use weir_report::plural;
use weir_report::terminal::print_answer;

use crate::bound::Time;
use crate::commands::shown;
use crate::place::ThreadOptions;
use crate::spin::Jobs;

/// Work like a CPU-bound process, once or every period, and measure how much longer it takes than
/// alone
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// The time of a job that nothing disturbs
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    work: Time,

    /// The undisturbed rounds of work per second, as an earlier run printed them; measured first if
    /// not given
    #[arg(long, value_name = "ROUNDS")]
    speed: Option<f64>,

    /// The time from one job's release to the next one's; each job begins when the one before has
    /// ended if not given
    #[arg(long, value_name = "TIME")]
    period: Option<Time>,

    /// The deadline of a job, from its release; its period if not given
    #[arg(long, value_name = "TIME")]
    deadline: Option<Time>,

    /// The number of jobs; as many as the time allows if not given
    #[arg(long, value_name = "COUNT")]
    jobs: Option<u64>,

    /// The longest time that all jobs take, at most 10 minutes
    #[arg(long = "for", value_name = "TIME", default_value = "10s")]
    time: Time,

    #[command(flatten)]
    thread: ThreadOptions,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  weir-load spin --work 500ms --jobs 1
  weir-load spin --work 95ms --period 100ms --jobs 30 --policy fifo:50 --cpu 1
  weir-load spin --work 10ms --for 2s --speed 3.1e8 --json

The speed is measured before the first job. If something disturbs the machine by then, measure it \
earlier and give it with --speed.";

/// Executes the command.
///
/// # Errors
/// Fails if [`Jobs::run`] fails, or if the thread cannot have its CPU or its policy.
pub fn execute(arguments: &Args) -> miette::Result<()> {
    arguments.thread.apply().into_diagnostic()?;
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
            "{} of {}{ratio}; deadlines missed: {}; response {} at most; speed {:.6e}",
            plural(spun.finished, "job"),
            shown(arguments.work.nanoseconds()),
            spun.missed,
            shown(spun.response.max),
            spun.speed
        )
    })
}
