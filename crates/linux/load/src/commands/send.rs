// SPDX-License-Identifier: MIT OR Apache-2.0
//! `weir-load send`
use std::net::SocketAddr;

use miette::IntoDiagnostic;
use weir_arrivals::Pattern;
use weir_report::plural;
use weir_report::terminal::print_answer;

use crate::bound::Time;
use crate::commands::shown;
use crate::payload;
use crate::place::ThreadOptions;
use crate::send::{CLOCK_HZ, Flood};

/// Flood an address of this machine or of a private network
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// The address to flood: 10.0.0.2:5000 or [fd00::2]:5000
    to: SocketAddr,

    /// The times at which messages are sent: 20kHz, poisson:20kHz, bursts:16:gap=20us:period=25ms,
    /// trace:file.csv
    #[arg(long, default_value = "1kHz", value_parser = pattern)]
    pattern: Pattern,

    /// The seed of random patterns
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Use a TCP connection instead of UDP
    #[arg(long)]
    tcp: bool,

    /// Send as much as the connection takes, without a pattern
    #[arg(long, requires = "tcp", conflicts_with = "pattern")]
    fast: bool,

    /// The length of a message in bytes
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(payload::HEADER as i64..=payload::LONGEST as i64))]
    size: u32,

    /// The sender's own address and port
    #[arg(long, value_name = "ADDRESS", conflicts_with = "tcp")]
    from: Option<SocketAddr>,

    /// The number of this sender in its messages; each of several needs its own
    #[arg(long, default_value_t = 0)]
    flow: u32,

    /// The time after which the flood ends, at most 10 minutes
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
  weir-load send 127.0.0.1:5000 --pattern 20kHz --for 5s
  weir-load send 10.0.0.2:5000 --pattern mmpp:20kHz:burst=5000:gap=100ms --cpu 0 --json
  weir-load send [::1]:5000 --tcp --pattern poisson:1kHz --size 1400
  weir-load send 10.0.0.2:5000 --tcp --fast --size 65000 --for 5s";

fn pattern(text: &str) -> Result<Pattern, String> {
    Pattern::parse(text, CLOCK_HZ).map_err(|error| error.to_string())
}

/// Executes the command.
///
/// # Errors
/// Fails if [`Flood::run`] fails, or if the thread cannot have its CPU or its policy.
pub fn execute(arguments: &Args) -> miette::Result<()> {
    arguments.thread.apply().into_diagnostic()?;
    let flood = Flood {
        to: arguments.to,
        from: arguments.from,
        stream: arguments.tcp,
        pattern: (!arguments.fast).then(|| arguments.pattern.clone()),
        seed: arguments.seed,
        size: arguments.size as usize,
        flow: arguments.flow,
        time: arguments.time,
    };
    let sent = flood.run().into_diagnostic()?;
    print_answer(&sent, arguments.json, || {
        format!(
            "{} of {} in {:.3} s; {} refused, {} not sent in time; at most {} behind",
            plural(sent.packets, "message"),
            plural(arguments.size.into(), "byte"),
            sent.seconds,
            sent.refused,
            sent.late,
            shown(sent.behind)
        )
    })
}
