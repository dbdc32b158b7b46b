// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors in a system file that do not depend on the machine, as long as it runs Linux.
use crate::exact::LONGEST_QUEUE;
use crate::predicted;
use crate::urgency::{TooUrgent, Urgency};
use weir_model::LinuxContradiction;

/// Reason why a system file cannot be used on any machine with Linux.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
pub enum NotForLinux {
    /// No source has an interface, and no account is asked for.
    #[error("no source of the system `{name}` is a network interface of Linux")]
    #[diagnostic(help(
        "add `interface = \"eth0\"` to a [[source]]; `weir linux inspect` drafts a system file of this machine. To keep an account and no more, add `accounting = \"packets\"` to [linux], in the mode `native`"
    ))]
    NoInterface {
        /// Name of the system.
        name: String,
    },
    /// The section `[linux]` contradicts itself.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Contradiction(#[from] LinuxContradiction),
    /// There are more interfaces than mode predicted supports.
    #[error("the mode `predicted` serves {DEVICES} interfaces at most, and the system `{name}` has {found}", DEVICES = predicted::DEVICES)]
    #[diagnostic(help("leave some out, or take the mode `native`"))]
    Interfaces {
        /// Name of the system.
        name: String,
        /// Number of interfaces in the system.
        found: usize,
    },
    /// The queues of a class are longer in total than the kernel allows.
    #[error(
        "in the mode `exact` the flows to receivers of urgency {urgency} share one queue, and their `queue`s add up to {found} packets; the kernel allows {LONGEST_QUEUE}"
    )]
    #[diagnostic(help("make `queue` of these flows shorter"))]
    Queue {
        /// Urgency of the class.
        urgency: Urgency,
        /// Sum of the class's queues, in packets.
        found: u64,
    },
    /// A flow is restricted to packets from some addresses.
    #[error(
        "the flow `{flow}` has only packets from {address}, and `weir linux` ignores addresses: all packets for its port would get the urgency of its receiver"
    )]
    #[diagnostic(help(
        "leave `address` out of its selector if that is meant; else let a firewall drop what comes from elsewhere, or give that a port of its own"
    ))]
    Address {
        /// Name of the flow.
        flow: String,
        /// Address or network that the flow's packets come from.
        address: String,
    },
    /// This machine does not have the user.
    #[error(
        "the receiver `{name}` belongs to the user `{user}`, and this machine has no such user"
    )]
    #[diagnostic(help(
        "write the name of a user as `id -un` prints it for the program, or a number"
    ))]
    User {
        /// Name of the receiver.
        name: String,
        /// Name of the user.
        user: String,
    },
    /// A receiver is more urgent than Linux allows.
    #[error("the receiver `{name}` has {cause}")]
    TooUrgent {
        /// Name of the receiver.
        name: String,
        /// The reason.
        cause: TooUrgent,
    },
}
