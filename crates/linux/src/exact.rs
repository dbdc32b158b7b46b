// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mode exact (lee2010): an XDP program first finds the receiver of each packet and gives the
//! packet to the kernel thread of the receiver's class, which the kernel's scheduler runs at its
//! place among all threads.
//!
//! Packets without a receiver in the [`Table`], ARP, packets of clocks (PTP), fragments, frames in
//! several buffers and malformed packets go on to the kernel as if there were no program, and are
//! counted by [`DemuxReason`]. lee2010 §4 checks for each packet which process runs now. Here a
//! receiver keeps its class until its urgency changes, so that its packets keep their order.
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

/// CPU on which a class's bottom half runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Placement {
    /// The CPU on which the packet arrived: each class has a thread on every CPU, and packets that
    /// the card spreads over CPUs stay spread.
    #[default]
    Arrival,
    /// One CPU for each class.
    Fixed(Vec<u32>),
}

/// Default length of a class's queue on each CPU, in packets.
pub const QUEUE: u32 = 256;

/// Default length for the class of ordinary processes, in which the packets of all other sockets
/// wait: as many as Linux itself lets wait for a processor (`net.core.netdev_max_backlog`).
pub const ORDINARY_QUEUE: u32 = 1_000;

/// Longest queue of a CPUMAP in the kernel.
pub const LONGEST_QUEUE: u32 = 16_384;

/// Options of mode exact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Length of the queue of each urgency's class on each CPU, 1 to [`LONGEST_QUEUE`] packets;
    /// [`QUEUE`] or [`ORDINARY_QUEUE`] by default. A shorter queue drops earlier, when only the top
    /// half has been spent on a packet.
    pub queues: BTreeMap<Urgency, u32>,
    /// Placement of bottom halves.
    pub placement: Placement,
    /// Whether to use generic XDP, which any interface has: the kernel then does most of its work
    /// on a packet before the program sees it.
    pub generic: bool,
}

impl Default for Options {
    /// Default queues, bottom halves on the CPU of arrival, native XDP.
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
    /// The number of CPUs is not that of the classes.
    #[error("there are {cpus} CPUs for {classes} classes: name one CPU for each class")]
    Placement {
        /// Number of CPUs.
        cpus: usize,
        /// Number of classes.
        classes: usize,
    },
    /// The CPU of a class does not run.
    #[error("CPU {0} is not online")]
    Offline(u32),
    /// There is no such interface.
    #[error("there is no interface {0}")]
    NoInterface(InterfaceName),
    /// Another program is attached; it is not replaced.
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
    /// The driver has no XDP.
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
    /// The kernel has not started a thread of a class.
    #[error(
        "the kernel thread {0} is not in /proc; does /proc show another process namespace, such as a container's?"
    )]
    NoThread(String),
    /// BPF fails.
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
    /// The packet is left to the kernel.
    Left,
    /// The packet is given to a class's kernel thread.
    Given,
}

/// Mode exact. When this is dropped, or the process ends in whatever way, the kernel detaches the
/// program and ends its threads.
#[derive(Debug)]
pub struct Exact {
    // The program is detached first, so that no packet comes while the rest is dropped.
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

/// Names of the CPUMAPs, by class.
const MAPS: [&str; CLASSES] = [
    "class_0", "class_1", "class_2", "class_3", "class_4", "class_5", "class_6", "class_7",
];

/// Sizes the maps for the machine: rows of counters for its CPUs, and entries for the CPUs of
/// classes.
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
    /// the kernel. `classes` are the urgencies of the classes, the lowest first; [`add`](Self::add)
    /// adds further interfaces.
    ///
    /// # Errors
    /// Fails with an [`ExactError`]; then nothing is left behind.
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
    /// Fails with an [`ExactError`]; then nothing is left behind.
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
        // A row has a mebibyte, so there are rows only for CPUs that can come online.
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

    /// Adds another interface, which the same table and threads serve: its network namespace must
    /// be that of the same receivers.
    ///
    /// # Errors
    /// Fails with an [`ExactError`]; then nothing is changed.
    pub fn add(&mut self, interface: impl Into<InterfaceName>) -> Result<(), ExactError> {
        let attached = XdpAttachment::new(
            program(&self.object, "weir_demux")?.as_fd(),
            interface.into(),
            self.options.generic,
        )?;
        self.attached.push(attached);
        Ok(())
    }

    /// Detaches the program from interfaces that have vanished, and returns these; starts threads
    /// on CPUs that have come online, and ends those on CPUs that have gone. It should be called
    /// now and then: until then, packets for a CPU without a thread are left to the kernel
    /// ([`DemuxReason::NoThread`]).
    ///
    /// # Errors
    /// Fails with an [`ExactError`]; another call tries again.
    pub fn settle(&mut self) -> Result<Vec<InterfaceName>, ExactError> {
        self.start_threads()?;
        self.table.publish()?;
        let mut gone = Vec::new();
        for attached in std::mem::take(&mut self.attached) {
            match attached.is_there() {
                Ok(false) => gone.push(attached.interface),
                // If the kernel does not answer, the interface stays until it does.
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
                // A class that was added later has no CPU of its own.
                Placement::Fixed(cpus) => cpus.get(number).copied().unwrap_or(SAME_CPU),
            };
            self.table.place(number, cpu);
        }
        Ok(())
    }

    /// Interfaces with the program.
    pub fn interfaces(&self) -> impl Iterator<Item = &InterfaceName> {
        self.attached.iter().map(|attached| &attached.interface)
    }

    /// The table of receivers.
    pub fn table(&mut self) -> &mut Table {
        &mut self.table
    }

    /// Counters of the program. They continue to count as long as the program exists.
    #[must_use]
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// Urgencies of the classes.
    pub fn urgencies(&self) -> impl Iterator<Item = Urgency> + '_ {
        self.classes.iter().map(|class| class.urgency)
    }

    /// Gives a class's threads another urgency.
    ///
    /// # Errors
    /// Fails when there is no such class, or a thread is missing or cannot be changed.
    pub fn set_urgency(&mut self, class: u8, urgency: Urgency) -> Result<(), ExactError> {
        let classes = self.classes.len();
        let Some(changed) = self.classes.get_mut(usize::from(class)) else {
            let classes = classes as u8;
            return Err(TableError::Class { class, classes }.into());
        };
        changed.urgency = urgency;
        changed.schedule(class)
    }

    /// Sets the urgencies of the classes, ascending, and adds classes if there are more; existing
    /// classes stay.
    ///
    /// # Errors
    /// Fails when there are fewer than now, or more than eight. After other errors
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

    /// Kernel threads of the classes, by class and CPU: their run time is the cost of the classes'
    /// bottom halves.
    ///
    /// # Errors
    /// Fails when /proc cannot be read.
    pub fn threads(&self) -> Result<Vec<ClassThread>, ExactError> {
        let numbers = self.classes.iter().map(|class| class.number);
        classes::find(&(0..).zip(numbers).collect::<Vec<_>>())
    }

    /// The same threads as they were when their policy was set last, without reading all of /proc;
    /// some may have ended since.
    pub fn scheduled(&self) -> impl Iterator<Item = ClassThread> + '_ {
        self.classes
            .iter()
            .flat_map(|class| class.threads.iter().copied())
    }

    /// Opens the XDP program, for uses that are not offered here.
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

    /// Runs the program on a frame of 14 bytes or more (BPF_PROG_RUN), on this CPU and without a
    /// real packet. Returns its result and its time, the mean of `times` runs. The counters count
    /// these runs.
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
