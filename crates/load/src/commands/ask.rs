// SPDX-License-Identifier: MIT OR Apache-2.0
//! `weir-load ask`
use std::net::SocketAddr;

use miette::IntoDiagnostic;
use weir_report::terminal::print_answer;

use crate::ask::Questions;
use crate::bound::Time;
use crate::commands::shown;
use crate::payload;
use crate::place::ThreadPlace;

/// Ask a server that answers, one question after the other, and say how long each answer takes
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// Where to: 10.0.0.2:5000 or [fd00::2]:5000
    to: SocketAddr,

    /// A TCP connection in place of UDP
    #[arg(long)]
    tcp: bool,

    /// Bytes of a question, and of its answer
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(payload::HEADER as i64..=payload::LONGEST as i64))]
    size: u32,

    /// How many; as many as the time allows if not given
    #[arg(long)]
    count: Option<u64>,

    /// For how long at most; 10 minutes at most
    #[arg(long = "for", value_name = "TIME", default_value = "1s")]
    time: Time,

    #[command(flatten)]
    place: ThreadPlace,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  weir-load receive 5000 --tcp --answer &
  weir-load ask 127.0.0.1:5000 --tcp --count 10000
  weir-load ask [fd00::2]:5000 --size 1000 --for 5s --json

A datagram that is not answered within a second is lost.";

/// Carries the command out.
///
/// # Errors
/// What [`Questions::run`] refuses, a place that cannot be had.
pub fn execute(arguments: &Args) -> miette::Result<()> {
    arguments.place.take().into_diagnostic()?;
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
            "{} questions in {:.3} s, {} answered, {} lost; latency {} at the median, {} at 99 %, at most {}",
            answers.asked,
            answers.seconds,
            answers.answered,
            answers.lost,
            shown(answers.latency.p50),
            shown(answers.latency.p99),
            shown(answers.latency.max)
        )
    })
}
