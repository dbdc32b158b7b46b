// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs BPF iterators over tasks and reads their output. From Linux 6.1 on an iterator can visit
//! the tasks of one process or one thread. libbpf-rs has no option for that, so this module calls
//! libbpf directly.
use std::fs::File;
use std::io::{self, Read};
use std::mem;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

/// The tasks that an iterator visits.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Scope {
    All,
    Process(u32),
    Thread(u32),
}

/// Runs the iterator `program` and returns its output. Fails with ESRCH if there is no such task.
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
    // SAFETY: `options`, and all that it points to, live until the call returns. The kernel only
    // reads them.
    let link = owned(unsafe {
        libbpf_sys::bpf_link_create(
            program.as_fd().as_raw_fd(),
            0,
            libbpf_sys::BPF_TRACE_ITER,
            &raw const options,
        )
    })?;
    // SAFETY: the call takes a descriptor and returns one.
    let iterator = owned(unsafe { libbpf_sys::bpf_iter_create(link.as_raw_fd()) })?;
    let mut bytes = Vec::new();
    File::from(iterator).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Converts the result of a libbpf function to a descriptor or an error.
fn owned(returned: i32) -> io::Result<OwnedFd> {
    if returned < 0 {
        return Err(io::Error::from_raw_os_error(-returned));
    }
    // SAFETY: libbpf has just opened the descriptor for its caller.
    Ok(unsafe { OwnedFd::from_raw_fd(returned) })
}
