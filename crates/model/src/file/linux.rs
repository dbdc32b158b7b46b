// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sections of the system file that only `weir linux` looks at. Their comments, defaults and
//! examples are the reference (docs/generated/system-file.md).
use miette::SourceSpan;
use toml_edit::Item;

use super::leaf::{PortNumber, Text, Whole, YesNo};
use super::value::{Form, Shape, Value, choice, expected, printable, section};
use crate::diagnostics::Problems;
use crate::exact::ExactTime;

/// The longest name of an interface: the kernel's IFNAMSIZ with its final 0.
const INTERFACE_MOST: usize = 15;

choice! {
    /// How bottom halves get the urgency of their receivers.
    LinuxMode "mode", default Native {
        /// Each interface's threads have the urgency of the most urgent receiver that it has in
        /// this file.
        Native = "native",
        /// The threads follow the receivers that exist (zhang2006); see `predict`.
        Predicted = "predicted",
        /// Each packet is handed to the thread of its receiver's urgency, by XDP (lee2010).
        Exact = "exact",
    }
}

choice! {
    /// Whom the threads of an interface follow.
    Predict "predict", default Waiting {
        /// The most urgent receiver that waits for a packet.
        Waiting = "waiting",
        /// The most urgent receiver that has a socket.
        Registered = "registered",
    }
}

choice! {
    /// What is accounted: whom interrupts were for, and whom they were taken from.
    Accounting "accounting" {
        /// Nothing.
        Off = "off",
        /// The time of interrupts and of the threads that do their work, but not whom it was for.
        Time = "time",
        /// Also whom it was for: each packet that a socket gets is counted.
        Packets = "packets",
    }
}

section! {
    /// What `weir linux` does with the sources that have an `interface` (docs/linux.md). With it,
    /// or with an interface, urgencies are Linux's: 0 is SCHED_OTHER and 1 to 99 the priorities of
    /// SCHED_FIFO.
    Linux "[linux]" {
        /// How bottom halves get the urgency of their receivers.
        optional mode: LinuxMode, default "\"native\"", example "\"exact\"";
        /// In the mode `predicted`: whom the threads of an interface follow.
        optional predict: Predict, default "\"waiting\"", example "\"registered\"";
        /// What is accounted (docs/linux-accounting.md). It needs BPF, also in the mode `native`.
        optional accounting: Accounting, default "in the mode `native` `off`, else `packets`", example "\"packets\"";
        /// What an interrupt costs beside its handler and its soft interrupts, that is, its entry
        /// and exit: `accounting` adds it for each interrupt.
        optional interrupt_overhead: ExactTime, default "none: it is not known", example "\"1500ns\"";
        /// Whether the cap of `top_half` ends by a timer (the scheduler's feature HRTICK_DL). The
        /// feature holds for the whole machine and makes switches dearer (docs/linux.md). Without
        /// it, a cap ends at a tick of the kernel's clock.
        optional cap_timer: YesNo, default "false", example "true";
        /// The tick of the kernel's clock, 1/CONFIG_HZ, at which a cap ends without `cap_timer`.
        /// `weir check` counts with it; `weir linux` takes that of its machine.
        optional tick: ExactTime, default "10ms, the longest of any kernel", example "\"4ms\"";
        /// Bytes of the buffer that new sockets have for what they receive, if they ask for no
        /// other (`net.core.rmem_default`). It is never made smaller; 0 leaves it as it is. In the
        /// mode `exact` each packet takes a page of it.
        optional receive_buffer: Whole<0, 1_073_741_824>, default "in the mode `exact` 1048576; else it is left as it is", example "4194304";
        /// Packets that each receive queue of a card has room for, or as many as the card allows
        /// (`ethtool -g`). It is never made smaller. A burst waits there while a cap is used up;
        /// what does not fit is dropped, whomever it is for. Many drivers take the link down for a
        /// moment to change it.
        optional receive_ring: Whole<1, 65_536>, default "it is left as it is", example "1024";
        /// What the thread that takes packets from the device may do.
        optional top_half: TopHalf, default "in the mode `exact` 500us in every 10ms; else it is as urgent as the most urgent receiver that it serves", example "{ runtime = \"1ms\", period = \"10ms\" }";
    }
}

