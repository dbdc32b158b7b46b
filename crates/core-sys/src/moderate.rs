// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interrupt moderation (`include/weir/moderate.h`, behnke2022 §2.2). A type parameter chooses the
//! tick width.

use std::ffi::c_void;
use std::marker::PhantomData;

use crate::Width;
use crate::moderate_ffi::{self as ffi, Functions, RawQueue, RawQueueState};

/// The configuration of a queue: `weir_moderate_config_t`. If `absolute` is `None`, the queue
/// interrupts as soon as a packet waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QueueConfig {
    /// The longest time in ticks for which a packet waits for an interrupt, counted from the first
    /// packet of the window; at least 1, and below half a wrap.
    pub absolute: Option<u64>,
    /// The queue interrupts after this many ticks without a packet; 1 to `absolute`, which must be
    /// set.
    pub packet: Option<u64>,
    /// The queue interrupts when this many packets wait; 1 to `size`. Above 1, `absolute` must be
    /// set.
    pub count: Option<u32>,
    /// The most packets that can wait, 1 to 65,535; further ones are dropped.
    pub size: u32,
}

/// Why the parameters of a queue are rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueError {
    /// The size is 0 or above 65,535.
    Size,
    /// The absolute timer is 0 or at least half a wrap, or it is missing although a packet timer or
    /// a count needs it.
    Absolute,
    /// The packet timer is 0 or longer than the absolute one.
    Packet,
    /// The count is 0 or above the size.
    Count,
    /// There are more than 65,535 queues.
    Queues,
}

impl std::fmt::Display for QueueError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            QueueError::Size => "the size of a queue must be 1 to 65535 packets",
            QueueError::Absolute => {
                "the absolute timer must be at least 1 tick and below half a wrap of the timer; a packet timer, or a count above 1, needs one, \
                 since alone it may let packets wait for ever"
            }
            QueueError::Packet => "the packet timer must be at least 1 tick and at most the absolute timer",
            QueueError::Count => "the count must be at least 1 packet and at most the size of the queue",
            QueueError::Queues => "there may be at most 65535 queues",
        })
    }
}

impl std::error::Error for QueueError {}

fn result(code: u32) -> Result<(), QueueError> {
    match code {
        0 => Ok(()),
        1 => Err(QueueError::Size),
        2 => Err(QueueError::Absolute),
        3 => Err(QueueError::Packet),
        _ => Err(QueueError::Count),
    }
}

fn functions<W: Width>() -> &'static Functions {
    match W::BITS {
        16 => &ffi::BITS16,
        32 => &ffi::BITS32,
        _ => &ffi::BITS64,
    }
}

impl QueueConfig {
    fn raw(&self) -> Result<RawQueue, QueueError> {
        // In C, 0 stands for "none", so it is rejected as a value.
        let nonzero = |value: Option<u64>, error| match value {
            Some(0) => Err(error),
            value => Ok(value.unwrap_or(0)),
        };
        let count = nonzero(self.count.map(u64::from), QueueError::Count)?;
        Ok(RawQueue {
            absolute: nonzero(self.absolute, QueueError::Absolute)?,
            packet: nonzero(self.packet, QueueError::Packet)?,
            size: u16::try_from(self.size).map_err(|_| QueueError::Size)?,
            count: u16::try_from(count).map_err(|_| QueueError::Count)?,
        })
    }

    /// Calls `weir_moderate_check()` for the width `W`.
    ///
    /// # Errors
    /// Fails if a parameter is not valid, or if a timer does not fit the width.
    pub fn check<W: Width>(&self) -> Result<(), QueueError> {
        self.checked::<W>().map(|_| ())
    }

    fn checked<W: Width>(&self) -> Result<RawQueue, QueueError> {
        let raw = self.raw()?;
        if W::wrap(raw.absolute) != raw.absolute {
            return Err(QueueError::Absolute);
        }
        if W::wrap(raw.packet) != raw.packet {
            return Err(QueueError::Packet);
        }
        // SAFETY: `raw` lives through the call; both sides assert its layout.
        result(unsafe { (functions::<W>().check)(&raw const raw) })?;
        Ok(raw)
    }
}

