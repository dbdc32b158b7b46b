// SPDX-License-Identifier: MIT OR Apache-2.0
//! Attaches the program to an interface for as long as this process lives. Another program that is
//! attached already is not replaced.
use std::ffi::CString;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::PathBuf;

use super::ExactError;
use crate::settings::namespace::inside;
use libbpf_rs::{ProgramHandle, XdpFlags, libbpf_sys};
use weir_report::terminal::printable;

/// An interface, by its name and its network namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InterfaceName {
    /// Name of the interface in its network namespace.
    pub name: String,
    /// Path of the network namespace, such as `/run/netns/NAME` or `/proc/PID/ns/net`. `None` means
    /// the namespace of this process.
    pub namespace: Option<PathBuf>,
}

impl From<&str> for InterfaceName {
    fn from(name: &str) -> Self {
        let name = name.to_owned();
        let namespace = None;
        Self { name, namespace }
    }
}

impl fmt::Display for InterfaceName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)?;
        match &self.namespace {
            Some(path) => write!(formatter, " in {}", printable(path)),
            None => Ok(()),
        }
    }
}

/// The program on one interface. The kernel detaches it when this is dropped, or when the process
/// ends, even if it is killed.
#[derive(Debug)]
pub(super) struct XdpAttachment {
    pub interface: InterfaceName,
    link: OwnedFd,
}

impl XdpAttachment {
    /// Attaches `program`, in generic mode if `generic` is true, otherwise in native mode.
    pub fn new(
        program: BorrowedFd<'_>,
        interface: InterfaceName,
        generic: bool,
    ) -> Result<Self, ExactError> {
        let mode = if generic {
            XdpFlags::SKB_MODE
        } else {
            XdpFlags::DRV_MODE
        };
        let link = match interface.namespace.clone() {
            None => attach(program, &interface, mode),
            Some(path) => {
                // The inner result keeps an error of attaching apart from an error of entering the
                // namespace.
                let attached = inside(&path, || Ok(attach(program, &interface, mode)));
                attached.map_err(|cause| ExactError::Namespace { path, cause })?
            }
        }?;
        Ok(Self { interface, link })
    }

    /// Whether the interface still exists. The kernel detaches the program from an interface that
    /// vanishes.
    pub fn is_there(&self) -> io::Result<bool> {
        let mut info = libbpf_sys::bpf_link_info::default();
        let mut size = u32::try_from(size_of_val(&info)).map_err(io::Error::other)?;
        // SAFETY: the kernel writes at most `size` bytes, and `info` is that large.
        let failed = unsafe {
            libbpf_sys::bpf_link_get_info_by_fd(
                self.link.as_fd().as_raw_fd(),
                &raw mut info,
                &raw mut size,
            )
        };
        if failed < 0 {
            return Err(io::Error::from_raw_os_error(-failed));
        }
        // SAFETY: the kernel fills in this member for an XDP link. The other members of the union
        // are integers, too, so any bytes are valid.
        Ok(unsafe { info.__bindgen_anon_1.xdp.ifindex } != 0)
    }
}

/// Attaches the program in the network namespace of this thread.
fn attach(
    program: BorrowedFd<'_>,
    interface: &InterfaceName,
    mode: XdpFlags,
) -> Result<OwnedFd, ExactError> {
    let refused = |cause| ExactError::Refused {
        interface: interface.clone(),
        cause,
    };
    let index =
        index_of(&interface.name).ok_or_else(|| ExactError::NoInterface(interface.clone()))?;
    if let Some(occupied) = occupied(interface, index) {
        return Err(occupied);
    }
    let options = libbpf_sys::bpf_link_create_opts {
        sz: size_of::<libbpf_sys::bpf_link_create_opts>() as libbpf_sys::size_t,
        flags: mode.bits(),
        ..Default::default()
    };
    // SAFETY: the options outlive the call.
    let link = unsafe {
        libbpf_sys::bpf_link_create(
            program.as_raw_fd(),
            index,
            libbpf_sys::BPF_XDP,
            &raw const options,
        )
    };
    if link >= 0 {
        // SAFETY: the kernel has just created the descriptor for this call, so it has no other
        // owner.
        return Ok(unsafe { OwnedFd::from_raw_fd(link) });
    }
    match -link {
        libc::EOPNOTSUPP if mode.contains(XdpFlags::DRV_MODE) => {
            Err(ExactError::NotNative(interface.clone()))
        }
        // Another program has been attached meanwhile.
        libc::EBUSY | libc::EEXIST => Err(occupied(interface, index)
            .unwrap_or_else(|| refused(io::Error::from_raw_os_error(-link)))),
        error => Err(refused(io::Error::from_raw_os_error(error))),
    }
}

fn index_of(name: &str) -> Option<i32> {
    let name = CString::new(name).ok()?;
    // SAFETY: the name ends with 0, and the call only reads it.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    i32::try_from(index).ok().filter(|index| *index > 0)
}

/// State of XDP on an interface, before Weir's program is attached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct XdpState {
    /// Name and number of the XDP program that is attached, in any mode. `None` if there is none.
    pub program: Option<(String, u32)>,
    /// Whether the driver has native XDP. `None` if the kernel does not report it (before 6.3).
    pub native: Option<bool>,
}

impl XdpState {
    /// Examines the interface `name` in the network namespace of this thread.
    ///
    /// # Errors
    /// Fails with ENODEV when there is no such interface, otherwise with the kernel's error.
    pub fn examine(name: &str) -> io::Result<Self> {
        let index = index_of(name).ok_or_else(|| io::Error::from_raw_os_error(libc::ENODEV))?;
        Self::examine_index(index)
    }

    fn examine_index(index: i32) -> io::Result<Self> {
        let mut state = libbpf_sys::bpf_xdp_query_opts {
            sz: size_of::<libbpf_sys::bpf_xdp_query_opts>() as libbpf_sys::size_t,
            ..Default::default()
        };
        // SAFETY: libbpf writes to the options, which outlive the call and contain their own size.
        let failed = unsafe { libbpf_sys::bpf_xdp_query(index, 0, &raw mut state) };
        if failed < 0 {
            return Err(io::Error::from_raw_os_error(-failed));
        }
        let numbers = [
            state.prog_id,
            state.drv_prog_id,
            state.skb_prog_id,
            state.hw_prog_id,
        ];
        let number = numbers.into_iter().find(|number| *number != 0);
        Ok(Self {
            program: number.map(|number| (name_of(number), number)),
            native: tells_features().then_some(state.feature_flags & NATIVE == NATIVE),
        })
    }
}

/// NETDEV_XDP_ACT_BASIC and NETDEV_XDP_ACT_REDIRECT of <linux/netdev.h>: the driver runs programs,
/// and these may redirect packets.
const NATIVE: u64 = 3;

/// Whether the kernel reports the XDP features of drivers. It does from 6.3 on.
fn tells_features() -> bool {
    procfs::sys::kernel::Version::current()
        .is_ok_and(|version| (version.major, version.minor) >= (6, 3))
}

/// Name of the BPF program with this number, or `?` if this process may not read it.
fn name_of(number: u32) -> String {
    ProgramHandle::from_prog_id(number).map_or_else(
        |_| "?".to_owned(),
        |program| program.name().to_string_lossy().into_owned(),
    )
}

/// Makes the error that names the program attached to the interface, in any mode. `None` if no
/// program is attached.
fn occupied(interface: &InterfaceName, index: i32) -> Option<ExactError> {
    let (name, number) = XdpState::examine_index(index).ok()?.program?;
    Some(ExactError::Occupied {
        interface: interface.clone(),
        name,
        number,
    })
}