section! {
    /// The thread that takes packets from the device. Either `runtime` and `period`, a cap: a
    /// flood takes no more in the long run but the rest of a poll in each period, whomever it is
    /// for; or an `urgency`: more urgent work loses nothing to the thread, less urgent work may
    /// lose everything; or, in the mode `exact`, no thread.
    TopHalf "[linux.top_half]" {
        /// The longest time that the thread runs in each period (SCHED_DEADLINE).
        optional runtime: ExactTime, default "none: it has an urgency", example "\"1ms\"";
        /// The period that `runtime` is of: 100us to 4s.
        optional period: ExactTime, default "none: it has an urgency", example "\"10ms\"";
        /// The thread's priority of SCHED_FIFO.
        optional urgency: Whole<1, 99>, default "none: it has a cap", example "40";
        /// Whether there is a thread. Without one the interrupt itself takes packets from the
        /// device: that costs the least, it precedes every task, and nothing bounds it.
        optional thread: YesNo, default "true", example "false";
    }
}

section! {
    /// How `weir linux` recognises a receiver: a socket belongs to it if everything that is stated
    /// holds.
    Match "[receiver.match]" {
        /// The port that the receiver listens at.
        optional port: PortNumber, default "any", example "502";
        /// The receiver's control group, or one above it.
        optional cgroup: Cgroup, default "any", example "\"/plant/control\"";
        /// The name of the receiver's program, as `ps -o comm` shows it: its first 15 bytes count.
        /// Any process can give itself any name, so `user` has to be stated, too.
        optional command: Text, default "any", example "\"plc\"";
        /// The user that the receiver runs as, by name or number. Without it, any user's process
        /// that binds the port first is taken for the receiver.
        optional user: Text, default "any", example "\"plc\"";
    }
}

/// The name of a network interface, as the kernel allows them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InterfaceName(pub String);

impl Value for InterfaceName {
    const SHAPE: Shape = Shape {
        name: "interface",
        wanted: "the name of a network interface in quotes, for example \"eth0\"",
        form: Form::Text,
    };

    fn read(item: &Item, at: SourceSpan, problems: &mut Problems<'_>) -> Option<Self> {
        let text = expected::<Self, _>(item.as_str(), item, at, problems)?;
        let letters = |c: char| !(c.is_whitespace() || c.is_control() || c == '/' || c == ':');
        if (1..=INTERFACE_MOST).contains(&text.len())
            && text.chars().all(letters)
            && text != "."
            && text != ".."
        {
            return Some(Self(text.to_owned()));
        }
        problems.refuse(format!("`{}` cannot be a network interface", printable(text)), at, "not an interface", format!(
                "write a name that `ip link` shows: 1 to {INTERFACE_MOST} bytes without spaces, `/` and `:`"
            ))
    }
}

/// A control group, from the root of their hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cgroup(pub String);

impl Value for Cgroup {
    const SHAPE: Shape = Shape {
        name: "control group",
        wanted: "the path of a control group in quotes, for example \"/system.slice/plc.service\"",
        form: Form::Text,
    };

    fn read(item: &Item, at: SourceSpan, problems: &mut Problems<'_>) -> Option<Self> {
        expected::<Self, _>(item.as_str(), item, at, problems)?;
        let Text(path) = Text::read(item, at, problems)?;
        let steps = path.strip_prefix('/').map(|rest| rest.split('/'));
        let is_path = path == "/"
            || steps.is_some_and(|mut steps| steps.all(|step| !matches!(step, "" | "." | "..")));
        if is_path {
            return Some(Self(path));
        }
        problems.refuse(format!("`{}` is no path of a control group", printable(&path)), at, "not a path from the root", "write it as the last field of /proc/PID/cgroup shows it: it begins with `/` and does not end with one")
    }
}
