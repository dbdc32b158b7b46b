// SPDX-License-Identifier: MIT OR Apache-2.0
//! `weir linux inspect` drafts a system file from the machine as it runs.
use std::path::PathBuf;

use clap::ValueHint;
use miette::IntoDiagnostic as _;
use serde_json::json;
use weir_report::terminal::{Outcome, print, print_json};
use weir_report::{Outputs, write_all};

use super::able_to_see;
use crate::draft::{DraftInterface, draft};
use crate::machine::Capability;
use crate::receivers::{self, Reach, RuleSet, SocketReader};
use crate::settings::NetDevice;
use crate::threads::{self, Work};
use crate::{machine, sched};

/// Draft a system file from this machine: its interfaces, and the processes that receive from them
#[derive(Debug, clap::Args)]
#[command(after_long_help = AFTER)]
pub(super) struct Args {
    /// Write the draft to this file in place of the terminal
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,

    /// Replace the file if it is there
    #[arg(long)]
    force: bool,

    /// Print what was found as JSON, the draft with it
    #[arg(long)]
    json: bool,
}

const AFTER: &str = "\
Examples:
  weir linux inspect -o node.toml
  weir linux plan node.toml

It needs CAP_BPF and CAP_PERFMON, and the first process namespace, to see who receives what; \
nothing is changed. Each process has the urgency of its most urgent thread. The costs in the \
draft are guesses.";

/// Executes the command.
///
/// # Errors
/// Fails when the receivers cannot be found, or when the file cannot be written.
pub(super) fn execute(arguments: &Args) -> miette::Result<Outcome> {
    let place = arguments.output.as_deref().map(|path| {
        let mut outputs = Outputs::new(arguments.force);
        outputs.file(path, None)
    });
    let place = place.transpose()?;
    able_to_see(
        "which processes receive packets, and from which interfaces",
        &[Capability::Bpf, Capability::Perfmon],
        "run it as root: sudo weir linux inspect",
    )?;
    let receivers = receivers::inspect(RuleSet::default()).into_diagnostic()?;
    let mut found = Vec::new();
    for name in machine::interfaces().into_diagnostic()? {
        if let Some(interface) = interface(&name, &receivers)? {
            found.push(interface);
        }
    }
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").into_diagnostic()?;
    let system = host.trim();
    let draft = draft(system, &found, &receivers);
    if let Some(place) = place {
        write_all([(place, draft.as_bytes())]).into_diagnostic()?;
    }
    if arguments.json {
        print_json(&json!({
            "schema": 1,
            "system": system,
            "interfaces": found,
            "receivers": receivers,
            "draft": draft,
        }))?;
    } else if arguments.output.is_none() {
        print(draft.trim_end())?;
    }
    Ok(Outcome::Good)
}

/// Examines an interface. `None` for the loopback interface, which has no card, and for interfaces
/// that are down.
fn interface(name: &str, receivers: &[SocketReader]) -> miette::Result<Option<DraftInterface>> {
    let failed = |error| miette::miette!("the interface `{name}` cannot be examined: {error}");
    // The interface is looked up through `NetDevice`, since /sys may show another network
    // namespace.
    let interface = NetDevice::find(name, None).map_err(failed)?;
    let open = interface.open().map_err(failed)?;
    let reach = Reach::for_interface(&interface).map_err(failed)?;
    if reach.loopback || !open.is_up().map_err(failed)? {
        return Ok(None);
    }
    let takes = |receiver: &SocketReader| {
        !receiver.only_loopback
            && reach
                .namespace
                .is_none_or(|namespace| receiver.namespaces.contains(&namespace))
    };
    let mut threads = Vec::new();
    let of_interface =
        |work: &Work| matches!(work, Work::Napi { interface, .. } if interface == name);
    for thread in threads::which(of_interface).into_diagnostic()? {
        // A thread that has ended meanwhile has no policy and is left out.
        if let Ok(policy) = sched::get(thread.thread.tid) {
            threads.push(format!("{} ({policy})", thread.work));
        }
    }
    let queues = open.list("queues").map_err(failed)?;
    Ok(Some(DraftInterface {
        name: name.to_owned(),
        queues: queues
            .iter()
            .filter(|queue| queue.starts_with("rx-"))
            .count(),
        threads,
        receivers: receivers
            .iter()
            .enumerate()
            .filter(|(_, receiver)| takes(receiver))
            .map(|(index, _)| index)
            .collect(),
    }))
}
