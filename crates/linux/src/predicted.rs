// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mode predicted (zhang2006 §3.2). The bottom half of a device runs at the urgency of the most
//! urgent receiver that waits for a packet from the device, since the next packet is likely to be
//! for that receiver. As an option, it runs at the urgency of the most urgent of all receivers.
//!
//! In zhang2006 the kernel's scheduler does this. Here a BPF program traces threads that leave and
//! enter a CPU, and counts those that wait. When the most urgent class of a device's waiting
//! threads changes, the program wakes a thread of Weir. That thread sets the policy of the device's
//! NAPI thread to the latest class, so the policy never lags by more than one change. The costs of
//! both variants are in docs/linux-receivers.md.
mod programs;

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::receivers::{Reach, ReceiverTable};
use crate::sched::{self, SchedPolicy};
use crate::threads::{Thread, ThreadHandle};
use crate::urgency::Urgency;

pub use programs::DEVICES;
use programs::{SharedState, WaitPrograms};

/// Policy of the thread that sets urgencies. It is above all urgencies that the thread sets.
pub const SETTER: SchedPolicy = SchedPolicy::Fifo(99);

/// Highest urgency of a device's bottom half.
pub const MOST: Urgency = match Urgency::new(98) {
    Ok(most) => most,
    Err(_) => Urgency::MOST,
};

/// The receivers that decide the urgency of a device's bottom half.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Basis {
    /// The most urgent receiver that is waiting now, in a system call that receives or polls.
    /// Finding it makes every context switch slower.
    Waiting,
    /// The most urgent receiver, whether it waits or not. Finding it costs nothing while the table
    /// of receivers does not change.
    Registered,
}

/// A device, and how the urgency of its bottom half is set.
pub struct DeviceBottomHalf {
    /// Where the device's packets can get to.
    pub reach: Reach,
    /// Sets the urgency of the device's bottom half.
    pub set: Box<dyn FnMut(Urgency) -> io::Result<()> + Send>,
}

impl DeviceBottomHalf {
    /// Creates the entry for a bottom half that consists of kernel threads (`napi/INTERFACE-ID`
    /// and, on PREEMPT_RT, `irq/N-INTERFACE`).
    #[must_use]
    pub fn for_threads(reach: Reach, threads: &Threads) -> Self {
        let threads = threads.clone();
        Self {
            reach,
            set: Box::new(move |urgency| threads.set(urgency)),
        }
    }
}

/// The kernel threads of a device's bottom half. They can be replaced, since an interface that was
/// taken down and up has new threads.
#[derive(Debug, Clone)]
pub struct Threads {
    most: Urgency,
    held: Arc<Mutex<ThreadGroup>>,
}

#[derive(Debug, Default)]
struct ThreadGroup {
    /// Handles of the threads. The urgency of the threads may change with every packet, and reading
    /// /proc would cost more than the rest of such a change.
    threads: Vec<ThreadHandle>,
    /// Urgency to which the threads were last set. `None` if it was never set.
    urgency: Option<Urgency>,
}

impl Threads {
    /// Creates an empty group. None of its threads will get a higher urgency than `most`.
    #[must_use]
    pub fn new(most: Urgency) -> Self {
        Self {
            most,
            held: Arc::default(),
        }
    }

    /// Replaces the threads. New threads get the urgency of the others.
    ///
    /// # Errors
    /// Fails when a thread's policy cannot be set.
    pub fn replace(&self, threads: Vec<Thread>) -> io::Result<()> {
        let mut held = self.group();
        held.threads.retain(|one| threads.contains(&one.thread));
        for thread in threads {
            if held.threads.iter().any(|one| one.thread == thread) {
                continue;
            }
            let Some(new) = ThreadHandle::new(thread)? else {
                continue;
            };
            if let Some(urgency) = held.urgency {
                give(&new, urgency)?;
            }
            held.threads.push(new);
        }
        held.threads.sort_by_key(|one| one.thread);
        Ok(())
    }

    /// The threads in ascending order. Threads that had ended when they were passed to `replace`
    /// are not included.
    #[must_use]
    pub fn get(&self) -> Vec<Thread> {
        let held = self.group();
        held.threads.iter().map(|one| one.thread).collect()
    }

