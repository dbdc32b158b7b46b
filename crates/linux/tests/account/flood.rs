// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who sends, who receives, and who only runs.
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

/// The CPU that floods come from, and the one where they are handled.
pub const SENDS: usize = 0;
pub const HANDLES: usize = 1;

pub fn cpu(number: usize) -> Cpus {
    number.to_string().parse().unwrap()
}

/// Is there a CPU for each?
pub fn has_two_cpus() -> bool {
    let own = sched::affinity(0).unwrap();
    let has = own.contains(SENDS) && own.contains(HANDLES);
    if !has {
        skipped("it takes two CPUs");
    }
    has
}

/// Packets to a port until it is dropped.
pub struct Flood {
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Flood {
    /// From the sender's namespace to each of these ports in turn, as fast as it goes.
    pub fn begin(ground: &Ground, ports: &'static [u16]) -> Self {
        Self::bursts(ground, ports, Duration::ZERO)
    }

    /// The same, with a rest whenever each port has had its packet.
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
                    // A full queue, or nobody at the port.
                    let sent = socket.send_to(&[0; 256], (to, *port));
                    count.fetch_add(u64::from(sent.is_ok()), Ordering::Relaxed);
                }
                std::thread::sleep(rest);
            }
        });
        let thread = Some(thread);
        Self { stop, sent, thread }
    }

    /// Ends it, and tells how many packets were sent.
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

/// A process that has a port and sleeps.
pub fn receiver(namespace: &Namespace, port: u16) -> Actor {
    let address = SocketAddr::from((namespace.v4, port));
    Actor::new(namespace, move || {
        actor::bind(address, libc::SOCK_DGRAM);
    })
}

/// A process that runs on the CPU that handles, before all others there, and does nothing else.
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

/// Has the CPU that handles take what the interface receives, in soft interrupts (RPS).
pub fn steer(namespace: &Namespace) {
    let path = namespace.path();
    let interface = NetDevice::find(&namespace.interface, Some(&path)).unwrap();
    let open = interface.open().unwrap();
    open.write("queues/rx-0/rps_cpus", &format!("{:x}", 1 << HANDLES))
        .unwrap();
}
