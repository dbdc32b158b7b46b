// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests what may happen to a run: interfaces disappear, and there are more sockets than the table
//! has room for.
use nix::sys::signal::Signal;

use super::exact::program_of;
use super::machine::{Machine, printed, signal, until};
use super::{any, deliver, machine, machine_that_has, socket};
use crate::actor::{Actor, bind, child};
use crate::ground::{Need, Offload};

/// Number of sockets of one process. Any process may have so many.
const EACH: u16 = 900;

/// Starts a process whose child processes, `processes` in number, have [`EACH`] sockets each, at
/// ports from 20,000 on. They end with it.
fn hoarder(machine: &Machine, processes: u16) -> Actor {
    Actor::new(&machine.ground.receiver, move || {
        for process in 0..processes {
            child(move || {
                for socket in 0..EACH {
                    bind(any(20_000 + process * EACH + socket), libc::SOCK_DGRAM);
                }
            });
        }
    })
}

#[test]
fn sockets_by_the_thousand_come_and_go_and_what_has_no_room_still_receives() {
    // Every process of this machine that follows receivers is informed of all of these sockets.
    let Some(machine) = machine_that_has(&[Need::Alone], "mode = \"exact\"") else {
        return;
    };
    let before = machine.settings();
    let urgent = socket(&machine.ground, 9);
    let run = machine.run();
    let known = || {
        let exact = &machine.run_status()["exact"];
        let number = |key: &str| exact[key].as_u64().unwrap();
        (number("sockets"), number("without_room"))
    };
    let all_of = |processes: u16| u64::from(processes * EACH) + 1;
    for _ in 0..2 {
        let hoarder = hoarder(&machine, 12);
        until("10,000 sockets are known", || {
            known().0 + known().1 == all_of(12)
        });
        assert_eq!(deliver(&machine.ground, &urgent, 40), 40);
        drop(hoarder);
        until("they are gone", || known() == (1, 0));
    }
    let hoarder = hoarder(&machine, 20);
    until("all sockets are known", || {
        known().0 + known().1 == all_of(20)
    });
    // There are more sockets than the table has slots.
    let (_, without) = known();
    assert!(without >= all_of(20) - 16_384, "{without}");
    // It depends on the port whether a later socket has room in the table. The socket receives in
    // any case.
    let late = socket(&machine.ground, 4600);
    until("it is known too", || {
        known().0 + known().1 == all_of(20) + 1
    });
    assert_eq!(deliver(&machine.ground, &late, 40), 40);
    assert_eq!(deliver(&machine.ground, &urgent, 40), 40);
    drop(hoarder);
    until("it has room", || known() == (2, 0));
    let text = machine.end(run, Signal::SIGINT, &before);
    assert!(text.contains("the table of receivers is full"), "{text}");
}

#[test]
fn an_interface_may_go_and_come_back() {
    for mode in ["native", "predicted", "exact"] {
        let Some(machine) = machine(&format!("mode = \"{mode}\"")) else {
            return;
        };
        let run = machine.run();
        let ground = &machine.ground;
        let name = ground.receiver.interface.clone();
        ground.receiver.ip(&format!("link delete {name}"));
        until("nothing of it is left", || machine.napi().is_empty());
        std::thread::sleep(std::time::Duration::from_secs(3));
        assert_eq!(machine.status()["systems"][0]["running"], true, "{mode}");
        let peer = &ground.sender.interface;
        ground
            .receiver
            .ip(&format!("link add {name} type veth peer name {peer}"));
        ground.receiver.ip(&format!("link set {peer} up"));
        if mode == "exact" {
            // Until the other end computes checksums, packets would be lost.
            std::thread::sleep(std::time::Duration::from_secs(3));
            assert_eq!(program_of(ground), 0);
            ground
                .receiver
                .offload_of(peer, Offload::SendChecksums, false);
        }
        ground.receiver.ip(&format!("link set {name} up"));
        ground.receiver.offload(Offload::Receive, true);
        until("it is looked after again", || {
            machine.napi().len() == 1 && (mode != "exact" || program_of(ground) != 0)
        });
        signal(&run, Signal::SIGINT);
        let ended = run.wait_with_output().unwrap();
        let text = printed(&ended);
        assert!(ended.status.success(), "{mode}: {text}");
        let refused = text.contains("leaves out the checksums of its packets");
        assert_eq!(refused, mode == "exact", "{mode}: {text}");
        assert_eq!(machine.settings().files, ["0", "0", "0"]);
        assert!(machine.is_clean());
    }
}
