// SPDX-License-Identifier: MIT OR Apache-2.0
//! The draft of a system file that `weir linux inspect` writes. It describes the machine's
//! interfaces, and the processes that receive from them.
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::Write as _;

use serde::Serialize;

use crate::receivers::{PacketKey, SocketReader};
use crate::urgency::Urgency;

/// Longest name that a system file allows, in bytes.
const NAME_MOST: usize = 64;

/// A network interface of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DraftInterface {
    /// Name of the interface.
    pub name: String,
    /// Number of receive queues.
    pub queues: usize,
    /// The kernel threads that receive the interface's packets, each with its scheduling policy, as
    /// text.
    pub threads: Vec<String>,
    /// Indices of the receivers that the interface's packets can reach.
    pub receivers: Vec<usize>,
}

/// Processes that become one receiver, since they have the same program, user, control group and
/// urgency.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Group<'a> {
    command: &'a str,
    user: Option<u32>,
    cgroup: &'a str,
    urgency: Urgency,
}

/// Writes a system file that [`weir_model::parse`] accepts. `machine` becomes the name of the
/// system.
#[must_use]
pub fn draft(machine: &str, interfaces: &[DraftInterface], receivers: &[SocketReader]) -> String {
    let mut text = String::from(BEGINNING);
    line(&mut text, &format!("name = {}", quoted(machine)));
    text.push_str(PROCESSOR);
    let mut names = Names::default();
    let sources: Vec<String> = interfaces
        .iter()
        .enumerate()
        .map(|(order, interface)| source(&mut text, interface, order, &mut names))
        .collect();
    let mut groups: BTreeMap<Group<'_>, BTreeSet<usize>> = BTreeMap::new();
    for (index, receiver) in receivers.iter().enumerate() {
        let group = Group {
            command: &receiver.comm,
            user: receiver.user,
            cgroup: &receiver.cgroup,
            urgency: receiver.urgency,
        };
        groups.entry(group).or_default().insert(index);
    }
    let mut flows = String::new();
    // The most urgent are first.
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(group, _)| std::cmp::Reverse(group.urgency));
    for (group, members) in groups {
        let mut to = String::new();
        let name = names.unique(group.command, "receiver");
        for (interface, source) in interfaces.iter().zip(&sources) {
            let keys: BTreeSet<PacketKey> = interface
                .receivers
                .iter()
                .filter(|index| members.contains(index))
                .filter_map(|&index| receivers.get(index))
                .flat_map(|receiver| receiver.keys.iter().copied())
                .collect();
            for key in keys {
                flow(&mut to, source, &name, key, &mut names);
            }
        }
        if to.is_empty() {
            continue;
        }
        receiver(&mut text, &name, &group, members.len());
        flows.push_str(&to);
    }
    text.push_str(&flows);
    text
}

const BEGINNING: &str = "\
# Drafted by `weir linux inspect`. Urgencies are those of the processes as they ran; costs are guesses until they are measured.
schema = 1
";

