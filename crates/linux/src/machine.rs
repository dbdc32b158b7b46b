// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds what this machine can do, and what a mode needs that is missing. Nothing is changed.
use std::fmt;
use std::io;
use std::path::Path;

use procfs::process::Process;
use weir_model::did_you_mean;

use crate::exact::XdpState;
use crate::settings::NetDevice;
use crate::system::Node;
use crate::veth::Checksums;

/// Oldest kernel, version and patch level, that has everything that Weir uses (docs/linux.md).
const KERNEL_LEAST: (u8, u8) = (6, 1);
/// File in which the kernel describes its own types (BTF).
const BTF: &str = "/sys/kernel/btf/vmlinux";

/// Capabilities that Weir needs (capabilities(7)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Capability {
    /// CAP_BPF loads BPF programs.
    Bpf,
    /// CAP_NET_ADMIN changes the settings of network interfaces, and attaches XDP programs.
    NetAdmin,
    /// CAP_PERFMON loads BPF programs that trace the kernel.
    Perfmon,
    /// CAP_SYS_NICE sets policies and priorities of other threads.
    SysNice,
}

impl Capability {
    /// Number of the capability in <linux/capability.h>.
    const fn number(self) -> u32 {
        match self {
            Self::NetAdmin => 12,
            Self::SysNice => 23,
            Self::Perfmon => 38,
            Self::Bpf => 39,
        }
    }

    /// The capabilities of `needed` that this process lacks.
    ///
    /// # Errors
    /// Fails when /proc cannot be read.
    pub fn lacking(needed: &[Self]) -> io::Result<Vec<Self>> {
        let status = Process::myself().and_then(|own| own.status());
        let own = status.map_err(io::Error::other)?.capeff;
        Ok(Self::not_in(needed, own))
    }

    /// The capabilities of `needed` that are missing in the bit set `capabilities`.
    fn not_in(needed: &[Self], capabilities: u64) -> Vec<Self> {
        let lacks = |capability: &&Self| capabilities & (1 << capability.number()) == 0;
        needed.iter().filter(lacks).copied().collect()
    }

    /// Capabilities that a run of `node` needs.
    #[must_use]
    pub fn needed_for(node: &Node) -> &'static [Self] {
        if node.loads_programs() {
            &[Self::Bpf, Self::NetAdmin, Self::Perfmon, Self::SysNice]
        } else {
            &[Self::NetAdmin, Self::SysNice]
        }
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Bpf => "CAP_BPF",
            Self::NetAdmin => "CAP_NET_ADMIN",
            Self::Perfmon => "CAP_PERFMON",
            Self::SysNice => "CAP_SYS_NICE",
        })
    }
}

/// What a machine can do, as far as this process can see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// Version and patch level of the kernel.
    pub kernel: (u8, u8),
    /// Whether the kernel describes its types (CONFIG_DEBUG_INFO_BTF).
    pub has_btf: bool,
    /// Effective capabilities of this process, as a bit set.
    pub capabilities: u64,
    /// Names of the network interfaces in this process's network namespace.
    pub interfaces: Vec<String>,
    /// Names of the interfaces whose driver has no NAPI now, so that no thread can receive their
    /// packets.
    pub without_napi: Vec<String>,
    /// State of XDP on the interfaces, by name. It is examined only for mode exact.
    pub xdp: Vec<(String, XdpState)>,
    /// Whether the interfaces' packets have checksums, by interface name. It is examined only for
    /// mode exact.
    pub checksums: Vec<(String, Checksums)>,
}

