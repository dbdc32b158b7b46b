// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ground of a test: two network namespaces that belong to the test alone, joined by a veth
//! pair.
//!
//! The namespaces have no names. They exist as long as this process holds them, so nothing is left
//! behind however the process ends. Where the machine does not allow them, [`begin`] reports the
//! test as skipped and returns `None`.

use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{self, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;

use nix::sched::{CloneFlags, setns, unshare};

pub use crate::skipped::skipped;
use crate::turn;

/// What a test needs from the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// The test creates network namespaces and interfaces: CAP_SYS_ADMIN and CAP_NET_ADMIN.
    Namespaces,
    /// The test loads BPF programs: CAP_BPF, CAP_PERFMON, and the types of the running kernel
    /// (BTF).
    Bpf,
    /// The test gives threads real-time policies: CAP_SYS_NICE.
    RealTime,
    /// The test sets the policies of ksoftirqd, so no other test may.
    SoftIrqs,
    /// No other test may set the policies of ksoftirqd.
    SoftIrqsStay,
    /// The test opens many sockets or counts all of the machine, so no other test may.
    Sockets,
    /// No other test may run at the same time, since the test measures times, or an account of the
    /// whole machine.
    Alone,
}

impl Need {
    /// Whether a test with this need cannot run at the same time as a test with the need `other`.
    pub fn excludes(self, other: Self) -> bool {
        match self {
            Self::Namespaces | Self::Bpf | Self::RealTime => false,
            Self::SoftIrqs => matches!(other, Self::SoftIrqs | Self::SoftIrqsStay),
            Self::SoftIrqsStay => other == Self::SoftIrqs,
            Self::Sockets => other == Self::Sockets,
            Self::Alone => true,
        }
    }
}

/// Number of the next ground of this process.
static GROUNDS: AtomicU32 = AtomicU32::new(0);

type Job = Box<dyn FnOnce() + Send>;