    /// The urgency of the threads. `None` if it was never set.
    #[must_use]
    pub fn urgency(&self) -> Option<Urgency> {
        self.group().urgency
    }

    fn set(&self, urgency: Urgency) -> io::Result<()> {
        let urgency = urgency.min(self.most);
        let mut held = self.group();
        held.urgency = Some(urgency);
        let mut threads = held.threads.iter();
        threads.try_for_each(|thread| give(thread, urgency))
    }

    fn group(&self) -> MutexGuard<'_, ThreadGroup> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sets the urgency of a thread, unless the thread has ended.
fn give(held: &ThreadHandle, urgency: Urgency) -> io::Result<()> {
    if held.has_ended()? {
        return Ok(());
    }
    match sched::set(held.thread.tid, urgency.policy()) {
        // The thread has ended since it was checked above.
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
        other => other,
    }
}

/// Reason why the mode cannot be started or kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel refuses a BPF program.
    #[error("the kernel refuses the BPF programs that follow waiting threads: {0}")]
    Programs(#[from] libbpf_rs::Error),
    /// There are too many devices.
    #[error("the mode `predicted` serves {DEVICES} devices at most, and there are {0}")]
    Devices(usize),
    /// A bottom half's urgency cannot be set.
    #[error("the urgency of a device's bottom half cannot be set: {0}")]
    Set(io::Error),
    /// The thread that sets urgencies cannot be started, or cannot get its policy.
    #[error("the thread that sets urgencies cannot be started: {0}")]
    Start(io::Error),
}

/// Mode predicted while it is on. Dropping it does not change the bottom halves: the journal of
/// settings restores them.
pub struct Prediction {
    reaches: Vec<Reach>,
    way: PredictionSource,
    changes: Arc<AtomicU64>,
}

enum PredictionSource {
    Waiting(WaitWatcher),
    Registered(Vec<BottomHalf>),
}

impl Prediction {
    /// Starts the mode. [`update`](Self::update) must be called next. If `setter` is given, it
    /// becomes the policy of the thread that sets urgencies. [`SETTER`] is above all urgencies that
    /// the thread sets.
    ///
    /// # Errors
    /// Fails when the kernel refuses the programs (they need CAP_BPF and CAP_PERFMON), when there
    /// are more than [`DEVICES`] devices, or without CAP_SYS_NICE.
    pub fn start(
        devices: Vec<DeviceBottomHalf>,
        basis: Basis,
        setter: Option<SchedPolicy>,
    ) -> Result<Self, Error> {
        if devices.len() > DEVICES {
            return Err(Error::Devices(devices.len()));
        }
        let reaches = devices.iter().map(|device| device.reach).collect();
        let changes = Arc::new(AtomicU64::new(0));
        let sets = devices.into_iter().map(|device| BottomHalf {
            set: device.set,
            now: None,
            changes: changes.clone(),
        });
        let sets = sets.collect();
        let way = match basis {
            Basis::Registered => PredictionSource::Registered(sets),
            Basis::Waiting => PredictionSource::Waiting(WaitWatcher::start(sets, setter)?),
        };
        Ok(Self {
            reaches,
            way,
            changes,
        })
    }

    /// Takes over the receivers of `table`. Call this after each
    /// [`poll`](crate::receivers::Follower::poll).
    ///
    /// # Errors
    /// Fails when a bottom half's urgency could not be set, now or since the last call. Also fails
    /// when the kernel has no room for another receiver.
    pub fn update(&mut self, table: &ReceiverTable) -> Result<(), Error> {
        match &mut self.way {
            PredictionSource::Registered(sets) => {
                for (set, reach) in sets.iter_mut().zip(&self.reaches) {
                    let most = table.urgencies(reach).last().copied();
                    set.set_urgency(most.unwrap_or(Urgency::ORDINARY))
                        .map_err(Error::Set)?;
                }
                Ok(())
            }
            PredictionSource::Waiting(waiting) => waiting.register(table.waiters(&self.reaches)),
        }
    }

    /// Replaces the reach of a device. Devices are counted from 0.
    pub fn set_reach(&mut self, device: usize, reach: Reach) {
        if let Some(known) = self.reaches.get_mut(device) {
            *known = reach;
        }
    }

