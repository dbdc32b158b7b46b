// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mode exact (lee2010). An XDP program first finds the receiver of each packet. It then gives the
//! packet to a kernel thread of the receiver's class. A class stands for one urgency, and the
//! kernel's scheduler runs its threads at that urgency among all threads.
//!
//! Some packets go on to the kernel as if there were no program: packets without a receiver in the
//! [`Table`], ARP, packets of clocks (PTP), fragments, frames in several buffers, and malformed
//! packets. [`DemuxReason`] counts them. lee2010 §4 checks for each packet which process runs now.
//! Here a receiver keeps its class until its urgency changes, so that its packets keep their order.
//!
//! If a card removes VLAN tags before the program sees the frame (`rxvlan` of ethtool), the program
//! does not see the VLAN priority.
pub mod assign;
mod bindings;
mod classes;
mod counters;
mod interface;
mod layout;
mod table;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use libbpf_rs::{Link, MapCore as _, MapHandle, Object, ObjectBuilder, OpenObject, ProgramInput};

pub use bindings::{Bindable, Bindings};
pub use classes::ClassThread;
use classes::ThreadClass;
pub use counters::{ClassCount, Counters, Counts, DemuxReason, TransportPort};
use interface::XdpAttachment;
pub use interface::{InterfaceName, XdpState};
use layout::{CLASSES, COUNTS_WORDS, PORTS, SAME_CPU};
pub use table::{Table, TableError};
use weir_report::terminal::printable;

use crate::object::{self, Memory, program};
use crate::urgency::Urgency;

static PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/demux.bpf.o"));

/// The CPU on which the bottom half of a class runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Placement {
    /// The CPU on which the packet arrived. Each class has a thread on every CPU, so packets that
    /// the card spreads over CPUs stay spread.
    #[default]
    Arrival,
    /// One CPU for each class, by the number of the class.
    Fixed(Vec<u32>),
}

/// Default length of a class's queue on each CPU, in packets.
pub const QUEUE: u32 = 256;

/// Default queue length of the class of ordinary processes, in which the packets of all other
/// sockets wait. Linux itself lets as many packets wait for a CPU (`net.core.netdev_max_backlog`).
pub const ORDINARY_QUEUE: u32 = 1_000;

/// Longest queue that the kernel allows in a CPUMAP, in packets.
pub const LONGEST_QUEUE: u32 = 16_384;

/// Options of mode exact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Length of the queue that the class of each urgency has on each CPU, 1 to [`LONGEST_QUEUE`]
    /// packets. The default is [`QUEUE`] or [`ORDINARY_QUEUE`]. A shorter queue drops packets
    /// earlier, when only the top half has been spent on them.
    pub queues: BTreeMap<Urgency, u32>,
    /// The CPUs on which bottom halves run.
    pub placement: Placement,
    /// Whether to use generic XDP, which works on any interface. The kernel then does most of its
    /// work on a packet before the program sees the packet.
    pub generic: bool,
}

impl Default for Options {
    /// Default queues, bottom halves on the CPU of arrival, and native XDP.
    fn default() -> Self {
        Self {
            queues: BTreeMap::new(),
            placement: Placement::Arrival,
            generic: false,
        }
    }
}

impl Options {
    /// Length of the queue of `urgency`'s class on each CPU, in packets.
    fn queue(&self, urgency: Urgency) -> u32 {
        let usual = if urgency == Urgency::ORDINARY {
            ORDINARY_QUEUE
        } else {
            QUEUE
        };
        self.queues.get(&urgency).copied().unwrap_or(usual)
    }
}

