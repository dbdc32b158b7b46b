// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a system file asks for and no machine has.
use crate::exact::LONGEST_QUEUE;
use crate::predicted;
use crate::urgency::{TooUrgent, Urgency};

/// What a system file cannot ask of any machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
pub enum NotForLinux {
    /// No source has an interface, and no account is asked for.
    #[error("no source of the system `{name}` is a network interface of Linux")]
    #[diagnostic(help(
        "add `interface = \"eth0\"` to a [[source]]; `weir linux inspect` drafts a system file of this machine. To keep an account and no more, add `accounting = \"packets\"` to [linux], in the mode `native`"
    ))]
    NoInterface {
        /// The system.
        name: String,
    },
    /// A cap on threads that follow receivers.
    #[error(
        "the mode `predicted` gives an interface's threads the urgency of a receiver, and `top_half` of the system `{name}` gives them a cap, which has none"
    )]
    #[diagnostic(help(
        "write `top_half = {{ urgency = 40 }}` for the highest urgency that they get, or leave it out; the modes `native` and `exact` take a cap"
    ))]
    CapFollows {
        /// The system.
        name: String,
    },
    /// A timer for the end of a cap that there is not.
    #[error("`cap_timer` of the system `{name}` says how a cap ends, and its top half has none")]
    #[diagnostic(help(
        "write `top_half = {{ runtime = \"500us\", period = \"10ms\" }}` for a cap, or leave `cap_timer` out"
    ))]
    NoCap {
        /// The system.
        name: String,
    },
    /// More interfaces than receivers can be told to wait for.
    #[error("the mode `predicted` serves {DEVICES} interfaces at most, and the system `{name}` has {found}", DEVICES = predicted::DEVICES)]
    #[diagnostic(help("leave some out, or take the mode `native`"))]
    Interfaces {
        /// The system.
        name: String,
        /// Its interfaces.
        found: usize,
    },
    /// A class whose packets would not fit into a queue of the kernel's.
    #[error(
        "in the mode `exact` flows to receivers of urgency {urgency} have queues of {found} packets together, and the kernel has {LONGEST_QUEUE} at most"
    )]
    #[diagnostic(help("make `queue` of these flows shorter"))]
    Queue {
        /// Of the class.
        urgency: Urgency,
        /// In packets.
        found: u64,
    },
    /// A flow from some addresses only.
    #[error(
        "the flow `{flow}` is of packets from {address}, and `weir linux` does not look at addresses: all of its port would get the urgency of its receiver"
    )]
    #[diagnostic(help(
        "leave `address` out of its selector if that is meant; else let a firewall drop what comes from elsewhere, or give that a port of its own"
    ))]
    Address {
        /// The flow.
        flow: String,
        /// The other side's address, or network.
        address: String,
    },
    /// A user that this machine does not have.
    #[error("the receiver `{name}` is the user `{user}`'s, and this machine has no such user")]
    #[diagnostic(help(
        "write the name of a user as `id -un` prints it for the program, or a number"
    ))]
    User {
        /// The receiver.
        name: String,
        /// The user.
        user: String,
    },
    /// A receiver is more urgent than Linux knows.
    #[error("the receiver `{name}` has {cause}")]
    TooUrgent {
        /// The receiver.
        name: String,
        /// Why not.
        #[source]
        cause: TooUrgent,
    },
}
