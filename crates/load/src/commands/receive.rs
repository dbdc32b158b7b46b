// SPDX-License-Identifier: MIT OR Apache-2.0
//! `weir-load receive`
use std::net::SocketAddr;

use miette::IntoDiagnostic;
use weir_report::terminal::print_answer;

use crate::bound::Time;
use crate::clock::Stamps;
use crate::commands::shown;
use crate::place::ThreadPlace;
use crate::receive::{Listen, PortTraffic};

/// Count what comes, what is lost on the way, and how old it is
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// Where: a port of all IPv4 addresses, or an address as [::]:5000; several are served by one
    /// thread
    #[arg(required = true, value_name = "PORT", value_parser = address)]
    at: Vec<SocketAddr>,

    /// TCP in place of UDP
    #[arg(long)]
    tcp: bool,

    /// Send each message back to whoever has sent it, one by one
    #[arg(long, conflicts_with = "batch")]
    answer: bool,

    /// Messages taken with one system call
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u8).range(1..=64))]
    batch: u8,

    /// Bytes of the socket's buffer, as the system counts them
    #[arg(long, value_name = "BYTES")]
    buffer: Option<u32>,

    /// The clock of the sender's stamps
    #[arg(long, value_enum, default_value_t)]
    stamps: Stamps,

    /// For how long, at most 10 minutes
    #[arg(long = "for", value_name = "TIME", default_value = "10s")]
    time: Time,

    /// End after so many messages
    #[arg(long)]
    count: Option<u64>,

    #[command(flatten)]
    place: ThreadPlace,

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

Prints `ready` to its standard error when packets are received, and its result when the time is over
or after SIGINT or SIGTERM.";

fn address(text: &str) -> Result<SocketAddr, String> {
    match text.parse::<u16>() {
        Ok(0) => Err("port 0 is none: give a number from 1 to 65535".to_owned()),
        Ok(port) => Ok(SocketAddr::from(([0, 0, 0, 0], port))),
        Err(_) => text.parse().map_err(|_| {
            format!(
                "`{text}` is no port (5000) and no address with one (127.0.0.1:5000, [::]:5000)"
            )
        }),
    }
}

/// Carries the command out.
///
/// # Errors
/// An address that cannot be listened at, a place that cannot be had.
pub fn execute(arguments: &Args) -> miette::Result<()> {
    arguments.place.take().into_diagnostic()?;
    let listen = Listen {
        at: arguments.at.clone(),
        stream: arguments.tcp,
        answer: arguments.answer,
        batch: arguments.batch.into(),
        buffer: arguments.buffer,
        stamps: arguments.stamps,
        time: arguments.time,
        count: arguments.count,
    };
    let received = listen.run(|| eprintln!("ready")).into_diagnostic()?;
    print_answer(&received, arguments.json, || {
        let lines: Vec<String> = received.ports.iter().map(line).collect();
        lines.join("\n")
    })
}

fn line(port: &PortTraffic) -> String {
    let lost: u64 = port.flows.iter().map(|flow| flow.lost).sum();
    format!(
        "{}: {} messages, {lost} lost, {} from others; latency {} at the median, {} at 99 %, at most {}",
        port.at,
        port.packets,
        port.foreign,
        shown(port.latency.p50),
        shown(port.latency.p99),
        shown(port.latency.max)
    )
}