/// Reason why mode exact cannot be started or changed.
#[derive(Debug, thiserror::Error)]
pub enum ExactError {
    /// The number of classes is not 1 to 8.
    #[error("{0} classes: mode exact has 1 to {CLASSES}")]
    Classes(usize),
    /// The length of a queue is not 1 to [`LONGEST_QUEUE`].
    #[error("a queue cannot hold {0} packets: the kernel allows 1 to {LONGEST_QUEUE}")]
    Queue(u32),
    /// The number of CPUs in [`Placement::Fixed`] is not the number of classes.
    #[error("there are {cpus} CPUs for {classes} classes: name one CPU for each class")]
    Placement {
        /// Number of CPUs.
        cpus: usize,
        /// Number of classes.
        classes: usize,
    },
    /// The CPU of a class is offline.
    #[error("CPU {0} is not online")]
    Offline(u32),
    /// There is no such interface.
    #[error("there is no interface {0}")]
    NoInterface(InterfaceName),
    /// Another XDP program is attached to the interface, and is not replaced.
    #[error(
        "the XDP program `{name}` (number {number}) is attached to {interface} and is not replaced; detach it, or leave the interface out"
    )]
    Occupied {
        /// The interface.
        interface: InterfaceName,
        /// Name of the program.
        name: String,
        /// Number of the program, as in `bpftool prog`.
        number: u32,
    },
    /// The driver has no native XDP.
    #[error("the driver of {0} has no native XDP; mode native does without")]
    NotNative(InterfaceName),
    /// The driver or the kernel refuses, for example because the interface's MTU is too large for
    /// XDP.
    #[error("{interface} refuses the XDP program: {cause}")]
    Refused {
        /// The interface.
        interface: InterfaceName,
        /// The error.
        cause: io::Error,
    },
    /// The network namespace cannot be entered.
    #[error("the network namespace {path} cannot be entered: {cause}", path = printable(path))]
    Namespace {
        /// Path of the namespace.
        path: PathBuf,
        /// The error.
        cause: io::Error,
    },
    /// The kernel has not started the thread of a class.
    #[error(
        "the kernel thread {0} is not in /proc; does /proc show another process namespace, such as a container's?"
    )]
    NoThread(String),
    /// An operation on BPF programs or maps fails.
    #[error("BPF: {0}")]
    Bpf(#[from] libbpf_rs::Error),
    /// The table cannot be changed.
    #[error(transparent)]
    Table(#[from] TableError),
    /// Another operation of the system fails.
    #[error("{what}: {cause}")]
    System {
        /// Name of what was read or set.
        what: String,
        /// The error.
        cause: io::Error,
    },
}

/// Result of the program for a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The program leaves the packet to the kernel.
    Left,
    /// The program gives the packet to a kernel thread of its class.
    Given,
}

/// Mode exact. When this is dropped, or when the process ends, even if it is killed, the kernel
/// detaches the program and ends the threads of the classes.
#[derive(Debug)]
pub struct Exact {
    // The program is detached before the rest is dropped, so that no packets come meanwhile.
    attached: Vec<XdpAttachment>,
    _dropped: Link,
    table: Table,
    counters: Arc<Counters>,
    classes: Vec<ThreadClass>,
    options: Options,
    object: Object,
}

fn handle(object: &Object, name: &'static str) -> Result<MapHandle, ExactError> {
    Ok(MapHandle::try_from(&object::map(object, name)?)?)
}

/// Names of the CPUMAPs in the BPF object, by class.
const MAPS: [&str; CLASSES] = [
    "class_0", "class_1", "class_2", "class_3", "class_4", "class_5", "class_6", "class_7",
];

/// Sizes the maps for this machine: `rows` rows of counters, one for each CPU, and entries for
/// `cpus` CPUs in the map of each class.
fn size(object: &mut OpenObject, cpus: u32, rows: u32) -> Result<(), ExactError> {
    for mut map in object.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        match name.as_str() {
            "counts" => map.set_max_entries(cpus)?,
            "ports" => map.set_max_entries(rows * PORTS as u32)?,
            class if MAPS.contains(&class) => map.set_max_entries(cpus)?,
            _ => {}
        }
    }
    Ok(())
}

impl Exact {
    /// Starts mode exact on one interface, with an empty table, so that it leaves every packet to
    /// the kernel. `classes` are the urgencies of the classes, the lowest first. [`add`](Self::add)
    /// adds further interfaces.
    ///
    /// # Errors
    /// Fails with an [`ExactError`]. Nothing is left behind then.
    pub fn attach(
        interface: impl Into<InterfaceName>,
        classes: &[Urgency],
        options: &Options,
    ) -> Result<Self, ExactError> {
        let mut exact = Self::load(classes, options)?;
        exact.add(interface)?;
        Ok(exact)
    }

