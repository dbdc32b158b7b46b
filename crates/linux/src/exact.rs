// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mode exact (lee2010): an XDP program finds the receiver of each packet first and gives the
//! packet to the kernel thread of the receiver's class, which the kernel's own scheduler runs at
//! its place among all threads.
//!
//! What has no receiver in the [`Table`], ARP, clocks' packets (PTP), fragments, frames in several
//! buffers and what is malformed go on to the kernel as if no program were there, and are counted
//! by [`DemuxReason`]. lee2010 §4 asks for each packet who runs now; here a receiver has a class until
//! its urgency changes, so that its packets keep their order.
//!
//! A card that takes VLAN tags off before the program sees the frame (`rxvlan` of ethtool) hides
//! the VLAN priority from it.
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
pub use interface::{InterfaceName, There};
use layout::{CLASSES, COUNTS_WORDS, PORTS, SAME_CPU};
pub use table::{Table, TableError};

use crate::object::{self, Memory, program};
use crate::urgency::Urgency;

static PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/demux.bpf.o"));

/// On which CPU a class's bottom half runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Placement {
    /// On the one that the packet came in on: each class has a thread on every CPU, and what the
    /// card spreads over CPUs stays spread.
    #[default]
    Arrival,
    /// On one for each class.
    Fixed(Vec<u32>),
}

/// Packets that the queue of a class holds on each CPU if nothing is said.
pub const QUEUE: u32 = 256;

/// The same of the class of ordinary processes, where the packets wait of every socket that nobody
/// has named: what Linux itself lets wait for a processor (`net.core.netdev_max_backlog`).
pub const ORDINARY_QUEUE: u32 = 1_000;

/// What the kernel has room for at most in a queue of a CPUMAP.
pub const LONGEST_QUEUE: u32 = 16_384;

/// How mode exact is to be carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Packets that the queue of a class of an urgency holds on each CPU, 1 to [`LONGEST_QUEUE`];
    /// [`QUEUE`] or [`ORDINARY_QUEUE`] where nothing is said. A shorter one drops earlier, when
    /// nothing but the top half was spent on a packet.
    pub queues: BTreeMap<Urgency, u32>,
    /// Where bottom halves run.
    pub placement: Placement,
    /// Generic XDP, which any interface has: the kernel has spent most of its work on a packet
    /// before the program sees it.
    pub generic: bool,
}

impl Default for Options {
    /// Queues of [`QUEUE`] packets and one of [`ORDINARY_QUEUE`], where they arrive, native XDP.
    fn default() -> Self {
        Self {
            queues: BTreeMap::new(),
            placement: Placement::Arrival,
            generic: false,
        }
    }
}

impl Options {
    /// Packets that the queue of the class of `urgency` holds on each CPU.
    fn queue(&self, urgency: Urgency) -> u32 {
        let usual = if urgency == Urgency::ORDINARY {
            ORDINARY_QUEUE
        } else {
            QUEUE
        };
        self.queues.get(&urgency).copied().unwrap_or(usual)
    }
}