    /// Number of threads that wait for a packet from a device. `None` with [`Basis::Registered`],
    /// which does not count them.
    #[must_use]
    pub fn waiting(&self, device: usize) -> Option<u32> {
        match &self.way {
            PredictionSource::Registered(_) => None,
            PredictionSource::Waiting(waiting) => Some(waiting.programs.shared().waiting(device)),
        }
    }

    /// Number of times that a bottom half's urgency has been set.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }
}

/// The bottom half of one device, with its present urgency.
struct BottomHalf {
    set: Box<dyn FnMut(Urgency) -> io::Result<()> + Send>,
    now: Option<Urgency>,
    changes: Arc<AtomicU64>,
}

impl BottomHalf {
    fn set_urgency(&mut self, urgency: Urgency) -> io::Result<()> {
        if self.now == Some(urgency) {
            return Ok(());
        }
        self.now = Some(urgency);
        self.changes.fetch_add(1, Ordering::Relaxed);
        (self.set)(urgency)
    }
}

/// Follows which receivers wait: the BPF programs, and the thread that sets urgencies.
struct WaitWatcher {
    programs: WaitPrograms,
    /// Registered threads, each with its urgency and a bit for each of its devices.
    registered: BTreeMap<u32, (Urgency, u8)>,
    failed: Arc<Mutex<Option<io::Error>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl WaitWatcher {
    fn start(mut sets: Vec<BottomHalf>, setter: Option<SchedPolicy>) -> Result<Self, Error> {
        let programs = WaitPrograms::load()?;
        let (bell, shared) = (programs.bell()?, programs.shared());
        let failed = Arc::new(Mutex::new(None));
        let stop = Arc::new(AtomicBool::new(false));
        let (failures, stopped) = (failed.clone(), stop.clone());
        let (ready, is_ready) = std::sync::mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("weir-predict".to_owned())
            .spawn(move || {
                let result = setter.map_or(Ok(()), |policy| sched::set(0, policy));
                let is_fine = result.is_ok();
                // `start` waits for this result.
                let _ = ready.send(result);
                while is_fine && !stopped.load(Ordering::Relaxed) {
                    if let Err(error) = follow(&shared, &mut sets) {
                        let mut failure = failures.lock().unwrap_or_else(PoisonError::into_inner);
                        *failure = Some(error);
                    }
                    // The wait also ends after 100 ms without the bell, so that the thread notices
                    // `stopped`.
                    bell.poll_raw(Duration::from_millis(100));
                }
            })
            .map_err(Error::Start)?;
        let begun = is_ready.recv().map_err(io::Error::other);
        begun.and_then(|result| result).map_err(Error::Start)?;
        Ok(Self {
            programs,
            registered: BTreeMap::new(),
            failed,
            stop,
            thread: Some(thread),
        })
    }

    fn register(&mut self, wanted: BTreeMap<u32, (Urgency, u8)>) -> Result<(), Error> {
        for tid in self.registered.keys() {
            if !wanted.contains_key(tid) {
                self.programs.register(*tid, Urgency::ORDINARY, 0)?;
            }
        }
        for (tid, (urgency, devices)) in &wanted {
            let before = self.registered.get(tid);
            if before != Some(&(*urgency, *devices)) {
                self.programs.register(*tid, *urgency, *devices)?;
            }
            if before.is_none() {
                self.programs.look_at(*tid)?;
            }
        }
        self.registered = wanted;
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.take().map_or(Ok(()), |error| Err(Error::Set(error)))
    }
}

impl Drop for WaitWatcher {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // An error means that the thread has panicked, which has been printed already.
            let _ = thread.join();
        }
    }
}

/// Gives every device the urgency of its most urgent waiting receiver, until no urgency changes any
/// more.
fn follow(shared: &SharedState, sets: &mut [BottomHalf]) -> io::Result<()> {
    shared.answer();
    for (device, set) in sets.iter_mut().enumerate() {
        loop {
            let most = shared.most_urgent(device);
            if set.now == Some(most) {
                break;
            }
            // The urgency is set first, and then the BPF program is informed. Until then the
            // program compares with the old urgency, and may not report a change. The next round of
            // this loop sees such a change.
            set.set_urgency(most)?;
            shared.applied(device, most);
        }
    }
    Ok(())
}