/// Something that the machine lacks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
pub enum Lack {
    /// The kernel is too old.
    #[error("this kernel is {}.{}, and Weir needs {}.{} or newer", found.0, found.1, KERNEL_LEAST.0, KERNEL_LEAST.1)]
    #[diagnostic(help(
        "in older kernels the NAPI threads of interfaces and the threads of CPUMAPs are not reliable"
    ))]
    Kernel {
        /// Version and patch level of the kernel.
        found: (u8, u8),
    },
    /// The kernel does not describe its types (BTF).
    #[error("this kernel does not describe its types: there is no {BTF}")]
    #[diagnostic(help(
        "{what} loads BPF programs, which are adapted to the kernel by its types: take a kernel with CONFIG_DEBUG_INFO_BTF, or the mode `native` without `accounting`"
    ))]
    Btf {
        /// Name of the mode or option that needs it.
        what: String,
    },
    /// This process lacks capabilities.
    #[error("this process lacks {}, which {what} needs", listed(missing))]
    #[diagnostic(help(
        "run it as root, or give the service AmbientCapabilities (crates/linux/systemd/weir-linux@.service has all that are needed)"
    ))]
    Capabilities {
        /// The missing capabilities.
        missing: Vec<Capability>,
        /// Name of the mode or option that needs them.
        what: String,
    },
    /// A network interface does not exist.
    #[error("there is no network interface `{name}` here")]
    Interface {
        /// Name of the interface.
        name: String,
        /// A suggestion for the name.
        #[help]
        help: String,
    },
    /// An interface has no NAPI.
    #[error("no thread can receive the packets of the interface `{name}`: it has no NAPI")]
    #[diagnostic(help(
        "leave its `interface` out, since its effect on others cannot be limited; a veth has NAPI with GRO (`ethtool -K {name} gro on`)"
    ))]
    Threads {
        /// Name of the interface.
        name: String,
    },
    /// Another XDP program is attached to an interface.
    #[error(
        "the XDP program `{program}` (number {number}) is attached to the interface `{name}`, and is not replaced"
    )]
    #[diagnostic(help(
        "whoever attached it knows what it is for; detach it (`ip link set {name} xdp off`, or end its program), or take the mode `native` or `predicted`"
    ))]
    Occupied {
        /// Name of the interface.
        name: String,
        /// Name of the program.
        program: String,
        /// Number of the program, as in `bpftool prog`.
        number: u32,
    },
    /// The driver of an interface has no native XDP.
    #[error(
        "the driver of the interface `{name}` has no native XDP that could give packets to other threads"
    )]
    #[diagnostic(help("take the mode `native` or `predicted`: they need none"))]
    NoXdp {
        /// Name of the interface.
        name: String,
    },
    /// The packets of an interface have no checksums.
    #[error(
        "`{peer}`, the other end of the interface `{name}`, leaves out the checksums of its packets, which would be dropped as damaged on their way through a class"
    )]
    #[diagnostic(help(
        "have it compute them, where it is (`ethtool -K {peer} tx off`), or take the mode `native` or `predicted`"
    ))]
    Checksums {
        /// Name of the interface.
        name: String,
        /// Name of the other end of the veth pair.
        peer: String,
    },
    /// It is not known whether the packets of an interface have checksums.
    #[error(
        "the other end of the interface `{name}` cannot be examined; it may leave out the checksums of its packets, which would be dropped as damaged on their way through a class"
    )]
    #[diagnostic(help(
        "have it compute them, where it is (`ethtool -K PEER tx off`), and say so with --yes-checksums; or take the mode `native` or `predicted`"
    ))]
    UnknownChecksums {
        /// Name of the interface.
        name: String,
    },
}

impl Lack {
    /// Reason why packets of the interface `name` cannot be given to classes. `None` if they can.
    /// `trusted` means that checksums that cannot be checked count as present.
    #[must_use]
    pub fn from_checksums(checksums: Checksums, name: String, trusted: bool) -> Option<Self> {
        match checksums {
            Checksums::LeftOut { peer } => Some(Self::Checksums { name, peer }),
            Checksums::Unknown if !trusted => Some(Self::UnknownChecksums { name }),
            Checksums::Unknown | Checksums::Whole => None,
        }
    }
}

/// Names of the capabilities, separated by commas.
#[must_use]
pub fn listed(capabilities: &[Capability]) -> String {
    let names: Vec<String> = capabilities.iter().map(Capability::to_string).collect();
    names.join(", ")
}

/// Everything that a machine lacks.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("this machine cannot do what the file asks for; nothing was changed")]
pub struct Lacks {
    /// Each thing that the machine lacks.
    #[related]
    pub all: Vec<Lack>,
}

