// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads and attaches the BPF programs of src/bpf/follow.bpf.c, and reads their records.
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use libbpf_rs::{
    Link, MapCore, MapFlags, MapHandle, Object, ObjectBuilder, RingBuffer, RingBufferBuilder,
};

use super::cgroup;
use super::record::{self, Record};
use crate::iterator::{self, Scope};
use crate::object::{map, program};

/// Reason why receivers cannot be followed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel refuses a BPF program.
    #[error("the kernel refuses the BPF programs that follow receivers: {0}")]
    Programs(#[from] libbpf_rs::Error),
    /// There is no cgroup v2 to attach to.
    #[error("sockets cannot be followed without cgroup v2: {0}")]
    Cgroup(io::Error),
    /// This process is not in the first process namespace.
    #[error(
        "receivers can be followed only from the first process namespace (a container with the host's: --pid=host), since BPF programs name processes by its \
         numbers"
    )]
    ProcessNamespace,
    /// A scan has failed.
    #[error("the open files of the system cannot be read: {0}")]
    Scan(io::Error),
}

/// Programs that are attached to a cgroup. All others but the iterators are attached to what the
/// names of their sections say.
const IN_CGROUP: [&str; 4] = [
    "follow_bind4",
    "follow_bind6",
    "follow_release",
    "follow_egress",
];
const ITERATORS: [&str; 2] = ["follow_files", "follow_threads"];

type Queue = Arc<Mutex<VecDeque<Record>>>;

/// The iterators and, if events are wanted, the attached programs that report them.
pub(super) struct FollowPrograms {
    queue: Queue,
    /// The buffer reads memory of `_object`, so it must be dropped first.
    events: Option<RingBuffer<'static>>,
    lost: MapHandle,
    files: OwnedFd,
    threads: OwnedFd,
    _links: Vec<Link>,
    _object: Object,
}

/// Which events the programs report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventScope {
    /// No events. Only scans are possible.
    Scans,
    /// All events.
    Events,
}

impl FollowPrograms {
    /// Loads the programs. Attaches those that report events if `scope` asks for events.
    pub fn load(scope: EventScope) -> Result<Self, Error> {
        if !is_first_process_namespace() {
            return Err(Error::ProcessNamespace);
        }
        let mut open = ObjectBuilder::default()
            .open_memory(include_bytes!(concat!(env!("OUT_DIR"), "/follow.bpf.o")))?;
        for mut program in open.progs_mut() {
            let name = program.name().to_string_lossy().into_owned();
            program.set_autoload(scope == EventScope::Events || ITERATORS.contains(&&*name));
        }
        let object = open.load()?;
        let queue = Queue::default();
        let mut links = Vec::new();
        let mut events = None;
        if scope == EventScope::Events {
            events = Some(read_events(&object, queue.clone())?);
            links = attach(&object)?;
        }
        let iterator = |name: &str| {
            let program = program(&object, name)?;
            program.as_fd().try_clone_to_owned().map_err(Error::Scan)
        };
        Ok(Self {
            queue,
            events,
            lost: MapHandle::try_from(&map(&object, "lost")?)?,
            files: iterator("follow_files")?,
            threads: iterator("follow_threads")?,
            _links: links,
            _object: object,
        })
    }

    /// Waits for an event, for at most `timeout`, and returns all events up to now.
    pub fn events(&self, timeout: Duration) -> Result<Vec<Record>, Error> {
        if let Some(events) = &self.events {
            // The call takes whole milliseconds. The time is rounded up, since a wait that is too
            // short would be repeated in a busy loop.
            let result = events.poll_raw(timeout + Duration::from_micros(999));
            // A signal ends the wait early, which is no error.
            if result < 0 && -result != libc::EINTR {
                return Err(libbpf_rs::Error::from_raw_os_error(-result).into());
            }
        }
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(queue.drain(..).collect())
    }

    /// Descriptor that is readable when there are events.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        let events = self.events.as_ref()?;
        // SAFETY: the descriptor belongs to the ring buffer, which lives as long as the borrow of
        // `self`.
        Some(unsafe { BorrowedFd::borrow_raw(events.epoll_fd()) })
    }

    /// Number of events that were lost so far, since the buffer was full.
    pub fn lost(&self) -> Result<u64, Error> {
        let value = self.lost.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY)?;
        let count = value.and_then(|bytes| <[u8; 8]>::try_from(bytes).ok());
        Ok(u64::from_ne_bytes(count.unwrap_or_default()))
    }

    /// Returns all bound sockets of all processes, or of the process `scope`, and the threads of
    /// the processes that have such sockets. A process that has ended has none.
    pub fn scan(&self, scope: Option<u32>) -> Result<Vec<Record>, Error> {
        let mut records = Vec::new();
        // The files come first, since that scan marks the processes whose threads the second scan
        // reports.
        for program in [&self.files, &self.threads] {
            match iterator::read(program, scope.map_or(Scope::All, Scope::Process)) {
                Ok(bytes) => records.extend(
                    bytes
                        .chunks_exact(record::LENGTH)
                        .filter_map(Record::decode),
                ),
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(error) => return Err(Error::Scan(error)),
            }
        }
        Ok(records)
    }
}

/// Whether this process is in the first process namespace. The kernel gives that the number
/// PROC_PID_INIT_INO of <linux/proc_ns.h>.
fn is_first_process_namespace() -> bool {
    use std::os::unix::fs::MetadataExt;
    const FIRST: u64 = 0xefff_fffc;
    std::fs::metadata("/proc/self/ns/pid").is_ok_and(|namespace| namespace.ino() == FIRST)
}

fn read_events(object: &Object, queue: Queue) -> Result<RingBuffer<'static>, Error> {
    let records = map(object, "records")?;
    let mut builder = RingBufferBuilder::new();
    builder.add(&records, move |bytes| {
        let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.extend(Record::decode(bytes));
        0
    })?;
    Ok(builder.build()?)
}

/// Attaches the programs that report events. The kernel detaches them when the links are dropped,
/// or when the process ends, even if it is killed.
fn attach(object: &Object) -> Result<Vec<Link>, Error> {
    let root = cgroup::root().map_err(Error::Cgroup)?;
    let mut links = Vec::new();
    for program in object.progs_mut() {
        let name = program.name().to_string_lossy().into_owned();
        if !program.autoload() || ITERATORS.contains(&&*name) {
            continue;
        }
        links.push(if IN_CGROUP.contains(&&*name) {
            program.attach_cgroup(root.as_raw_fd())?
        } else {
            program.attach()?
        });
    }
    Ok(links)
}
