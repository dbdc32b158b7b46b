// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mode predicted (zhang2006 §3.2): the bottom half of a device runs at the urgency of the most
//! urgent receiver that waits for a packet from it, since the next one is likely to be for that
//! receiver; or, as an option, of the most urgent one that there is.
//!
//! zhang2006 does this inside the kernel's scheduler. Here a BPF program sees threads leave and
//! enter the CPU, counts who waits, and wakes a thread of ours when the most urgent class of a
//! device becomes another one; that thread sets the policy of the device's NAPI thread. It sets the
//! latest, so however often receivers wait and run, it never lags by more than one change. What
//! both ways cost is in docs/linux-receivers.md.
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

/// What the thread that sets urgencies is scheduled by: above all that it sets.
pub const SETTER: SchedPolicy = SchedPolicy::Fifo(99);

/// The highest urgency that a device's bottom half may be given.
pub const MOST: Urgency = match Urgency::new(98) {
    Ok(most) => most,
    Err(_) => Urgency::MOST,
};

/// Whose urgency a device's bottom half has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Basis {
    /// That of the most urgent receiver that waits now, in a system call that receives or polls.
    /// Every switch of the CPU between threads pays for it.
    Waiting,
    /// That of the most urgent receiver there is, whether it waits or not. Costs nothing between
    /// the changes of the table.
    Registered,
}

/// A device whose bottom half is to be as urgent as its receivers.
pub struct DeviceBottomHalf {
    /// From which receivers are its own.
    pub reach: Reach,
    /// Gives the bottom half an urgency.
    pub set: Box<dyn FnMut(Urgency) -> io::Result<()> + Send>,
}

impl DeviceBottomHalf {
    /// A device whose bottom half is the work of these kernel threads (`napi/INTERFACE-ID` and, on
    /// PREEMPT_RT, `irq/N-INTERFACE`).
    #[must_use]
    pub fn of_threads(reach: Reach, threads: &Threads) -> Self {
        let threads = threads.clone();
        Self {
            reach,
            set: Box::new(move |urgency| threads.set(urgency)),
        }
    }
}

/// The kernel threads that do a device's bottom half, which may become others: an interface that
/// was taken down and up has new ones.
#[derive(Debug, Clone)]
pub struct Threads {
    most: Urgency,
    held: Arc<Mutex<ThreadGroup>>,
}

#[derive(Debug, Default)]
struct ThreadGroup {
    /// Held, since their urgency changes with every packet at worst, and a look at /proc costs more
    /// than all the rest of a change.
    threads: Vec<ThreadHandle>,
    /// What they were given last; `None`: nothing yet.
    urgency: Option<Urgency>,
}

impl Threads {
    /// None yet; none of them will run at a higher urgency than `most`.
    #[must_use]
    pub fn new(most: Urgency) -> Self {
        Self {
            most,
            held: Arc::default(),
        }
    }