/// What happens to a packet: `weir_moderate_step_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    /// True if the packet waits in the queue. False if the queue was full and the packet is
    /// dropped.
    pub accepted: bool,
    /// Whether the queue interrupts now.
    pub interrupt: bool,
}

/// The counters of a queue since it was started. They wrap at 2³².
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct QueueRecord {
    /// Packets that the queue accepted.
    pub accepted: u32,
    /// Packets dropped because the queue was full.
    pub dropped: u32,
    /// How often the queue raised its interrupt.
    pub interrupts: u32,
}

/// The moderated queues of one network card, identified by index. A clone is independent and in the
/// same state. Instants are reduced modulo the width.
#[derive(Clone, Debug)]
pub struct Moderator<W: Width> {
    /// An array of `weir_moderate_t`.
    memory: Vec<u64>,
    queues: u16,
    width: PhantomData<W>,
}

impl<W: Width> Moderator<W> {
    /// Calls `weir_moderate_start()` for each queue. The queues are empty, and all counters are 0.
    ///
    /// # Errors
    /// Fails as [`QueueConfig::check`] does, or with [`QueueError::Queues`].
    ///
    /// # Panics
    /// Panics only if the C file needs an alignment above 8 bytes, which it does not.
    pub fn new(configs: &[QueueConfig]) -> Result<Self, QueueError> {
        let queues = u16::try_from(configs.len()).map_err(|_| QueueError::Queues)?;
        let functions = functions::<W>();
        // SAFETY: both functions take no argument and touch no memory.
        let (size, alignment) = unsafe { ((functions.size)(), (functions.alignment)()) };
        assert!(alignment <= align_of::<u64>());
        let mut moderator = Moderator {
            memory: vec![0; (size * configs.len()).div_ceil(8)],
            queues,
            width: PhantomData,
        };
        for (queue, config) in (0..queues).zip(configs) {
            let raw = config.checked::<W>()?;
            // SAFETY: `memory` holds `queues` queues of `size` bytes, suitably aligned (asserted
            // above), and `queue` is below that; `raw` lives through the call.
            unsafe { (functions.start)(moderator.pointer(), queue, &raw const raw) };
        }
        Ok(moderator)
    }

    fn pointer(&mut self) -> *mut c_void {
        self.memory.as_mut_ptr().cast()
    }

    /// Checks the queue's index and converts it for C.
    fn index(&self, queue: usize) -> u16 {
        assert!(
            queue < usize::from(self.queues),
            "queue {queue} of {}",
            self.queues
        );
        queue as u16
    }

    fn read(&self, queue: usize) -> RawQueueState {
        let queue = self.index(queue);
        let mut raw = RawQueueState::default();
        // SAFETY: `queue` is a started queue of `memory`; `raw` lives through the call; the
        // function only reads `memory`.
        unsafe { (functions::<W>().read)(self.memory.as_ptr().cast(), queue, &raw mut raw) };
        raw
    }

    /// Returns the number of queues.
    #[must_use]
    pub fn queues(&self) -> usize {
        usize::from(self.queues)
    }

    /// Calls `weir_moderate_arrive()`: a packet arrives for this queue.
    ///
    /// # Panics
    /// Panics if the queue does not exist. The same holds for all functions that take a queue.
    pub fn arrive(&mut self, queue: usize, now: u64) -> Admission {
        let queue = self.index(queue);
        // SAFETY: `queue` is a started queue of `memory`.
        let step = unsafe { (functions::<W>().arrive)(self.pointer(), queue, now) };
        Admission {
            accepted: step & 1 != 0,
            interrupt: step & 2 != 0,
        }
    }

    /// Calls `weir_moderate_expired()`: iterates, in ascending order, over the queues whose timers
    /// are due. Each of them interrupts now. Queues that the caller does not reach stay due.
    pub fn due(&mut self, now: u64) -> impl Iterator<Item = usize> {
        let mut from = 0;
        std::iter::from_fn(move || {
            let (count, memory) = (self.queues, self.pointer());
            // SAFETY: `memory` holds `count` started queues, and `from` is at most `count`.
            let found = unsafe { (functions::<W>().expired)(memory, count, from, now) };
            from = found.saturating_add(1).min(count);
            (found < count).then_some(usize::from(found))
        })
    }

