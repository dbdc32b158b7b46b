// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a BPF iterator over tasks writes: of all of them, or (from Linux 6.1) of one process or
//! thread, which libbpf-rs cannot ask for.
use std::fs::File;
use std::io::{self, Read};
use std::mem;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

/// Over which tasks an iterator goes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Scope {
    All,
    Process(u32),
    Thread(u32),
}

/// Runs the iterator `program` and returns all that it writes. ESRCH if there is no such task.
pub(crate) fn read(program: &impl AsFd, scope: Scope) -> io::Result<Vec<u8>> {
    let mut which = libbpf_sys::bpf_iter_link_info::default();
    match scope {
        Scope::All => {}
        Scope::Process(pid) => which.task.pid = pid,
        Scope::Thread(tid) => which.task.tid = tid,
    }
    let options = libbpf_sys::bpf_link_create_opts {
        sz: mem::size_of::<libbpf_sys::bpf_link_create_opts>() as u64,
        iter_info: &raw mut which,
        iter_info_len: mem::size_of_val(&which) as u32,
        ..Default::default()
    };
    // SAFETY: `options` and what it points to live until the call returns; the kernel only reads
    // them.
    let link = owned(unsafe {
        libbpf_sys::bpf_link_create(
            program.as_fd().as_raw_fd(),
            0,
            libbpf_sys::BPF_TRACE_ITER,
            &raw const options,
        )
    })?;
    // SAFETY: the call takes a descriptor and gives one.
    let iterator = owned(unsafe { libbpf_sys::bpf_iter_create(link.as_raw_fd()) })?;
    let mut bytes = Vec::new();
    File::from(iterator).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A descriptor that libbpf gave, or the error that it gave instead.
fn owned(returned: i32) -> io::Result<OwnedFd> {
    if returned < 0 {
        return Err(io::Error::from_raw_os_error(-returned));
    }
    // SAFETY: libbpf has just opened it for its caller, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(returned) })
}