/// A network namespace with one interface and the loopback interface, both up.
pub struct Namespace {
    /// Name of its end of the veth pair. No other interface of the machine has this name.
    pub interface: String,
    /// Address of its end of the veth pair, in a network with a prefix of 24 bits.
    pub v4: Ipv4Addr,
    /// Address of its end of the veth pair, in a network with a prefix of 64 bits.
    pub v6: Ipv6Addr,
    handle: File,
    tid: i32,
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Namespace {
    fn new(interface: String, last: u8) -> io::Result<Self> {
        let (jobs, received) = mpsc::channel::<Job>();
        let (ready, made) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let entered = unshare(CloneFlags::CLONE_NEWNET)
                .map_err(io::Error::from)
                .and_then(|()| File::open("/proc/thread-self/ns/net"))
                .map(|handle| (handle, nix::unistd::gettid().as_raw()));
            let failed = entered.is_err();
            let _ = ready.send(entered);
            if failed {
                return;
            }
            for job in received {
                job();
            }
        });
        let (handle, tid) = made.recv().map_err(io::Error::other)??;
        Ok(Self {
            interface,
            v4: Ipv4Addr::new(10, 77, 0, last),
            v6: Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, u16::from(last)),
            handle,
            tid,
            jobs: Some(jobs),
            thread: Some(thread),
        })
    }

    /// Path at which other programs can open the namespace as long as this value exists, for
    /// example with `nsenter --net=`.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!(
            "/proc/{}/fd/{}",
            process::id(),
            self.handle.as_raw_fd()
        ))
    }

    /// Descriptor of the namespace, for setns.
    pub fn descriptor(&self) -> RawFd {
        self.handle.as_raw_fd()
    }

    /// Runs `job` in the namespace, to which the sockets that it opens then belong. The namespace
    /// has a single thread, so jobs run one after another. A panic of the job is passed on to the
    /// caller.
    pub fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (answer, answered) = mpsc::channel();
        let job: Job = Box::new(move || {
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
            // The caller waits for the result, so it is still there.
            let _ = answer.send(outcome);
        });
        self.jobs
            .as_ref()
            .expect("it has jobs until it is dropped")
            .send(job)
            .expect("its thread lives as long as it");
        match answered.recv().expect("its thread answers") {
            Ok(value) => value,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    /// A program to be run in the namespace. It is killed when the thread that started it ends, so
    /// no test leaves it behind.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        let handle = self.handle.try_clone().expect("one more descriptor");
        // SAFETY: setns and prctl are async-signal-safe.
        unsafe {
            command.pre_exec(move || {
                setns(&handle, CloneFlags::CLONE_NEWNET)?;
                if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
                    return Err(io::Error::last_os_error());
                }
                Ok(())
            });
        }
        command
    }

    /// Runs `ip ARGUMENTS` in the namespace.
    ///
    /// # Panics
    /// Panics with the command's message if it fails.
    pub fn ip(&self, arguments: &str) {
        if let Err(message) = self.try_ip(arguments) {
            panic!("ip {arguments}: {message}");
        }
    }

    fn try_ip(&self, arguments: &str) -> Result<(), String> {
        let output = self
            .command("ip")
            .args(arguments.split_whitespace())
            .stdin(Stdio::null())
            .output()
            .map_err(|error| error.to_string())?;
        if output.status.success() {
            Ok(())
        } else {
            Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
        }
    }

    /// Turns an offload of the namespace's interface on or off, as `ethtool -K` does. A veth has
    /// NAPI instances, and so threads for them, only with GRO on or with an XDP program. It uses
    /// them only for packets from a sender that leaves no checksums to the device, since such a
    /// sender leaves no segmentation to it either. Only then packets have their checksums, too.
    pub fn offload(&self, offload: Offload, on: bool) {
        self.offload_of(&self.interface, offload, on);
    }

    /// Turns an offload of another interface of the namespace on or off.
    pub fn offload_of(&self, interface: &str, offload: Offload, on: bool) {
        let name = interface.to_owned();
        let request = FlagRequest {
            command: offload as u32,
            data: u32::from(on),
        };
        self.run(move || ethtool(&name, request))
            .unwrap_or_else(|error| panic!("{offload:?} of {interface}: {error}"));
    }

    /// Gives the namespace's interface `number` queues for receiving and for sending, as `ethtool
    /// -L` does. It must be at most the number of CPUs.
    pub fn queues(&self, number: u32) {
        let name = self.interface.clone();
        let request = ChannelsRequest {
            // The command is ETHTOOL_SCHANNELS.
            command: 0x3d,
            receive: number,
            send: number,
            ..ChannelsRequest::default()
        };
        self.run(move || ethtool(&name, request))
            .unwrap_or_else(|error| panic!("{number} queues of {}: {error}", self.interface));
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// An offload of an interface. The numbers are those of the ETHTOOL commands that set it.
#[derive(Debug, Clone, Copy)]
#[repr(u32)]
pub enum Offload {
    /// Checksums of sent packets are left to the device.
    SendChecksums = 0x17,
    /// Received packets are joined (GRO).
    Receive = 0x2c,
}

#[repr(C)]
struct FlagRequest {
    command: u32,
    data: u32,
}

/// The structure ethtool_channels. Its maxima are left 0, since the kernel does not read them.
#[repr(C)]
#[derive(Default)]
struct ChannelsRequest {
    command: u32,
    most: [u32; 4],
    receive: u32,
    send: u32,
    others: u32,
    combined: u32,
}

/// Executes an ETHTOOL command with its argument.
fn ethtool<T>(interface: &str, mut value: T) -> io::Result<()> {
    let socket = std::net::UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    // SAFETY: zero is valid for the integers and pointers of ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes().take(15)) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    // SAFETY: the kernel reads the request and the value, which outlive the call.
    if unsafe { libc::ioctl(socket.as_raw_fd(), 0x8946, &raw mut request) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Two namespaces joined by a veth pair. They are removed when this is dropped.
pub struct Ground {
    /// The namespace from which the test sends: 10.77.0.1 and fd77::1.
    pub sender: Namespace,
    /// The namespace of Weir and the receivers: 10.77.0.2 and fd77::2.
    pub receiver: Namespace,
}

/// Creates the ground in a process that belongs to the test alone ([`turn`](crate::turn)), if the
/// machine has what the test needs. If it returns `None`, the caller has nothing left to do: the
/// test is reported as skipped, or has run in the other process.
///
/// # Panics
/// Panics if namespaces are allowed but their interfaces cannot be created, and if the test has
/// failed in the other process.
pub fn begin(needs: &[Need]) -> Option<Ground> {
    for need in needs {
        if let Err(reason) = check(*need) {
            skipped(&reason);
            return None;
        }
    }
    if !turn::is_own(needs) {
        return None;
    }
    let number = GROUNDS.fetch_add(1, Ordering::Relaxed);
    // A name has at most 15 characters, and a process number up to seven digits.
    let name = |end: char| format!("w{end}{}.{number}", process::id());
    let (sender, receiver) = match (Namespace::new(name('s'), 1), Namespace::new(name('r'), 2)) {
        (Ok(sender), Ok(receiver)) => (sender, receiver),
        (Err(error), _) | (_, Err(error)) => {
            skipped(&format!("no network namespace can be made here: {error}"));
            return None;
        }
    };
    sender.ip(&format!(
        "link add {} type veth peer name {} netns {}",
        sender.interface, receiver.interface, receiver.tid
    ));
    for end in [&sender, &receiver] {
        end.ip("link set lo up");
        let Namespace {
            interface, v4, v6, ..
        } = end;
        end.ip(&format!("address add {v4}/24 dev {interface}"));
        // nodad turns off the search for duplicate addresses, which takes a second.
        end.ip(&format!("address add {v6}/64 dev {interface} nodad"));
        end.ip(&format!("link set {interface} up"));
    }
    Some(Ground { sender, receiver })
}

/// Creates the ground for a test that loads BPF programs and raises the priorities of threads.
pub fn begin_with_bpf() -> Option<Ground> {
    begin(&[Need::Namespaces, Need::Bpf, Need::RealTime])
}

fn check(need: Need) -> Result<(), String> {
    match need {
        Need::Namespaces => has(&[(12, "CAP_NET_ADMIN"), (21, "CAP_SYS_ADMIN")]),
        Need::RealTime => has(&[(23, "CAP_SYS_NICE")]),
        Need::SoftIrqs | Need::SoftIrqsStay | Need::Sockets | Need::Alone => Ok(()),
        Need::Bpf => {
            has(&[(38, "CAP_PERFMON"), (39, "CAP_BPF")])?;
            if !std::path::Path::new("/sys/kernel/btf/vmlinux").exists() {
                return Err("this kernel does not tell its types (BTF)".to_owned());
            }
            loads()
        }
    }
}

/// Loads the smallest BPF program, `return 0`. If a sandbox forbids BPF, this fails.
fn loads() -> Result<(), String> {
    // The instructions are r0 = 0; exit.
    let instructions: [u64; 2] = [0xb7, 0x95];
    // SAFETY: the name and the licence end with 0, the two instructions outlive the call, and there
    // are no options.
    let loaded = unsafe {
        libbpf_rs::libbpf_sys::bpf_prog_load(
            libbpf_rs::libbpf_sys::BPF_PROG_TYPE_XDP,
            c"weir_trial".as_ptr(),
            c"Dual MIT/GPL".as_ptr(),
            instructions.as_ptr().cast(),
            instructions.len() as _,
            std::ptr::null_mut(),
        )
    };
    if loaded < 0 {
        let error = io::Error::from_raw_os_error(-loaded);
        return Err(format!("BPF is not allowed here: {error}"));
    }
    // SAFETY: the descriptor belongs to this function.
    unsafe { libc::close(loaded) };
    Ok(())
}

/// Fails if one of these capabilities is not in effect in this process. Each has its number and its
/// name.
fn has(capabilities: &[(u32, &str)]) -> Result<(), String> {
    let status =
        fs::read_to_string("/proc/thread-self/status").map_err(|error| error.to_string())?;
    let effective = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0);
    let missing: Vec<&str> = capabilities
        .iter()
        .filter(|(number, _)| effective >> number & 1 == 0)
        .map(|(_, name)| *name)
        .collect();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(format!("{} is missing", missing.join(", ")))
    }
}
