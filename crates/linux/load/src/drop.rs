// SPDX-License-Identifier: MIT OR Apache-2.0
//! The least that a received packet can cost: an XDP program drops each packet before the kernel
//! looks at it. Experiments compare other costs of a packet with this cost.
use std::ffi::CString;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use libbpf_sys::{bpf_insn, bpf_link_create_opts};

use crate::bound::{End, Time};
use crate::clock;

/// `r0 = XDP_DROP`: a move of a 64-bit constant (BPF_ALU64 | BPF_MOV | BPF_K).
const MOVE: u8 = 0xb7;
/// `return r0` (BPF_JMP | BPF_EXIT).
const EXIT: u8 = 0x95;

/// Reason why no packets are dropped.
#[derive(Debug, thiserror::Error)]
pub enum DropError {
    /// No interface has this name.
    #[error("there is no network interface `{0}`: `ip link` lists them")]
    NoInterface(String),
    /// The kernel refuses the program, or the driver runs none.
    #[error(
        "no XDP program can be attached to {interface}: {cause}; it needs root, and a driver that runs such programs itself"
    )]
    Refused {
        /// The interface.
        interface: String,
        /// The system's error.
        cause: io::Error,
    },
}

/// An interface, all of whose received packets are dropped.
#[derive(Debug, Clone)]
pub struct Drops {
    /// Name of the interface, as `ip link` shows it.
    pub interface: String,
    /// The time for which packets are dropped.
    pub time: Time,
}

impl Drops {
    /// Attaches the program, calls `ready`, and waits until the time is over or a signal comes. The
    /// kernel removes the program when this process ends.
    ///
    /// # Errors
    /// Fails if there is no such interface, or if the kernel or the driver refuses the program.
    pub fn run(&self, ready: impl FnOnce()) -> Result<(), DropError> {
        let no_interface = || DropError::NoInterface(self.interface.clone());
        let name = CString::new(self.interface.as_str()).map_err(|_| no_interface())?;
        // SAFETY: the call only reads the name, which ends with 0.
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
        let index = i32::try_from(index)
            .ok()
            .filter(|&index| index > 0)
            .ok_or_else(no_interface)?;
        let refused = |cause| DropError::Refused {
            interface: self.interface.clone(),
            cause,
        };
        let program = load().map_err(refused)?;
        let _attached = attach(&program, index).map_err(refused)?;
        let end = End::after(self.time);
        ready();
        while !end.is_over(clock::now()) {
            clock::sleep_until(end.instant());
        }
        Ok(())
    }
}

fn load() -> io::Result<OwnedFd> {
    let instruction = |code, value| bpf_insn {
        code,
        imm: value,
        ..Default::default()
    };
    #[expect(clippy::cast_possible_wrap, reason = "it is 1")]
    let program = [
        instruction(MOVE, libbpf_sys::XDP_DROP as i32),
        instruction(EXIT, 0),
    ];
    // SAFETY: the strings end with 0, the number of instructions is that of the array, and no
    // options are passed.
    let result = unsafe {
        libbpf_sys::bpf_prog_load(
            libbpf_sys::BPF_PROG_TYPE_XDP,
            c"weir_load_drop".as_ptr(),
            c"Dual MIT/GPL".as_ptr(),
            program.as_ptr(),
            program.len() as libbpf_sys::size_t,
            std::ptr::null_mut(),
        )
    };
    descriptor(result)
}

/// Attaches `program` in the driver (native XDP). For a driver that cannot run it, the kernel
/// offers generic XDP. That would run the program only after the kernel's own work on the packet.
fn attach(program: &OwnedFd, index: i32) -> io::Result<OwnedFd> {
    use std::os::fd::AsRawFd as _;
    let options = bpf_link_create_opts {
        sz: size_of::<bpf_link_create_opts>() as libbpf_sys::size_t,
        flags: libbpf_sys::XDP_FLAGS_DRV_MODE,
        ..Default::default()
    };
    // SAFETY: the call only reads the options, which contain their own size.
    let result = unsafe {
        libbpf_sys::bpf_link_create(program.as_raw_fd(), index, libbpf_sys::BPF_XDP, &options)
    };
    descriptor(result)
}

/// Converts the result of a libbpf function, which is a descriptor or a negative error number.
fn descriptor(result: RawFd) -> io::Result<OwnedFd> {
    if result < 0 {
        return Err(io::Error::from_raw_os_error(-result));
    }
    // SAFETY: the descriptor was just opened and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(result) })
}