    /// Calls `weir_moderate_take()`: the queue's interrupt takes up to `count` packets and ends.
    /// Returns true iff the queue interrupts again at once.
    #[must_use = "the queue may interrupt again"]
    pub fn take(&mut self, queue: usize, count: u32, now: u64) -> bool {
        self.remove(queue, count);
        self.done(queue, now)
    }

    /// Calls `weir_moderate_remove()`: takes up to `count` packets without ending the interrupt.
    /// Returns how many were taken.
    pub fn remove(&mut self, queue: usize, count: u32) -> u32 {
        let queue = self.index(queue);
        let count = u16::try_from(count).unwrap_or(u16::MAX);
        // SAFETY: as in `arrive`.
        unsafe { (functions::<W>().remove)(self.pointer(), queue, count) }.into()
    }

    /// Calls `weir_moderate_done_with()`: the queue's interrupt has ended. Returns true iff the
    /// queue interrupts again at once.
    #[must_use = "the queue may interrupt again"]
    pub fn done(&mut self, queue: usize, now: u64) -> bool {
        let queue = self.index(queue);
        // SAFETY: as in `arrive`.
        unsafe { (functions::<W>().done)(self.pointer(), queue, now) }
    }

    /// Calls `weir_moderate_reconfigure()`. Returns true iff the queue interrupts now.
    ///
    /// # Errors
    /// Fails as [`QueueConfig::check`] does, and then changes nothing.
    pub fn reconfigure(
        &mut self,
        queue: usize,
        to: &QueueConfig,
        now: u64,
    ) -> Result<bool, QueueError> {
        let queue = self.index(queue);
        let raw = to.checked::<W>()?;
        let mut interrupt = false;
        // SAFETY: as in `arrive`; `raw` and `interrupt` live through the call.
        result(unsafe {
            let (pointer, raw, interrupt) = (self.pointer(), &raw const raw, &raw mut interrupt);
            (functions::<W>().reconfigure)(pointer, queue, raw, now, interrupt)
        })?;
        Ok(interrupt)
    }

    /// Calls `weir_moderate_next()`: returns the earliest instant at which a queue is due, or `now`
    /// if one is already due. This instant is not reduced modulo the width; it is at most half a
    /// wrap after `now`.
    #[must_use]
    pub fn next(&self, now: u64) -> Option<u64> {
        self.next_among(0, self.queues, now)
    }

    /// Returns the same as [`Moderator::next`] for one queue, in constant time.
    #[must_use]
    pub fn next_of(&self, queue: usize, now: u64) -> Option<u64> {
        self.next_among(self.index(queue), 1, now)
    }

    fn next_among(&self, from: u16, count: u16, now: u64) -> Option<u64> {
        let (pointer, mut at) = (self.memory.as_ptr().cast(), 0);
        // SAFETY: `memory` holds `from + count` started queues or more; `at` lives through the
        // call; the function only reads `memory`.
        let any = unsafe { (functions::<W>().next)(pointer, from, count, now, &raw mut at) };
        any.then(|| now.wrapping_add(W::wrap(at.wrapping_sub(now))))
    }

    /// Returns the number of packets in the queue.
    #[must_use]
    pub fn waiting(&self, queue: usize) -> u32 {
        self.read(queue).waiting.into()
    }

    /// Returns whether the queue has raised an interrupt that has not taken packets yet.
    #[must_use]
    pub fn is_raised(&self, queue: usize) -> bool {
        self.read(queue).phase == 2
    }

    /// Returns the counters of the queue.
    #[must_use]
    pub fn record(&self, queue: usize) -> QueueRecord {
        let raw = self.read(queue);
        QueueRecord {
            accepted: raw.accepted,
            dropped: raw.dropped,
            interrupts: raw.interrupts,
        }
    }
}