impl Machine {
    /// Examines this machine for what `node` needs, as far as this process can see it.
    ///
    /// # Errors
    /// Fails when /proc or /sys cannot be read.
    pub fn here(node: &Node) -> io::Result<Self> {
        let version = procfs::sys::kernel::Version::current().map_err(io::Error::other)?;
        let status = Process::myself()
            .and_then(|own| own.status())
            .map_err(io::Error::other)?;
        let wanted = node.interfaces.iter().map(|interface| &interface.name);
        let without_napi = wanted.clone().filter(|name| has_no_napi(name)).cloned();
        // An interface that does not exist gets no entry.
        let wanted = wanted.filter(|_| node.linux.mode.facts().demultiplexes);
        let xdp = wanted
            .clone()
            .filter_map(|name| Some((name.clone(), XdpState::examine(name).ok()?)));
        let checksums =
            wanted.filter_map(|name| Some((name.clone(), Checksums::examine(name).ok()?)));
        Ok(Self {
            kernel: (version.major, version.minor),
            has_btf: Path::new(BTF).exists(),
            capabilities: status.capeff,
            without_napi: without_napi.collect(),
            xdp: xdp.collect(),
            checksums: checksums.collect(),
            interfaces: interfaces()?,
        })
    }

    /// What the machine lacks of what `node` needs. `trusted` means that packets count as having
    /// checksums where that cannot be checked.
    #[must_use]
    pub fn lacks(&self, node: &Node, trusted: bool) -> Vec<Lack> {
        let mut lacks = Vec::new();
        let mode = node.linux.mode;
        let what = if node.loads_programs() && !mode.facts().loads_programs {
            "`accounting`".to_owned()
        } else {
            format!("the mode `{}`", mode.name())
        };
        if self.kernel < KERNEL_LEAST {
            lacks.push(Lack::Kernel { found: self.kernel });
        }
        if node.loads_programs() && !self.has_btf {
            let what = what.clone();
            lacks.push(Lack::Btf { what });
        }
        let missing = Capability::not_in(Capability::needed_for(node), self.capabilities);
        if !missing.is_empty() {
            lacks.push(Lack::Capabilities { missing, what });
        }
        let known: Vec<&str> = self.interfaces.iter().map(String::as_str).collect();
        for interface in &node.interfaces {
            let name = interface.name.clone();
            if !self.interfaces.contains(&name) {
                let help = did_you_mean(&name, "interfaces of this machine", &known);
                lacks.push(Lack::Interface { name, help });
            } else if self.without_napi.contains(&name) {
                // XDP gives a veth NAPI, but this holds in mode exact, too: settings of that NAPI
                // could not be restored when XDP is gone.
                lacks.push(Lack::Threads { name });
            }
        }
        for (name, state) in &self.xdp {
            let name = name.clone();
            if let Some((program, number)) = state.program.clone() {
                lacks.push(Lack::Occupied {
                    name,
                    program,
                    number,
                });
            } else if state.native == Some(false) {
                lacks.push(Lack::NoXdp { name });
            }
        }
        let checksums = self.checksums.iter().cloned();
        lacks.extend(
            checksums.filter_map(|(name, state)| Lack::from_checksums(state, name, trusted)),
        );
        lacks
    }
}

/// Names of the network interfaces in this network namespace, sorted.
///
/// # Errors
/// Fails when /proc cannot be read.
pub fn interfaces() -> io::Result<Vec<String>> {
    // The names are read from /proc, since /sys may show another network namespace.
    let all = procfs::net::dev_status().map_err(io::Error::other)?;
    let mut names: Vec<String> = all.into_keys().collect();
    names.sort_unstable();
    Ok(names)
}