    /// Loads the program and starts the classes' threads, without an interface.
    ///
    /// # Errors
    /// Fails with an [`ExactError`]. Nothing is left behind then.
    pub fn load(classes: &[Urgency], options: &Options) -> Result<Self, ExactError> {
        if classes.is_empty() || classes.len() > CLASSES {
            return Err(ExactError::Classes(classes.len()));
        }
        let fits = |queue: &u32| (1..=LONGEST_QUEUE).contains(queue);
        if let Some(queue) = options.queues.values().find(|queue| !fits(queue)) {
            return Err(ExactError::Queue(*queue));
        }
        let online = classes::online()?;
        if let Placement::Fixed(cpus) = &options.placement {
            if cpus.len() != classes.len() {
                return Err(ExactError::Placement {
                    cpus: cpus.len(),
                    classes: classes.len(),
                });
            }
            if let Some(cpu) = cpus.iter().find(|cpu| !online.contains(**cpu as usize)) {
                return Err(ExactError::Offline(*cpu));
            }
        }
        let cpus = libbpf_rs::num_possible_cpus()?;
        // A row takes a mebibyte, so only CPUs that can come online get one.
        let last = classes::present()?.iter().last();
        let rows = last.map_or(1, |last| last + 1).min(cpus);
        let mut object = ObjectBuilder::default().open_memory(PROGRAM)?;
        size(&mut object, cpus as u32, rows as u32)?;
        let object = object.load()?;
        let memory = |name, words| {
            let map = handle(&object, name)?;
            Memory::new(&map, words).map_err(|cause| ExactError::System {
                what: format!("the BPF array {name}"),
                cause,
            })
        };
        let counters = Arc::new(Counters::new(
            memory("counts", cpus * COUNTS_WORDS)?,
            memory("ports", rows * PORTS)?,
        ));
        let mut numbers = [0; CLASSES];
        for (number, name) in numbers.iter_mut().zip(MAPS) {
            *number = handle(&object, name)?.info()?.info.id;
        }
        let classes = classes
            .iter()
            .zip(MAPS)
            .map(|(urgency, name)| ThreadClass::new(*urgency, handle(&object, name)?))
            .collect::<Result<Vec<_>, _>>()?;
        let table = Table::new(
            [handle(&object, "table_a")?, handle(&object, "table_b")?],
            handle(&object, "in_use")?,
            classes.len() as u8,
            numbers,
        )
        .map_err(|cause| ExactError::System {
            what: "the table".to_owned(),
            cause,
        })?;
        let dropped = program(&object, "weir_dropped")?.attach()?;
        let mut exact = Self {
            attached: Vec::new(),
            _dropped: dropped,
            table,
            counters,
            classes,
            options: options.clone(),
            object,
        };
        exact.settle()?;
        Ok(exact)
    }

    /// Adds another interface, which uses the same table and threads. Its network namespace must be
    /// the one in which the receivers are.
    ///
    /// # Errors
    /// Fails with an [`ExactError`]. Nothing is changed then.
    pub fn add(&mut self, interface: impl Into<InterfaceName>) -> Result<(), ExactError> {
        let attached = XdpAttachment::new(
            program(&self.object, "weir_demux")?.as_fd(),
            interface.into(),
            self.options.generic,
        )?;
        self.attached.push(attached);
        Ok(())
    }

    /// Adapts to interfaces and CPUs that come and go. It returns the interfaces that have
    /// vanished, starts threads on CPUs that have come online, and ends the threads of CPUs that
    /// have gone offline. Call it now and then. Until then, packets on a CPU without a thread are
    /// left to the kernel ([`DemuxReason::NoThread`]).
    ///
    /// # Errors
    /// Fails with an [`ExactError`]. The next call tries again.
    pub fn settle(&mut self) -> Result<Vec<InterfaceName>, ExactError> {
        self.start_threads()?;
        self.table.publish()?;
        let mut gone = Vec::new();
        for attached in std::mem::take(&mut self.attached) {
            match attached.is_there() {
                Ok(false) => gone.push(attached.interface),
                // If the kernel does not answer, the interface is kept until it does.
                Ok(true) | Err(_) => self.attached.push(attached),
            }
        }
        Ok(gone)
    }

    /// Starts each class's threads on the CPUs where they are missing.
    fn start_threads(&mut self) -> Result<(), ExactError> {
        let online = classes::online()?;
        for (number, class) in self.classes.iter_mut().enumerate() {
            let wanted = classes::wanted(&self.options.placement, number, &online);
            class.settle(number as u8, &wanted, self.options.queue(class.urgency))?;
            let cpu = match &self.options.placement {
                Placement::Arrival => SAME_CPU,
                // A class that was added after the start has no CPU of its own.
                Placement::Fixed(cpus) => cpus.get(number).copied().unwrap_or(SAME_CPU),
            };
            self.table.place(number, cpu);
        }
        Ok(())
    }

