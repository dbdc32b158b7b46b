// SPDX-License-Identifier: MIT OR Apache-2.0
//! `weir-load ask`
use std::net::SocketAddr;

use miette::IntoDiagnostic;
use weir_report::plural;
use weir_report::terminal::print_answer;

use crate::ask::Questions;
use crate::bound::Time;
use crate::commands::shown;
use crate::payload;
use crate::place::ThreadOptions;

/// Ask a server that answers, one question after the other, and measure the latency of its answers
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// The address of the server: 10.0.0.2:5000 or [fd00::2]:5000
    to: SocketAddr,

    /// Use a TCP connection instead of UDP
    #[arg(long)]
    tcp: bool,

    /// The length of a question and of its answer in bytes
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(payload::HEADER as i64..=payload::LONGEST as i64))]
    size: u32,

    /// The number of questions; as many as the time allows if not given
    #[arg(long)]
    count: Option<u64>,

    /// The longest time that all questions take, at most 10 minutes
    #[arg(long = "for", value_name = "TIME", default_value = "1s")]
    time: Time,

    #[command(flatten)]
    thread: ThreadOptions,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  weir-load receive 5000 --tcp --answer &
  weir-load ask 127.0.0.1:5000 --tcp --count 10000
  weir-load ask [fd00::2]:5000 --size 1000 --for 5s --json

A datagram that is not answered within a second counts as lost.";

/// Executes the command.
///
/// # Errors
/// Fails if [`Questions::run`] fails, or if the thread cannot have its CPU or its policy.
pub fn execute(arguments: &Args) -> miette::Result<()> {
    arguments.thread.apply().into_diagnostic()?;
    let questions = Questions {
        to: arguments.to,
        stream: arguments.tcp,
        size: arguments.size as usize,
        count: arguments.count,
        time: arguments.time,
    };
    let answers = questions.run().into_diagnostic()?;
    print_answer(&answers, arguments.json, || {
        format!(
            "{} in {:.3} s, {} answered, {} lost; latency {} at the median, {} at 99 %, at most {}",
            plural(answers.asked, "question"),
            answers.seconds,
            answers.answered,
            answers.lost,
            shown(answers.latency.p50),
            shown(answers.latency.p99),
            shown(answers.latency.max)
        )
    })
}
