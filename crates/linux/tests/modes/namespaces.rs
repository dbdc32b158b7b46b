// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests network namespaces that are deleted during a run whose interfaces or receivers are in
//! them.
use std::collections::BTreeSet;
use std::fs;

use nix::sys::signal::Signal;

use weir_linux::sched::SchedPolicy;
use weir_linux::settings::NetDevice;
use weir_linux::threads::Work;

use super::machine::{Machine, orphans, policies, printed, programs, signal, until};
use super::{NEEDS, any, deliver, machine_that_has, socket};
use crate::actor::{Actor, become_fifo, bind};
use crate::ground::{self, Ground, Namespace, Need};

const MODES: [&str; 3] = ["native", "predicted", "exact"];

/// Number of sockets of a container. It is larger than the number that other programs open
/// meanwhile.
const CONTAINED: u16 = 256;

/// Creates a namespace that is not joined to another one.
fn lonely() -> Namespace {
    let Ground { receiver, .. } = ground::begin(NEEDS).expect("there was one already");
    receiver
}

/// The names of Weir's BPF programs begin with these.
const PROGRAMS: [&str; 4] = ["weir_", "follow_", "waiting_", "account_"];

/// What must be the same after a run.
struct Left {
    softirqs: Vec<SchedPolicy>,
    programs: BTreeSet<u32>,
}

impl Left {
    fn now() -> Self {
        Self {
            softirqs: policies(|work| matches!(work, Work::SoftIrq { .. })),
            programs: programs(&PROGRAMS),
        }
    }

    fn is_all(&self, machine: &Machine) {
        let orphans = orphans(&PROGRAMS);
        let left: BTreeSet<u32> = orphans.difference(&self.programs).copied().collect();
        until("nothing is left", || {
            let now = Self::now();
            now.softirqs == self.softirqs && now.programs.is_disjoint(&left)
        });
        assert!(machine.is_clean());
    }
}

#[test]
fn a_run_goes_on_in_a_namespace_that_nobody_else_has() {
    for mode in MODES {
        for is_killed in [false, true] {
            let section = format!("mode = \"{mode}\"");
            let Some(mut machine) = machine_that_has(&[Need::SoftIrqsStay], &section) else {
                return;
            };
            let before = Left::now();
            let interface = machine.ground.receiver.interface.clone();
            let mut run = machine.run();
            // This does what `ip netns delete` does: the namespace loses its name, but a process is
            // still in it.
            drop(std::mem::replace(&mut machine.ground.receiver, lonely()));
            std::thread::sleep(std::time::Duration::from_secs(3));
            assert_eq!(machine.status()["systems"][0]["running"], true, "{mode}");
            if is_killed {
                run.kill().unwrap();
                run.wait().unwrap();
                let sender = machine.ground.sender.interface.clone();
                let path = machine.ground.sender.path();
                until("the namespace is gone, and the pair with it", || {
                    NetDevice::find(&sender, Some(&path)).is_err()
                });
                let stopped = machine.weir("stop").output().unwrap();
                let text = printed(&stopped);
                assert!(stopped.status.success(), "{mode}: {text}");
                let gone =
                    format!("threaded of {interface}: its object is gone, so nothing is put back");
                assert!(text.contains(&gone), "{mode}: {text}");
            } else {
                signal(&run, Signal::SIGINT);
                let ended = run.wait_with_output().unwrap();
                let text = printed(&ended);
                assert!(ended.status.success(), "{mode}: {text}");
                // Everything was restored while the interface existed.
                assert!(!text.contains("gone"), "{mode}: {text}");
            }
            before.is_all(&machine);
        }
    }
}

#[test]
fn the_other_ends_namespace_takes_the_interface_with_it() {
    for mode in MODES {
        let section = format!("mode = \"{mode}\"");
        let Some(mut machine) = machine_that_has(&[Need::SoftIrqsStay], &section) else {
            return;
        };
        let before = Left::now();
        let interface = machine.ground.receiver.interface.clone();
        let run = machine.run();
        drop(std::mem::replace(&mut machine.ground.sender, lonely()));
        until("its threads are gone", || machine.napi().is_empty());
        std::thread::sleep(std::time::Duration::from_secs(5));
        assert_eq!(machine.status()["systems"][0]["running"], true, "{mode}");
        signal(&run, Signal::SIGTERM);
        let ended = run.wait_with_output().unwrap();
        let text = printed(&ended);
        assert!(ended.status.success(), "{mode}: {text}");
        let line = format!("the interface `{interface}` has gone");
        assert_eq!(text.matches(&line).count(), 1, "{mode}: {text}");
        assert!(!text.contains("cannot be found"), "{mode}: {text}");
        before.is_all(&machine);
    }
}

#[test]
fn receivers_of_a_container_go_with_it_and_the_others_stay() {
    for mode in ["predicted", "exact"] {
        let section = format!("mode = \"{mode}\"\ntop_half = {{ urgency = 60 }}");
        let Some(machine) = machine_that_has(&[Need::Sockets], &section) else {
            return;
        };
        let before = machine.settings();
        // Forwarded packets may be for receivers in any namespace.
        machine.ground.receiver.run(|| {
            fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
        });
        let run = machine.run();
        let sockets = || {
            machine.run_status()["receivers"]["sockets"]
                .as_u64()
                .unwrap_or(0)
        };
        let has_class_50 = || match mode {
            "exact" => {
                let status = machine.run_status();
                let classes = status["exact"]["classes"].as_array().unwrap().clone();
                classes.iter().any(|class| class["urgency"] == 50)
            }
            _ => machine.napi() == [SchedPolicy::Fifo(50)],
        };
        let container = lonely();
        let contained = Actor::new(&container, || {
            let sockets: Vec<_> = (0..CONTAINED)
                .map(|number| bind(any(4700 + number), libc::SOCK_DGRAM))
                .collect();
            become_fifo(50);
            crate::actor::child(move || {
                let mut byte = 0_u8;
                // SAFETY: the byte outlives the call.
                unsafe { libc::recv(sockets[0], (&raw mut byte).cast(), 1, 0) };
            });
        });
        until("the container's receiver is known", has_class_50);
        // The socket is opened only now, since a forked process has copies of all sockets that
        // exist.
        let own = socket(&machine.ground, 9);
        until("all are known", || sockets() > u64::from(CONTAINED));
        drop(contained);
        drop(container);
        until("the container's are not any more", || {
            sockets() < u64::from(CONTAINED)
        });
        if mode == "predicted" {
            until("nobody follows it", || !has_class_50());
        }
        assert_eq!(deliver(&machine.ground, &own, 40), 40);
        drop(own);
        machine.end(run, Signal::SIGTERM, &before);
    }
}
