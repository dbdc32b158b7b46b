// SPDX-License-Identifier: MIT OR Apache-2.0
//! `weir-load receive`
use std::net::SocketAddr;

use miette::IntoDiagnostic;
use weir_report::plural;
use weir_report::terminal::print_answer;

use crate::bound::Time;
use crate::clock::Stamps;
use crate::commands::shown;
use crate::place::ThreadOptions;
use crate::receive::{Listener, ListeningPort};

/// Count the messages that come and those that are lost, and measure their age
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// The addresses: a port means all IPv4 addresses, else an address such as [::]:5000; one
    /// thread serves them all
    #[arg(required = true, value_name = "PORT", value_parser = address)]
    at: Vec<SocketAddr>,

    /// Use TCP instead of UDP
    #[arg(long)]
    tcp: bool,

    /// Send each message back to its sender, one by one
    #[arg(long, conflicts_with = "batch")]
    answer: bool,

    /// The most datagrams that one system call takes
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u8).range(1..=64))]
    batch: u8,

    /// The size of the socket's buffer in bytes, as the system counts them
    #[arg(long, value_name = "BYTES")]
    buffer: Option<u32>,

    /// The clock of the sender's stamps
    #[arg(long, value_enum, default_value_t)]
    stamps: Stamps,

    /// The time after which it ends, at most 10 minutes
    #[arg(long = "for", value_name = "TIME", default_value = "10s")]
    time: Time,

    /// The number of messages after which it ends
    #[arg(long)]
    count: Option<u64>,

    #[command(flatten)]
    thread: ThreadOptions,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  weir-load receive 5000 --for 5s
  weir-load receive 5000 5001 --policy fifo:20 --json
  weir-load receive [::]:5000 --tcp --count 1000
  weir-load receive 5000 --tcp --answer

Prints `ready` to its standard error once it listens, and its result when the time is over or after \
SIGINT or SIGTERM.";

fn address(text: &str) -> Result<SocketAddr, String> {
    match text.parse::<u16>() {
        Ok(0) => Err("there is no port 0: give a number from 1 to 65535".to_owned()),
        Ok(port) => Ok(SocketAddr::from(([0, 0, 0, 0], port))),
        Err(_) => text.parse().map_err(|_| {
            format!(
                "`{text}` is neither a port (5000) nor an address with one (127.0.0.1:5000, [::]:5000)"
            )
        }),
    }
}

/// Executes the command.
///
/// # Errors
/// Fails if [`Listener::run`] fails, or if the thread cannot have its CPU or its policy.
pub fn execute(arguments: &Args) -> miette::Result<()> {
    arguments.thread.apply().into_diagnostic()?;
    let listener = Listener {
        at: arguments.at.clone(),
        stream: arguments.tcp,
        answer: arguments.answer,
        batch: arguments.batch.into(),
        buffer: arguments.buffer,
        stamps: arguments.stamps,
        time: arguments.time,
        count: arguments.count,
    };
    let received = listener.run(|| eprintln!("ready")).into_diagnostic()?;
    print_answer(&received, arguments.json, || {
        let lines: Vec<String> = received.ports.iter().map(line).collect();
        lines.join("\n")
    })
}

fn line(port: &ListeningPort) -> String {
    let lost: u64 = port.flows.iter().map(|flow| flow.lost).sum();
    format!(
        "{}: {}, {lost} lost, {} from other programs; latency {} at the median, {} at 99 %, at most {}",
        port.at,
        plural(port.packets, "message"),
        port.foreign,
        shown(port.latency.p50),
        shown(port.latency.p99),
        shown(port.latency.max)
    )
}