const PROCESSOR: &str = "
[cpu]
# Cycles are nanoseconds here.
clock = \"1000MHz\"
interrupts = \"flat\"
longest_instruction = \"100ns\"
context_switch = \"2us\"
costs = { off = { request_served = \"2us\" } }

[linux]
mode = \"native\"
";

/// Writes the source that stands for an interface, and returns the source's name.
fn source(
    text: &mut String,
    interface: &DraftInterface,
    order: usize,
    names: &mut Names,
) -> String {
    let name = names.unique(&interface.name, "interface");
    let queues = match interface.queues {
        1 => "1 receive queue".to_owned(),
        queues => format!("{queues} receive queues"),
    };
    line(
        text,
        &format!("\n# {queues}; {}", threads(&interface.threads)),
    );
    line(text, "[[source]]");
    line(text, &format!("name = {}", quoted(&name)));
    line(
        text,
        &format!(
            "vector = {{ name = {}, order = {} }}",
            quoted(&name),
            order + 1
        ),
    );
    line(text, "handler = \"2us\"");
    line(text, &format!("interface = {}", quoted(&interface.name)));
    name
}

fn threads(threads: &[String]) -> String {
    if threads.is_empty() {
        "no thread takes its packets yet".to_owned()
    } else {
        threads.join(", ")
    }
}

fn receiver(text: &mut String, name: &str, group: &Group<'_>, processes: usize) {
    if processes > 1 {
        line(text, &format!("\n# {processes} processes"));
    } else {
        text.push('\n');
    }
    line(text, "[[receiver]]");
    line(text, &format!("name = {}", quoted(name)));
    line(text, &format!("urgency = {}", group.urgency));
    let mut matches = Vec::new();
    if is_path(group.cgroup) {
        matches.push(format!("cgroup = {}", quoted(group.cgroup)));
    }
    if let Some(user) = group.user {
        // The name of a program is only used together with a user, since any process can give
        // itself any name.
        if is_text(group.command) {
            matches.push(format!("command = {}", quoted(group.command)));
        }
        matches.push(format!("user = {}", quoted(&name_of(user))));
    }
    if !matches.is_empty() {
        line(text, &format!("match = {{ {} }}", matches.join(", ")));
    }
}

/// Name of a user, or the user's number if there is no name.
fn name_of(user: u32) -> String {
    let known = nix::unistd::User::from_uid(user.into()).ok().flatten();
    known.map_or_else(|| user.to_string(), |known| known.name)
}

fn flow(text: &mut String, source: &str, receiver: &str, key: PacketKey, names: &mut Names) {
    let name = names.unique(&format!("{receiver}-{}-{}", key.protocol, key.port), "flow");
    line(text, "\n[[flow]]");
    line(text, &format!("name = {}", quoted(&name)));
    line(text, &format!("source = {}", quoted(source)));
    line(text, &format!("receiver = {}", quoted(receiver)));
    line(
        text,
        &format!(
            "selector = {{ protocol = \"{}\", port = {} }}",
            key.protocol, key.port
        ),
    );
    line(text, "top_half = \"2us\"");
    line(text, "bottom_half = \"5us\"");
}

fn line(text: &mut String, line: &str) {
    // Writing to a string does not fail.
    let _ = writeln!(text, "{line}");
}

/// Quotes `text` as a string of TOML.
fn quoted(text: &str) -> String {
    toml_edit::Value::from(text).to_string()
}

/// Whether a system file accepts `text` as a string: it is not empty and has no control characters.
fn is_text(text: &str) -> bool {
    !text.trim().is_empty() && !text.chars().any(char::is_control)
}

/// Whether `cgroup` is a valid path other than the root, which would match every process.
fn is_path(cgroup: &str) -> bool {
    let mut steps = cgroup
        .strip_prefix('/')
        .into_iter()
        .flat_map(|rest| rest.split('/'));
    is_text(cgroup) && cgroup.starts_with('/') && steps.all(|step| !matches!(step, "" | "." | ".."))
}

/// The names that are already in use.
#[derive(Debug, Default)]
struct Names(HashSet<String>);

impl Names {
    /// Finds a valid name for a system file that is not in use. It is as similar to `wanted` as
    /// possible, or to `otherwise` if no character of `wanted` is valid.
    fn unique(&mut self, wanted: &str, otherwise: &str) -> String {
        let plain = |c: char| {
            if c.is_ascii_alphanumeric() || c == '_' {
                c
            } else {
                '-'
            }
        };
        let plain: String = wanted.chars().map(plain).collect();
        let plain = plain.trim_matches('-');
        let mut name = if plain.is_empty() { otherwise } else { plain }.to_owned();
        if name.starts_with(|c: char| c.is_ascii_digit()) {
            name.insert(0, '_');
        }
        // This leaves room for a number.
        name.truncate(NAME_MOST - 8);
        let mut number = 1;
        let mut unique = name.clone();
        while !self.0.insert(unique.clone()) {
            number += 1;
            unique = format!("{name}-{number}");
        }
        unique
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::receivers::Protocol;
    use crate::system::Node;

    fn receiver(comm: &str, cgroup: &str, urgency: u8, keys: &[(Protocol, u16)]) -> SocketReader {
        SocketReader {
            pid: 7,
            start: 1,
            user: Some(0),
            comm: comm.into(),
            cgroup: cgroup.into(),
            urgency: Urgency::new(urgency).unwrap(),
            keys: keys
                .iter()
                .map(|&(protocol, port)| PacketKey { protocol, port })
                .collect(),
            namespaces: BTreeSet::from([1]),
            only_loopback: false,
        }
    }

    fn eth0(receivers: Vec<usize>) -> DraftInterface {
        DraftInterface {
            name: "eth0".to_owned(),
            queues: 1,
            threads: Vec::new(),
            receivers,
        }
    }

    fn node(text: &str) -> Node {
        let system = weir_model::parse("draft.toml", text)
            .unwrap_or_else(|error| panic!("{error:?}\n{text}"));
        Node::new(&system, None).unwrap()
    }

    #[test]
    fn the_draft_has_the_receivers_by_urgency_with_their_ports() {
        let receivers = [
            receiver(
                "sshd",
                "/system.slice/ssh.service",
                0,
                &[(Protocol::Tcp, 22)],
            ),
            receiver(
                "plc",
                "/plant",
                60,
                &[(Protocol::Tcp, 502), (Protocol::Udp, 502)],
            ),
            // This is another process of the same group.
            receiver(
                "sshd",
                "/system.slice/ssh.service",
                0,
                &[(Protocol::Tcp, 2222)],
            ),
            receiver("elsewhere", "/", 10, &[(Protocol::Udp, 53)]),
        ];
        let node = node(&draft("a machine", &[eth0(vec![0, 1, 2])], &receivers));
        assert_eq!(node.name, "a machine");
        let shown: Vec<_> = node
            .receivers
            .iter()
            .map(|receiver| {
                (
                    receiver.name.as_str(),
                    receiver.urgency.get(),
                    receiver.ports.len(),
                    receiver.cgroup.as_deref(),
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                ("plc", 60, 2, Some("/plant")),
                ("sshd", 0, 2, Some("/system.slice/ssh.service"))
            ]
        );
        assert_eq!(node.interfaces[0].receivers, [0, 1]);
    }

    #[test]
    fn what_nobody_can_write_is_left_out() {
        let receivers = [
            receiver("a\nb", "", 3, &[(Protocol::Udp, 1)]),
            receiver("\u{7}", "/a//b", 2, &[(Protocol::Udp, 1)]),
        ];
        let found = [
            eth0(vec![0, 1]),
            DraftInterface {
                name: "a.b".to_owned(),
                ..eth0(vec![0])
            },
        ];
        let node = node(&draft("x", &found, &receivers));
        assert!(
            node.receivers
                .iter()
                .all(|receiver| receiver.command.is_none() && receiver.cgroup.is_none())
        );
        assert_eq!(node.interfaces.len(), 2);
        assert_eq!(
            (
                node.receivers[0].name.as_str(),
                node.receivers[1].name.as_str()
            ),
            ("a-b-2", "receiver")
        );
    }

    proptest! {
        #[test]
        fn every_draft_is_a_system_file(
            all in prop::collection::vec(("\\PC{0,15}", "(/[a-z.\\PC]{0,6}){0,4}", 0..=99_u8, 1..=65535_u16), 0..6)
        ) {
            let receivers: Vec<SocketReader> = all
                .iter()
                .map(|(comm, cgroup, urgency, port)| receiver(comm, cgroup, *urgency, &[(Protocol::Tcp, *port), (Protocol::Udp, 53)]))
                .collect();
            let found = eth0((0..receivers.len()).collect());
            let node = node(&draft("machine", &[found], &receivers));
            prop_assert!(node.receivers.len() <= receivers.len());
        }
    }
}
