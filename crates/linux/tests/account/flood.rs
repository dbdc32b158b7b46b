// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes for the tests of the account: one that sends, one that receives, and one that only
//! runs.
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sched::{CloneFlags, setns};
use weir_linux::sched::{self, Cpus, SchedPolicy};
use weir_linux::settings::NetDevice;

use super::actor::{self, Actor};
use super::ground::{Ground, Namespace, skipped};

/// The CPU on which floods are sent, and the CPU on which they are received.
pub const SENDS: usize = 0;
pub const HANDLES: usize = 1;

pub fn cpu(number: usize) -> Cpus {
    number.to_string().parse().unwrap()
}

/// Whether the machine has a CPU for sending and another for receiving.
pub fn has_two_cpus() -> bool {
    let own = sched::affinity(0).unwrap();
    let has = own.contains(SENDS) && own.contains(HANDLES);
    if !has {
        skipped("it takes two CPUs");
    }
    has
}

/// A thread that sends packets to ports until this is dropped.
pub struct Flood {
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Flood {
    /// Begins to send from the sender's namespace to each of these ports in turn, as fast as
    /// possible.
    pub fn begin(ground: &Ground, ports: &'static [u16]) -> Self {
        Self::bursts(ground, ports, Duration::ZERO)
    }

    /// Begins to send, with the pause `rest` whenever each port has got its packet.
    pub fn bursts(ground: &Ground, ports: &'static [u16], rest: Duration) -> Self {
        let to = ground.receiver.v4;
        let namespace = std::fs::File::open(ground.sender.path()).unwrap();
        let (stop, sent) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let (stopped, count) = (stop.clone(), sent.clone());
        let thread = std::thread::spawn(move || {
            setns(&namespace, CloneFlags::CLONE_NEWNET).unwrap();
            sched::set_affinity(0, &cpu(SENDS)).unwrap();
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
            while !stopped.load(Ordering::Relaxed) {
                for port in ports {
                    // Sending may fail, since a queue is full or nobody listens on the port.
                    let sent = socket.send_to(&[0; 256], (to, *port));
                    count.fetch_add(u64::from(sent.is_ok()), Ordering::Relaxed);
                }
                std::thread::sleep(rest);
            }
        });
        let thread = Some(thread);
        Self { stop, sent, thread }
    }

    /// Ends the flood, and returns how many packets were sent.
    pub fn end(mut self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
        self.sent.load(Ordering::Relaxed)
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// A process that binds a port and sleeps.
pub fn receiver(namespace: &Namespace, port: u16) -> Actor {
    let address = SocketAddr::from((namespace.v4, port));
    Actor::new(namespace, move || {
        actor::bind(address, libc::SOCK_DGRAM);
    })
}

/// A process that does nothing but run. It has the CPU that receives the flood, before all other
/// processes there.
pub struct Spinner(Child);

impl Spinner {
    pub fn begin(namespace: &Namespace) -> Self {
        let mut command: Command = namespace.command("sh");
        let child = command
            .args(["-c", "while :; do :; done"])
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let pid = child.id() as i32;
        sched::set_affinity(pid, &cpu(HANDLES)).unwrap();
        sched::set(pid, SchedPolicy::Fifo(10)).unwrap();
        Self(child)
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Lets the CPU that receives the flood handle the interface's packets, in soft interrupts (RPS).
pub fn steer(namespace: &Namespace) {
    let path = namespace.path();
    let interface = NetDevice::find(&namespace.interface, Some(&path)).unwrap();
    let open = interface.open().unwrap();
    open.write("queues/rx-0/rps_cpus", &format!("{:x}", 1 << HANDLES))
        .unwrap();
}