    /// Interfaces to which the program is attached.
    pub fn interfaces(&self) -> impl Iterator<Item = &InterfaceName> {
        self.attached.iter().map(|attached| &attached.interface)
    }

    /// The table of receivers.
    pub fn table(&mut self) -> &mut Table {
        &mut self.table
    }

    /// Counters of the program. They can be read for as long as the program exists.
    #[must_use]
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// Urgencies of the classes, in ascending order.
    pub fn urgencies(&self) -> impl Iterator<Item = Urgency> + '_ {
        self.classes.iter().map(|class| class.urgency)
    }

    /// Gives a class's threads another urgency.
    ///
    /// # Errors
    /// Fails when there is no such class, or when one of its threads is missing or cannot be
    /// changed.
    pub fn set_urgency(&mut self, class: u8, urgency: Urgency) -> Result<(), ExactError> {
        let classes = self.classes.len();
        let Some(changed) = self.classes.get_mut(usize::from(class)) else {
            let classes = classes as u8;
            return Err(TableError::Class { class, classes }.into());
        };
        changed.urgency = urgency;
        changed.schedule(class)
    }

    /// Sets the urgencies of the classes, in ascending order. If there are more urgencies than
    /// classes, classes are added. Existing classes stay.
    ///
    /// # Errors
    /// Fails when there are fewer urgencies than classes, or more than eight. After other errors
    /// [`settle`](Self::settle) tries again.
    pub fn set_classes(&mut self, urgencies: &[Urgency]) -> Result<(), ExactError> {
        if urgencies.len() < self.classes.len() || urgencies.len() > CLASSES {
            return Err(ExactError::Classes(urgencies.len()));
        }
        for number in 0..urgencies.len() {
            match self.classes.get_mut(number) {
                Some(class) if class.urgency == urgencies[number] => {}
                Some(class) => {
                    class.urgency = urgencies[number];
                    class.schedule(number as u8)?;
                }
                None => {
                    let map = handle(&self.object, MAPS[number])?;
                    self.classes.push(ThreadClass::new(urgencies[number], map)?);
                }
            }
        }
        self.table.set_classes(self.classes.len() as u8);
        self.start_threads()
    }

    /// Kernel threads of the classes, by class and CPU. Their run time is the cost of the classes'
    /// bottom halves.
    ///
    /// # Errors
    /// Fails when /proc cannot be read.
    pub fn threads(&self) -> Result<Vec<ClassThread>, ExactError> {
        let numbers = self.classes.iter().map(|class| class.number);
        classes::find(&(0..).zip(numbers).collect::<Vec<_>>())
    }

    /// The threads as they were when their policies were last set. This does not read all of /proc,
    /// so some of the threads may have ended since.
    pub fn scheduled(&self) -> impl Iterator<Item = ClassThread> + '_ {
        self.classes
            .iter()
            .flat_map(|class| class.threads.iter().copied())
    }

    /// Opens the XDP program, for uses that this type does not offer.
    ///
    /// # Errors
    /// Fails when the limit of descriptors is reached.
    pub fn program(&self) -> Result<OwnedFd, ExactError> {
        let program = program(&self.object, "weir_demux")?;
        let descriptor = program.as_fd().try_clone_to_owned();
        descriptor.map_err(|cause| ExactError::System {
            what: "the program's descriptor".to_owned(),
            cause,
        })
    }

    /// Runs the program on a frame of at least 14 bytes (BPF_PROG_RUN), on this CPU and without a
    /// real packet. Returns the verdict and the mean time of `times` runs. The counters count these
    /// runs.
    ///
    /// # Errors
    /// Fails when the frame is shorter, or longer than the kernel accepts.
    pub fn try_frame(&self, frame: &[u8], times: u32) -> Result<(Verdict, Duration), ExactError> {
        let output = program(&self.object, "weir_demux")?.test_run(ProgramInput {
            data_in: Some(frame),
            repeat: times,
            ..ProgramInput::default()
        })?;
        let verdict = if output.return_value == libbpf_rs::libbpf_sys::XDP_REDIRECT {
            Verdict::Given
        } else {
            Verdict::Left
        };
        Ok((verdict, output.duration))
    }
}