/// Why mode exact is not there.
#[derive(Debug, thiserror::Error)]
pub enum ExactError {
    /// Not 1 to 8 classes.
    #[error("{0} classes: mode exact has 1 to {CLASSES}")]
    Classes(usize),
    /// Not 1 to [`LONGEST_QUEUE`] packets.
    #[error("a queue of {0} packets: the kernel has 1 to {LONGEST_QUEUE}")]
    Queue(u32),
    /// Not one CPU for each class.
    #[error("{cpus} CPUs for {classes} classes: each class has one")]
    Placement {
        /// CPUs that were given.
        cpus: usize,
        /// Classes.
        classes: usize,
    },
    /// A class is to run on a CPU that does not.
    #[error("CPU {0} is not online")]
    Offline(u32),
    /// There is no such interface.
    #[error("there is no interface {0}")]
    NoInterface(InterfaceName),
    /// Another program is attached, and stays.
    #[error(
        "the XDP program `{name}` (number {number}) is attached to {interface} and is not replaced; detach it, or leave the interface out"
    )]
    Occupied {
        /// Where.
        interface: InterfaceName,
        /// The program's name.
        name: String,
        /// The program's number, as in `bpftool prog`.
        number: u32,
    },
    /// The driver has no XDP.
    #[error("the driver of {0} has no native XDP; mode native does without")]
    NotNative(InterfaceName),
    /// The driver or the kernel refuses, for example since the interface's MTU is too large for
    /// XDP.
    #[error("{interface} does not take an XDP program: {source}")]
    Refused {
        /// Where.
        interface: InterfaceName,
        /// Why.
        source: io::Error,
    },
    /// The network namespace cannot be entered.
    #[error("the network namespace {path} cannot be entered: {source}", path = path.display())]
    Namespace {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The kernel has not started a thread that it should have.
    #[error("there is no kernel thread {0}; is /proc that of the machine?")]
    NoThread(String),
    /// BPF fails.
    #[error("BPF: {0}")]
    Bpf(#[from] libbpf_rs::Error),
    /// The table.
    #[error(transparent)]
    Table(#[from] TableError),
    /// Something else of the system fails.
    #[error("{what}: {source}")]
    System {
        /// What was read or set.
        what: String,
        /// Why.
        source: io::Error,
    },
}

/// What the program does with a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It leaves it to the kernel.
    Left,
    /// It gives it to a class's kernel thread.
    Given,
}

/// Mode exact, as long as this lives: when it is dropped, or the process ends however it does, the
/// kernel takes the program off and ends its threads.
#[derive(Debug)]
pub struct Exact {
    // Dropped first: no packet comes any more when the rest goes.
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

/// The CPUMAPs, by class.
const MAPS: [&str; CLASSES] = [
    "class_0", "class_1", "class_2", "class_3", "class_4", "class_5", "class_6", "class_7",
];

/// Gives the maps as many elements as the machine needs: rows of counters for CPUs, and CPUs that
/// threads of classes can be on.
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
    /// Mode exact on one interface, with an empty table: so far it leaves every packet alone.
    /// `classes` are the urgencies of the classes, the first the lowest; [`add`](Self::add) adds
    /// further interfaces.
    ///
    /// # Errors
    /// [`ExactError`]; nothing is left behind then.
    pub fn attach(
        interface: impl Into<InterfaceName>,
        classes: &[Urgency],
        options: &Options,
    ) -> Result<Self, ExactError> {
        let mut exact = Self::load(classes, options)?;
        exact.add(interface)?;
        Ok(exact)
    }

    /// Loads the program, and starts the classes' threads, with no interface yet.
    ///
    /// # Errors
    /// [`ExactError`]; nothing is left behind then.
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
        // A mebibyte each, so for CPUs that may come, and not for those that may never be there.
        let last = classes::present()?.iter().last();
        let rows = last.map_or(1, |last| last + 1).min(cpus);
        let mut object = ObjectBuilder::default().open_memory(PROGRAM)?;
        size(&mut object, cpus as u32, rows as u32)?;
        let object = object.load()?;
        let memory = |name, words| {
            let map = handle(&object, name)?;
            Memory::new(&map, words).map_err(|source| ExactError::System {
                what: format!("the BPF array {name}"),
                source,
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
        .map_err(|source| ExactError::System {
            what: "the table".to_owned(),
            source,
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

    /// Has another interface served by the same table and threads: its network namespace must be
    /// that of the same receivers.
    ///
    /// # Errors
    /// [`ExactError`]; nothing is changed then.
    pub fn add(&mut self, interface: impl Into<InterfaceName>) -> Result<(), ExactError> {
        let attached = XdpAttachment::new(
            program(&self.object, "weir_demux")?.as_fd(),
            interface.into(),
            self.options.generic,
        )?;
        self.attached.push(attached);
        Ok(())
    }

    /// Takes the program off the interfaces that have vanished, and returns these; starts threads
    /// on CPUs that have come and ends those of CPUs that have gone. To be called now and then.
    /// Until it is, what goes to a CPU without a thread is left to the kernel
    /// ([`DemuxReason::NoThread`]).
    ///
    /// # Errors
    /// [`ExactError`]; to call it again tries again.
    pub fn settle(&mut self) -> Result<Vec<InterfaceName>, ExactError> {
        self.start_threads()?;
        self.table.publish()?;
        let mut gone = Vec::new();
        for attached in std::mem::take(&mut self.attached) {
            match attached.is_there() {
                Ok(false) => gone.push(attached.interface),
                // If the kernel does not tell, it stays until it does.
                Ok(true) | Err(_) => self.attached.push(attached),
            }
        }
        Ok(gone)
    }

    /// Has each class's threads on the CPUs that it is to have them on.
    fn start_threads(&mut self) -> Result<(), ExactError> {
        let online = classes::online()?;
        for (number, class) in self.classes.iter_mut().enumerate() {
            let wanted = classes::wanted(&self.options.placement, number, &online);
            class.settle(number as u8, &wanted, self.options.queue(class.urgency))?;
            let cpu = match &self.options.placement {
                Placement::Arrival => SAME_CPU,
                // A class that came later has no CPU of its own.
                Placement::Fixed(cpus) => cpus.get(number).copied().unwrap_or(SAME_CPU),
            };
            self.table.place(number, cpu);
        }
        Ok(())
    }

    /// The interfaces that have the program.
    pub fn interfaces(&self) -> impl Iterator<Item = &InterfaceName> {
        self.attached.iter().map(|attached| &attached.interface)
    }

    /// Who receives what.
    pub fn table(&mut self) -> &mut Table {
        &mut self.table
    }

    /// What the program has counted. Whoever keeps this sees it count on, as long as the program is
    /// there.
    #[must_use]
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// The classes' urgencies.
    pub fn urgencies(&self) -> impl Iterator<Item = Urgency> + '_ {
        self.classes.iter().map(|class| class.urgency)
    }

    /// Gives a class's threads another urgency.
    ///
    /// # Errors
    /// No such class, or a thread is not there or not to be changed.
    pub fn set_urgency(&mut self, class: u8, urgency: Urgency) -> Result<(), ExactError> {
        let classes = self.classes.len();
        let Some(changed) = self.classes.get_mut(usize::from(class)) else {
            let classes = classes as u8;
            return Err(TableError::Class { class, classes }.into());
        };
        changed.urgency = urgency;
        changed.schedule(class)
    }

    /// Gives the classes these urgencies, ascending, and adds classes for those that are more; the
    /// classes that there are stay.
    ///
    /// # Errors
    /// Fewer than there are, or more than eight; [`settle`](Self::settle) tries again what failed
    /// otherwise.
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

    /// The classes' kernel threads, by class and CPU: their run time is what the classes' bottom
    /// halves cost.
    ///
    /// # Errors
    /// /proc cannot be read.
    pub fn threads(&self) -> Result<Vec<ClassThread>, ExactError> {
        let numbers = self.classes.iter().map(|class| class.number);
        classes::find(&(0..).zip(numbers).collect::<Vec<_>>())
    }

    /// The same as they were found when they were last scheduled, without a look at all of /proc;
    /// some may have ended since.
    pub fn scheduled(&self) -> impl Iterator<Item = ClassThread> + '_ {
        self.classes
            .iter()
            .flat_map(|class| class.threads.iter().copied())
    }

    /// A descriptor of the XDP program, for what this does not do with it.
    ///
    /// # Errors
    /// There can be no more descriptors.
    pub fn program(&self) -> Result<OwnedFd, ExactError> {
        let program = program(&self.object, "weir_demux")?;
        let descriptor = program.as_fd().try_clone_to_owned();
        descriptor.map_err(|source| ExactError::System {
            what: "the program's descriptor".to_owned(),
            source,
        })
    }

    /// What the program does with a frame of 14 bytes or more, and its time for it, the mean of
    /// `times` runs: on this CPU, and without a packet (BPF_PROG_RUN). The counters count it.
    ///
    /// # Errors
    /// The frame is shorter, or longer than the kernel tries.
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
