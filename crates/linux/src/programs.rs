// SPDX-License-Identifier: MIT OR Apache-2.0
//! The BPF programs that a run attaches besides the XDP programs on its interfaces. They affect all
//! processes of the machine.
use libbpf_rs::ObjectBuilder;
use serde::Serialize;
use weir_model::{Accounting, Predict};

use crate::system::Node;

/// A program that is attached as long as a run lasts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Program {
    /// Name of the program, as in `bpftool prog`.
    #[serde(rename = "program")]
    pub name: String,
    /// Name of the hook to which the program is attached, such as a tracepoint.
    pub place: String,
    /// Whether the program is attached to the root of all control groups. Otherwise it is attached
    /// to an event of the kernel.
    pub root_cgroup: bool,
    /// What the program slows down, and by how much (docs/linux-receivers.md,
    /// docs/linux-accounting.md). `None` if it was not measured.
    pub pays: Option<&'static str>,
}

static FOLLOW: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/follow.bpf.o"));
static ACCOUNT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/account.bpf.o"));
static WAITING: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/waiting.bpf.o"));
static DEMUX: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/demux.bpf.o"));

/// The programs that a run of `node` attaches. Names and places are those in the object files.
///
/// # Errors
/// Fails if the objects cannot be read, which is a defect of Weir.
pub fn attached(node: &Node) -> Result<Vec<Program>, libbpf_rs::Error> {
    let follows = node.loads_programs();
    let facts = node.linux.mode.facts();
    let waits = facts.follows_receivers && node.linux.predict == Predict::Waiting;
    let objects = [
        (FOLLOW, follows),
        (WAITING, waits),
        (DEMUX, facts.demultiplexes),
        (ACCOUNT, node.is_accounting()),
    ];
    let mut attached = Vec::new();
    for (object, _) in objects.into_iter().filter(|(_, is_loaded)| *is_loaded) {
        let object = ObjectBuilder::default().open_memory(object)?;
        for program in object.progs() {
            let name = program.name().to_string_lossy().into_owned();
            let section = program.section().to_string_lossy().into_owned();
            let is_left_out = match name.as_str() {
                "account_delivered" => node.linux.accounting != Some(Accounting::Packets),
                _ => false,
            };
            if !is_left_out {
                attached.extend(describe(name, &section));
            }
        }
    }
    Ok(attached)
}

/// Describes a program by the section of its object file. `None` if the program is attached to an
/// interface, or runs only when Weir calls it.
fn describe(name: String, section: &str) -> Option<Program> {
    let root_cgroup = section.starts_with("cgroup");
    if !root_cgroup && !section.starts_with("tp_btf/") {
        return None;
    }
    let pays = match name.as_str() {
        "follow_egress" => Some("each packet that any process sends, 48 to 80 ns"),
        "follow_bind4" | "follow_bind6" | "follow_release" => {
            Some("each socket that is bound or released, 1 to 13 us")
        }
        "follow_fork" | "follow_exec" | "follow_exit" | "follow_migration" => Some(
            "each process or thread that begins or ends, or is moved, up to 13 us for a receiver's",
        ),
        "account_delivered" => Some("each packet that any socket gets, 150 ns"),
        "account_soft_begins" | "account_soft_ends" => Some("each soft interrupt, 120 to 180 ns"),
        "account_polled" => Some("each poll of a device, 60 ns"),
        "account_handler_begins" | "account_handler_ends" => {
            Some("each interrupt of a device, 0.3 to 1.1 us")
        }
        _ if section.ends_with("/sched_switch") => Some("each switch of a CPU, 93 to 189 ns"),
        _ => None,
    };
    let place = section.split_once('/').map_or(section, |(_, place)| place);
    Some(Program {
        name,
        place: place.to_owned(),
        root_cgroup,
        pays,
    })
}
