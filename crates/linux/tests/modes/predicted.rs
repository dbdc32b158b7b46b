// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests mode predicted through the command.
use nix::sys::signal::Signal;
use weir_linux::sched::SchedPolicy;

use super::machine::{Machine, printed, until};
use super::{changed, listed, machine, plan, receiver};
use crate::ground::Offload;

const ORDINARY: SchedPolicy = SchedPolicy::Other { nice: 0 };

fn wait_for(machine: &Machine, policy: SchedPolicy) {
    until(&format!("the thread has {policy}"), || {
        machine.napi() == [policy]
    });
}

#[test]
fn threads_follow_who_waits_up_to_what_the_plan_says() {
    for (section, most) in [("", 2), ("top_half = { urgency = 40 }", 40)] {
        let Some(machine) = machine(&format!("mode = \"predicted\"\n{section}")) else {
            return;
        };
        let before = machine.settings();
        let listed = listed(&plan(&machine));
        assert_eq!(machine.settings(), before);

        let child = machine.run();
        wait_for(&machine, ORDINARY);
        let now = machine.settings();
        let policy = format!("its receivers', up to SCHED_FIFO {most}");
        assert_eq!(listed, changed(&machine, &before, &now, &policy));

        // The file states that the receiver at port 9 has urgency 2.
        let of_the_file = receiver(&machine, 9, 30);
        wait_for(&machine, SchedPolicy::Fifo(2));
        let less = receiver(&machine, 4400, 1);
        drop(of_the_file);
        wait_for(&machine, SchedPolicy::Fifo(1));
        let more = receiver(&machine, 4401, 50);
        wait_for(&machine, SchedPolicy::Fifo(most));
        drop(more);
        wait_for(&machine, SchedPolicy::Fifo(1));
        drop(less);
        wait_for(&machine, ORDINARY);
        until("the status says so", || {
            let status = machine.run_status();
            let interface = &status["predicted"]["interfaces"][0];
            status["predicted"]["changes"].as_u64() >= Some(6)
                && interface["urgency"] == 0
                && interface["waiting"] == 0
                && interface["most"] == most
        });

        machine.end(child, Signal::SIGINT, &before);
    }
}

#[test]
fn threads_that_come_while_it_runs_follow_too_and_the_first_values_come_back() {
    let Some(machine) = machine("mode = \"predicted\"\npredict = \"registered\"") else {
        return;
    };
    let before = machine.settings();
    let _receiver = receiver(&machine, 9, 30);
    let child = machine.run();
    wait_for(&machine, SchedPolicy::Fifo(2));
    // A veth without GRO has no NAPI. When GRO is turned on again, it has a new one.
    machine.ground.receiver.offload(Offload::Receive, false);
    assert_eq!(machine.napi(), []);
    machine.ground.receiver.offload(Offload::Receive, true);
    wait_for(&machine, SchedPolicy::Fifo(2));
    let status = &machine.run_status()["predicted"];
    assert_eq!(status["predict"], "registered");
    assert!(status["interfaces"][0]["waiting"].is_null());
    machine.end(child, Signal::SIGTERM, &before);
}

#[test]
fn a_cap_on_what_follows_is_refused() {
    let section = "mode = \"predicted\"\ntop_half = { runtime = \"1ms\", period = \"10ms\" }";
    let Some(machine) = machine(section) else {
        return;
    };
    for command in ["plan", "run"] {
        let output = machine.weir(command).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let text = printed(&output);
        assert!(text.contains("gives them a cap, which has none"), "{text}");
        assert!(text.contains("top_half = { urgency = 40 }"), "{text}");
    }
    assert!(!machine.state().exists());
    let native = machine.weir("plan").args(["--mode", "native"]).output();
    assert!(native.unwrap().status.success());
}