/// Whether the interface has no NAPI. Without NAPI the kernel refuses to write `threaded`, even
/// with the value that it has. The answer is false if this process may not write the file.
fn has_no_napi(name: &str) -> bool {
    let same = NetDevice::find(name, None)
        .and_then(|interface| interface.open())
        .and_then(|interface| {
            let threaded = interface.read("threaded")?;
            interface.write("threaded", threaded.trim())
        });
    same.is_err_and(|error| error.raw_os_error() == Some(libc::EOPNOTSUPP))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system;
    use weir_model::LinuxMode;
    use weir_model::{Accounting, Linux};

    fn node(mode: LinuxMode) -> Node {
        let interface = |name: &str| system::NodeInterface {
            name: name.to_owned(),
            ..Default::default()
        };
        Node {
            name: "node".to_owned(),
            linux: Linux {
                mode,
                ..Linux::default()
            },
            interfaces: vec![interface("eth0"), interface("eth1")],
            ..Node::default()
        }
    }

    fn machine() -> Machine {
        Machine {
            kernel: (6, 1),
            has_btf: true,
            capabilities: 1 << 12 | 1 << 23 | 1 << 38 | 1 << 39,
            interfaces: vec!["eth0".to_owned(), "eth1".to_owned()],
            without_napi: Vec::new(),
            xdp: Vec::new(),
            checksums: Vec::new(),
        }
    }

    #[test]
    fn a_machine_with_everything_lacks_nothing() {
        for mode in [LinuxMode::Native, LinuxMode::Predicted, LinuxMode::Exact] {
            assert_eq!(machine().lacks(&node(mode), false), []);
        }
    }

    #[test]
    fn an_old_kernel_is_named_with_what_is_needed() {
        let old = Machine {
            kernel: (5, 19),
            ..machine()
        };
        let lacks = old.lacks(&node(LinuxMode::Native), false);
        assert_eq!(lacks, [Lack::Kernel { found: (5, 19) }]);
        assert_eq!(
            lacks[0].to_string(),
            "this kernel is 5.19, and Weir needs 6.1 or newer"
        );
    }

    #[test]
    fn the_native_mode_needs_no_bpf() {
        let plain = Machine {
            has_btf: false,
            capabilities: 1 << 12 | 1 << 23,
            ..machine()
        };
        assert_eq!(plain.lacks(&node(LinuxMode::Native), false), []);
        let missing = || vec![Capability::Bpf, Capability::Perfmon];
        let lacks = |what: &str| {
            let (what, missing) = (what.to_owned(), missing());
            [
                Lack::Btf { what: what.clone() },
                Lack::Capabilities { missing, what },
            ]
        };
        assert_eq!(
            plain.lacks(&node(LinuxMode::Exact), false),
            lacks("the mode `exact`")
        );
        // Accounting loads BPF programs in any mode, so the same things are missing.
        let mut accounts = node(LinuxMode::Native);
        accounts.linux.accounting = Some(Accounting::Time);
        assert_eq!(plain.lacks(&accounts, false), lacks("`accounting`"));
    }

    #[test]
    fn what_is_missing_is_called_by_its_name() {
        let none = Machine {
            capabilities: 0,
            ..machine()
        };
        let lacks = none.lacks(&node(LinuxMode::Predicted), false);
        assert_eq!(
            lacks[0].to_string(),
            "this process lacks CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON, CAP_SYS_NICE, which the mode `predicted` needs"
        );
    }

    #[test]
    fn an_interface_has_to_be_there_and_to_take_a_thread() {
        let other = Machine {
            interfaces: vec!["eth0".to_owned(), "eht1".to_owned()],
            without_napi: vec!["eth0".to_owned()],
            ..machine()
        };
        let lacks = other.lacks(&node(LinuxMode::Native), false);
        let [Lack::Threads { name }, Lack::Interface { name: gone, help }] = &lacks[..] else {
            panic!("{lacks:?}");
        };
        assert_eq!((name.as_str(), gone.as_str()), ("eth0", "eth1"));
        assert!(help.contains("did you mean `e"), "{help}");
        assert_eq!(other.lacks(&node(LinuxMode::Exact), false).len(), 2);
    }

    #[test]
    fn another_program_is_named_and_missing_xdp_too() {
        let program = Some(("guard".to_owned(), 7));
        let native = Some(true);
        let other = Machine {
            xdp: vec![
                ("eth0".to_owned(), XdpState { program, native }),
                (
                    "eth1".to_owned(),
                    XdpState {
                        program: None,
                        native: Some(false),
                    },
                ),
            ],
            ..machine()
        };
        let lacks = other.lacks(&node(LinuxMode::Exact), false);
        assert_eq!(
            lacks[0].to_string(),
            "the XDP program `guard` (number 7) is attached to the interface `eth0`, and is not replaced"
        );
        assert!(matches!(&lacks[1..], [Lack::NoXdp { name }] if name == "eth1"));
    }

    #[test]
    fn what_leaves_checksums_out_is_refused_and_what_cannot_be_seen_unless_it_is_trusted() {
        let peer = "veth1".to_owned();
        let other = Machine {
            checksums: vec![
                ("eth0".to_owned(), Checksums::LeftOut { peer }),
                ("eth1".to_owned(), Checksums::Unknown),
            ],
            ..machine()
        };
        let exact = node(LinuxMode::Exact);
        let lacks = other.lacks(&exact, true);
        assert!(
            matches!(&lacks[..], [Lack::Checksums { name, peer }] if name == "eth0" && peer == "veth1")
        );
        let lacks = other.lacks(&exact, false);
        assert!(matches!(&lacks[1..], [Lack::UnknownChecksums { name }] if name == "eth1"));
    }
}
