// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads and attaches the BPF programs of src/bpf/waiting.bpf.c, and reads the state that they
//! share with this process.
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use libbpf_rs::{Link, Object, ObjectBuilder, ProgramInput, RingBuffer, RingBufferBuilder};

use super::Error;
use crate::object::{self, Memory, map, program};
use crate::urgency::Urgency;

/// Most devices. A receiver has a bit for each device.
pub const DEVICES: usize = 8;
const CLASSES: usize = Urgency::MOST.get() as usize + 1;

/// Kinds of system calls for the BPF program: calls that receive or poll, and calls that receive
/// only if their first argument is a socket.
const RECEIVES: u8 = 1;
const READS: u8 = 2;
const CALLS: &[(libc::c_long, u8)] = &[
    (libc::SYS_recvfrom, RECEIVES),
    (libc::SYS_recvmsg, RECEIVES),
    (libc::SYS_recvmmsg, RECEIVES),
    (libc::SYS_accept, RECEIVES),
    (libc::SYS_accept4, RECEIVES),
    (libc::SYS_ppoll, RECEIVES),
    (libc::SYS_pselect6, RECEIVES),
    (libc::SYS_epoll_pwait, RECEIVES),
    (libc::SYS_epoll_pwait2, RECEIVES),
    (libc::SYS_io_uring_enter, RECEIVES),
    (libc::SYS_read, READS),
    (libc::SYS_readv, READS),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_poll, RECEIVES),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_select, RECEIVES),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_epoll_wait, RECEIVES),
];

/// The structure weir_waiting_state of src/bpf/waiting.bpf.c.
#[repr(C)]
struct WaitState {
    waiting: [[AtomicI32; CLASSES]; DEVICES],
    applied: [AtomicU32; DEVICES],
    rung: AtomicU32,
}

// SAFETY: all members are atomics.
unsafe impl object::Shared for WaitState {}

/// The shared state. Its memory stays mapped as long as one of the clones exists.
#[derive(Clone)]
pub(super) struct SharedState(Arc<Memory<WaitState>>);

impl SharedState {
    fn state(&self) -> &WaitState {
        &self.0.elements()[0]
    }

    /// Allows the BPF program to ring the bell again.
    pub fn answer(&self) {
        self.state().rung.store(0, Ordering::SeqCst);
    }

    /// Urgency of the most urgent receiver that waits for the device.
    pub fn most_urgent(&self, device: usize) -> Urgency {
        let Some(classes) = self.state().waiting.get(device) else {
            return Urgency::ORDINARY;
        };
        let most = (0..=Urgency::MOST.get())
            .rev()
            .find(|class| classes[usize::from(*class)].load(Ordering::SeqCst) > 0);
        most.and_then(|class| Urgency::new(class).ok())
            .unwrap_or(Urgency::ORDINARY)
    }

    /// Number of receivers' threads that wait for the device. Threads with urgency 0 are not
    /// counted.
    pub fn waiting(&self, device: usize) -> u32 {
        let classes = self.state().waiting.get(device).into_iter().flatten();
        // A count may be negative for a moment while a thread changes its class.
        let counts = classes.map(|class| u32::try_from(class.load(Ordering::Relaxed)).unwrap_or(0));
        counts.sum()
    }

    /// Records the urgency that the device's bottom half has now.
    pub fn applied(&self, device: usize, urgency: Urgency) {
        if let Some(applied) = self.state().applied.get(device) {
            applied.store(u32::from(urgency.get()), Ordering::SeqCst);
        }
    }
}

/// The attached BPF programs.
pub(super) struct WaitPrograms {
    shared: SharedState,
    _link: Link,
    object: Object,
}

impl WaitPrograms {
    pub fn load() -> Result<Self, Error> {
        let mut open = ObjectBuilder::default()
            .open_memory(include_bytes!(concat!(env!("OUT_DIR"), "/waiting.bpf.o")))?;
        for mut map in open.maps_mut() {
            if !map.name().to_string_lossy().ends_with(".rodata") {
                continue;
            }
            let calls = map.initial_value_mut().unwrap_or_default();
            for (number, how) in CALLS {
                let call = usize::try_from(*number).ok();
                if let Some(call) = call.and_then(|call| calls.get_mut(call)) {
                    *call = *how;
                }
            }
        }
        let object = open.load()?;
        let state = Memory::new(&map(&object, "state")?, 1).map_err(Error::Start)?;
        let link = program(&object, "waiting_switch")?.attach()?;
        Ok(Self {
            shared: SharedState(Arc::new(state)),
            _link: link,
            object,
        })
    }

    pub fn shared(&self) -> SharedState {
        self.shared.clone()
    }

    /// The bell: a ring buffer that becomes readable when the most urgent class of a device may
    /// have changed.
    pub fn bell(&self) -> Result<RingBuffer<'static>, Error> {
        let bell = map(&self.object, "bell")?;
        let mut builder = RingBufferBuilder::new();
        builder.add(&bell, |_| 0)?;
        Ok(builder.build()?)
    }

    /// Registers a receiver's thread, or changes its registration. If `devices` is 0, the
    /// registration is removed.
    pub fn register(&self, tid: u32, urgency: Urgency, devices: u8) -> Result<(), Error> {
        let word = u32::from(urgency.get()) | u32::from(devices) << 16;
        let mut change = [tid.to_ne_bytes(), word.to_ne_bytes()];
        let output = program(&self.object, "waiting_register")?.test_run(ProgramInput {
            context_in: Some(change.as_flattened_mut()),
            ..ProgramInput::default()
        })?;
        if output.return_value != 0 {
            return Err(libbpf_rs::Error::from_raw_os_error(libc::ENOSPC).into());
        }
        Ok(())
    }

    /// Lets the BPF program examine whether the thread is waiting already.
    pub fn look_at(&self, tid: u32) -> Result<(), Error> {
        let already = program(&self.object, "waiting_already")?;
        crate::iterator::read(&already, crate::iterator::Scope::Thread(tid))
            .map(|_| ())
            .or_else(|error| match error.raw_os_error() {
                // The thread has ended.
                Some(libc::ESRCH) => Ok(()),
                _ => Err(libbpf_rs::Error::from(error).into()),
            })
    }
}