    /// These from now on. Those that are new get the urgency that the others have.
    ///
    /// # Errors
    /// When a thread's policy cannot be set.
    pub fn replace(&self, threads: Vec<Thread>) -> io::Result<()> {
        let mut held = self.held();
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

    /// Those that were given last, ascending, but for those that had ended by then.
    #[must_use]
    pub fn get(&self) -> Vec<Thread> {
        let held = self.held();
        held.threads.iter().map(|one| one.thread).collect()
    }

    /// The urgency that they have; `None`: they were given none yet.
    #[must_use]
    pub fn urgency(&self) -> Option<Urgency> {
        self.held().urgency
    }

    fn set(&self, urgency: Urgency) -> io::Result<()> {
        let urgency = urgency.min(self.most);
        let mut held = self.held();
        held.urgency = Some(urgency);
        let mut threads = held.threads.iter();
        threads.try_for_each(|thread| give(thread, urgency))
    }

    fn held(&self) -> MutexGuard<'_, ThreadGroup> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A thread that is gone is left out.
fn give(held: &ThreadHandle, urgency: Urgency) -> io::Result<()> {
    if held.has_ended()? {
        return Ok(());
    }
    match sched::set(held.thread.tid, urgency.policy()) {
        // It has ended just now.
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
        other => other,
    }
}

/// Why the mode cannot be started or kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel does not take a BPF program.
    #[error("the kernel does not take the BPF programs that see who waits: {0}")]
    Programs(#[from] libbpf_rs::Error),
    /// There are too many devices.
    #[error("{0} devices; at most {DEVICES} can be predicted for")]
    Devices(usize),
    /// A bottom half's urgency cannot be set.
    #[error("the urgency of a device's bottom half cannot be set: {0}")]
    Set(#[source] io::Error),
    /// The thread that sets urgencies cannot be started, or not as urgent as wanted.
    #[error("the thread that sets urgencies cannot be started: {0}")]
    Start(#[source] io::Error),
}

/// The mode while it is on. Dropping it leaves the bottom halves as they are: the journal of
/// settings knows what they were.
pub struct Prediction {
    reaches: Vec<Reach>,
    way: PredictionSource,
    changes: Arc<AtomicU64>,
}

enum PredictionSource {
    Waiting(WaitWatcher),
    Registered(Vec<Set>),
}

impl Prediction {
    /// Starts it; call [`update`](Self::update) next. The thread that sets urgencies has the policy
    /// `setter`, if one is given: [`SETTER`] is above all that it sets.
    ///
    /// # Errors
    /// When the kernel does not take the programs (CAP_BPF and CAP_PERFMON are needed), when there
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
        let sets = devices.into_iter().map(|device| Set {
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

    /// Takes over who the receivers are. To be called after each
    /// [`poll`](crate::receivers::Follower::poll).
    ///
    /// # Errors
    /// When a bottom half's urgency could not be set, now or since the last call, or the kernel has
    /// no room for another receiver.
    pub fn update(&mut self, table: &ReceiverTable) -> Result<(), Error> {
        match &mut self.way {
            PredictionSource::Registered(sets) => {
                for (set, reach) in sets.iter_mut().zip(&self.reaches) {
                    let most = table.urgencies(reach).last().copied();
                    set.to(most.unwrap_or(Urgency::ORDINARY))
                        .map_err(Error::Set)?;
                }
                Ok(())
            }
            PredictionSource::Waiting(waiting) => waiting.register(table.waiters(&self.reaches)),
        }
    }

    /// From which receivers the device of this number is, counted from 0, has changed.
    pub fn set_reach(&mut self, device: usize, reach: Reach) {
        if let Some(known) = self.reaches.get_mut(device) {
            *known = reach;
        }
    }

    /// How many threads wait for a packet from the device of this number; `None` with
    /// [`Basis::Registered`], where nobody counts them.
    #[must_use]
    pub fn waiting(&self, device: usize) -> Option<u32> {
        match &self.way {
            PredictionSource::Registered(_) => None,
            PredictionSource::Waiting(waiting) => Some(waiting.programs.shared().waiting(device)),
        }
    }

    /// How often a bottom half's urgency was set until now.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }
}

/// One device's bottom half.
struct Set {
    set: Box<dyn FnMut(Urgency) -> io::Result<()> + Send>,
    now: Option<Urgency>,
    changes: Arc<AtomicU64>,
}

impl Set {
    fn to(&mut self, urgency: Urgency) -> io::Result<()> {
        if self.now == Some(urgency) {
            return Ok(());
        }
        self.now = Some(urgency);
        self.changes.fetch_add(1, Ordering::Relaxed);
        (self.set)(urgency)
    }
}

/// The part that sees who waits.
struct WaitWatcher {
    programs: WaitPrograms,
    /// What is registered: threads with their urgency and devices.
    registered: BTreeMap<u32, (Urgency, u8)>,
    failed: Arc<Mutex<Option<io::Error>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl WaitWatcher {
    fn start(mut sets: Vec<Set>, setter: Option<SchedPolicy>) -> Result<Self, Error> {
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
                // Whoever starts the thread waits for this.
                let _ = ready.send(result);
                while is_fine && !stopped.load(Ordering::Relaxed) {
                    if let Err(error) = follow(&shared, &mut sets) {
                        let mut failure = failures.lock().unwrap_or_else(PoisonError::into_inner);
                        *failure = Some(error);
                    }
                    // The wait ends also without the bell, to see whether it is to stop.
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
            // A panic of it was printed when it happened.
            let _ = thread.join();
        }
    }
}

/// Gives every device the urgency of its most urgent waiting receiver, until none is another one
/// any longer.
fn follow(shared: &SharedState, sets: &mut [Set]) -> io::Result<()> {
    shared.answer();
    for (device, set) in sets.iter_mut().enumerate() {
        loop {
            let most = shared.most_urgent(device);
            if set.now == Some(most) {
                break;
            }
            // Before the kernel is told: what the program compares with the urgency before, the
            // next round of the loop sees.
            set.to(most)?;
            shared.applied(device, most);
        }
    }
    Ok(())
}
