// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes that do what a test wants, in a namespace of the test's.

use std::io::Read;
use std::net::SocketAddr;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork};

use crate::ground::Namespace;

/// A process; killed when dropped, and by the kernel when the test ends otherwise.
pub struct Actor {
    pid: Pid,
}

impl Actor {
    /// A process in `namespace` that has done `part`, or is another program now, and waits. It has
    /// a copy of this process's memory and one thread, so `part` may use system calls only.
    pub fn new(namespace: &Namespace, part: impl FnOnce() + Send + 'static) -> Self {
        namespace.run(move || Self::here(part))
    }

    /// The same in the caller's namespace.
    pub fn here(part: impl FnOnce()) -> Self {
        let (read, write) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC).expect("a pipe");
        let parent = nix::unistd::getpid().as_raw();
        // SAFETY: the child only makes system calls, and never returns.
        match unsafe { fork() }.expect("a process") {
            ForkResult::Child => {
                die_with(parent);
                part();
                // Children of the part may have copies of the pipe, so its end would say nothing.
                let _ = nix::unistd::write(&write, b"x");
                wait()
            }
            ForkResult::Parent { child } => {
                drop(write);
                // Waits for a byte, which says that `part` is done, or for the end of the pipe,
                // which exec closes if `part` starts another program.
                let mut told = Vec::new();
                std::fs::File::from(read)
                    .take(1)
                    .read_to_end(&mut told)
                    .expect("the pipe");
                Self { pid: child }
            }
        }
    }

    /// Its number.
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

/// Ends this process with its parent, which may have ended since it made this one.
fn die_with(parent: libc::pid_t) {
    // SAFETY: system calls without memory.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        // 0: it has another namespace of processes, and cannot tell.
        if ![parent, 0].contains(&libc::getppid()) {
            libc::_exit(1);
        }
        // Whatever happens, nothing is left for long.
        libc::alarm(180);
    }
}

fn wait() -> ! {
    loop {
        // SAFETY: a system call without memory.
        unsafe { libc::pause() };
    }
}

/// Makes a child that has all that the actor has, and does `part`.
pub fn child(part: impl FnOnce()) {
    // SAFETY: a system call without memory.
    let parent = unsafe { libc::getpid() };
    // SAFETY: the child only makes system calls, and never returns.
    if done(unsafe { libc::fork() }) == 0 {
        die_with(parent);
        part();
        wait();
    }
}

/// Becomes `sleep 50`.
pub fn execute_sleep() {
    let arguments = [c"sleep".as_ptr(), c"50".as_ptr(), std::ptr::null()];
    // SAFETY: strings of C, and a list of them that ends with null.
    done(unsafe { libc::execv(c"/bin/sleep".as_ptr(), arguments.as_ptr()) });
}

/// What an actor cannot do ends it; the test then does not see what it waits for.
fn done(returned: libc::c_int) -> RawFd {
    if returned < 0 {
        // SAFETY: ends the process at once.
        unsafe { libc::_exit(1) };
    }
    returned
}

/// A socket of the address's family; `kind` is SOCK_DGRAM or SOCK_STREAM.
pub fn socket(address: SocketAddr, kind: libc::c_int) -> RawFd {
    let family = if address.is_ipv4() {
        libc::AF_INET
    } else {
        libc::AF_INET6
    };
    // SAFETY: a system call without memory.
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

/// A bound socket; a listening one if it is of SOCK_STREAM.
pub fn bind(address: SocketAddr, kind: libc::c_int) -> RawFd {
    let socket = socket(address, kind);
    // SAFETY: the address outlives the calls.
    with_address(address, |pointer, length| {
        done(unsafe { libc::bind(socket, pointer, length) })
    });
    if kind == libc::SOCK_STREAM {
        // SAFETY: a system call without memory.
        done(unsafe { libc::listen(socket, 16) });
    }
    socket
}

/// A socket at this port for any address of IPv6, and none of IPv4; a listening one if it is of
/// SOCK_STREAM.
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
    // SAFETY: it is the actor's own.
    drop(unsafe { OwnedFd::from_raw_fd(descriptor) });
}

/// Gives the calling thread SCHED_FIFO with this priority.
pub fn become_fifo(priority: i32) {
    // SAFETY: zeroed integers are values of sched_param.
    let mut parameter: libc::sched_param = unsafe { std::mem::zeroed() };
    parameter.sched_priority = priority;
    // SAFETY: the parameter outlives the call.
    done(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameter) });
}

/// Accepts a connection of a listener.
pub fn accept(listener: RawFd) -> RawFd {
    // SAFETY: the call is asked for no address.
    done(unsafe { libc::accept(listener, std::ptr::null_mut(), std::ptr::null_mut()) })
}
