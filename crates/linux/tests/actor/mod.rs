// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes that act for a test, in a namespace of the test.

use std::io::Read;
use std::net::SocketAddr;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork};

use crate::ground::Namespace;

/// A process that is killed when this is dropped. If the test ends in another way, the kernel kills
/// it.
pub struct Actor {
    pid: Pid,
}

impl Actor {
    /// Starts a process in `namespace` that runs `part` and then waits. `part` may also replace it
    /// by another program. The process has a copy of this process's memory and a single thread, so
    /// `part` may only make system calls.
    pub fn new(namespace: &Namespace, part: impl FnOnce() + Send + 'static) -> Self {
        namespace.run(move || Self::here(part))
    }

    /// Starts a process in the caller's namespace that runs `part` and then waits.
    pub fn here(part: impl FnOnce()) -> Self {
        let (read, write) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC).expect("a pipe");
        let parent = nix::unistd::getpid().as_raw();
        // SAFETY: the child only makes system calls, and never returns.
        match unsafe { fork() }.expect("a process") {
            ForkResult::Child => {
                die_with(parent);
                part();
                // Child processes may have copies of the pipe, so closing it would not tell that
                // `part` is done.
                let _ = nix::unistd::write(&write, b"x");
                wait()
            }
            ForkResult::Parent { child } => {
                drop(write);
                // A byte tells that `part` is done. If `part` has started another program, exec has
                // closed the pipe.
                let mut told = Vec::new();
                std::fs::File::from(read)
                    .take(1)
                    .read_to_end(&mut told)
                    .expect("the pipe");
                Self { pid: child }
            }
        }
    }

    /// Number of the process.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw() as u32
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        let _ = kill(self.pid, Signal::SIGKILL);
        let _ = waitpid(self.pid, None);
    }
}

/// Ends this process when its parent ends, and at once if the parent has ended already.
fn die_with(parent: libc::pid_t) {
    // SAFETY: these system calls use no memory.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        // If the parent's number is 0, the parent is in another process namespace, so it is not
        // known whether it has ended.
        if ![parent, 0].contains(&libc::getppid()) {
            libc::_exit(1);
        }
        // An alarm ends the process in any case.
        libc::alarm(180);
    }
}

fn wait() -> ! {
    loop {
        // SAFETY: the system call uses no memory.
        unsafe { libc::pause() };
    }
}

/// Starts a child process with copies of all that the actor has, which runs `part`.
pub fn child(part: impl FnOnce()) {
    // SAFETY: the system call uses no memory.
    let parent = unsafe { libc::getpid() };
    // SAFETY: the child only makes system calls, and never returns.
    if done(unsafe { libc::fork() }) == 0 {
        die_with(parent);
        part();
        wait();
    }
}

/// Replaces this process by `sleep 50`.
pub fn execute_sleep() {
    let arguments = [c"sleep".as_ptr(), c"50".as_ptr(), std::ptr::null()];
    // SAFETY: the strings end with 0, and the list of arguments ends with null.
    done(unsafe { libc::execv(c"/bin/sleep".as_ptr(), arguments.as_ptr()) });
}

/// Ends the process if a system call has failed. The test then does not see what it waits for.
fn done(returned: libc::c_int) -> RawFd {
    if returned < 0 {
        // SAFETY: the call ends the process at once.
        unsafe { libc::_exit(1) };
    }
    returned
}

/// Opens a socket for the address's version of IP. `kind` is SOCK_DGRAM or SOCK_STREAM.
pub fn socket(address: SocketAddr, kind: libc::c_int) -> RawFd {
    let family = if address.is_ipv4() {
        libc::AF_INET
    } else {
        libc::AF_INET6
    };
    // SAFETY: the system call uses no memory.
    done(unsafe { libc::socket(family, kind, 0) })
}

fn with_address<T>(
    address: SocketAddr,
    call: impl FnOnce(*const libc::sockaddr, libc::socklen_t) -> T,
) -> T {
    match address {
        SocketAddr::V4(v4) => {
            let address = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: v4.port().to_be(),
                sin_addr: libc::in_addr {
                    s_addr: u32::from_ne_bytes(v4.ip().octets()),
                },
                sin_zero: [0; 8],
            };
            call((&raw const address).cast(), size_of_val(&address) as _)
        }
        SocketAddr::V6(v6) => {
            let address = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: v6.port().to_be(),
                sin6_flowinfo: 0,
                sin6_addr: libc::in6_addr {
                    s6_addr: v6.ip().octets(),
                },
                sin6_scope_id: 0,
            };
            call((&raw const address).cast(), size_of_val(&address) as _)
        }
    }
}

/// Opens a bound socket. A socket of kind SOCK_STREAM listens, too.
pub fn bind(address: SocketAddr, kind: libc::c_int) -> RawFd {
    let socket = socket(address, kind);
    // SAFETY: the address outlives the calls.
    with_address(address, |pointer, length| {
        done(unsafe { libc::bind(socket, pointer, length) })
    });
    if kind == libc::SOCK_STREAM {
        // SAFETY: the system call uses no memory.
        done(unsafe { libc::listen(socket, 16) });
    }
    socket
}

/// Opens a socket that is bound to this port for all IPv6 addresses, but not for IPv4. A socket of
/// kind SOCK_STREAM listens, too.
pub fn bind_only6(port: u16, kind: libc::c_int) -> RawFd {
    let address = SocketAddr::from((std::net::Ipv6Addr::UNSPECIFIED, port));
    let socket = socket(address, kind);
    let on: libc::c_int = 1;
    // SAFETY: the number and the address outlive the calls.
    unsafe {
        done(libc::setsockopt(
            socket,
            libc::IPPROTO_IPV6,
            libc::IPV6_V6ONLY,
            (&raw const on).cast(),
            size_of_val(&on) as _,
        ));
        with_address(address, |pointer, length| {
            done(libc::bind(socket, pointer, length))
        });
        if kind == libc::SOCK_STREAM {
            done(libc::listen(socket, 16));
        }
    }
    socket
}

/// Connects a socket.
pub fn connect(socket: RawFd, address: SocketAddr) {
    // SAFETY: the address outlives the call.
    with_address(address, |pointer, length| {
        done(unsafe { libc::connect(socket, pointer, length) })
    });
}

/// Sends one byte.
pub fn send_to(socket: RawFd, address: SocketAddr) {
    // SAFETY: the address and the byte outlive the call.
    with_address(address, |pointer, length| unsafe {
        libc::sendto(socket, b"x".as_ptr().cast(), 1, 0, pointer, length)
    });
}

/// Closes a descriptor.
pub fn close(descriptor: RawFd) {
    // SAFETY: the descriptor belongs to this process.
    drop(unsafe { OwnedFd::from_raw_fd(descriptor) });
}

/// Gives the calling thread SCHED_FIFO with this priority.
pub fn become_fifo(priority: i32) {
    // SAFETY: zero is valid for the integers of sched_param.
    let mut parameter: libc::sched_param = unsafe { std::mem::zeroed() };
    parameter.sched_priority = priority;
    // SAFETY: the parameter outlives the call.
    done(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameter) });
}

/// Accepts a connection of the listener.
pub fn accept(listener: RawFd) -> RawFd {
    // SAFETY: null means that no address is returned.
    done(unsafe { libc::accept(listener, std::ptr::null_mut(), std::ptr::null_mut()) })
}
