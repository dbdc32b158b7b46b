// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kills a run of each mode with kill -9 at fifty random moments, while it sets up or runs.
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use weir_linux::settings::Journal;

use super::exact::program_of;
use super::machine::until;
use super::{machine, receiver};

const KILLS: u32 = 50;

/// A uniformly distributed random time below `most`.
fn random(most: Duration) -> Duration {
    let bits = RandomState::new().build_hasher().finish() >> 32;
    most.mul_f64(bits as f64 / f64::from(u32::MAX))
}

#[test]
fn everything_comes_back_after_kill_9_at_any_moment_in_the_mode_predicted() {
    killed_at_random("predicted");
}

#[test]
fn everything_comes_back_after_kill_9_at_any_moment_in_the_mode_exact() {
    killed_at_random("exact");
}

fn killed_at_random(mode: &str) {
    let Some(machine) = machine(&format!("mode = \"{mode}\"")) else {
        return;
    };
    let before = machine.settings();
    let _receiver = receiver(&machine, 9, 30);
    let begin = Instant::now();
    let mut whole = machine.run();
    // The latest moment of a kill. It is adapted so that half of the kills come before the run is
    // ready, and half after. How long a run takes to be ready depends on other work of the machine.
    let mut latest = 2 * begin.elapsed();
    whole.kill().unwrap();
    whole.wait().unwrap();
    assert_ne!(machine.settings(), before);
    Journal::recover(&machine.state()).unwrap();
    let mut changed = 0;
    for round in 0..KILLS {
        let mut child = machine
            .weir("run")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        sleep(random(latest));
        child.kill().unwrap();
        child.wait().unwrap();
        let has_changed = machine.settings() != before;
        latest = latest.mul_f64(if has_changed { 0.9 } else { 1.1 });
        changed += u32::from(has_changed);
        let stopped = machine.weir("stop").output().unwrap();
        assert!(stopped.status.success(), "{round}: {stopped:?}");
        assert_eq!(machine.settings(), before, "{round}");
        until("the program is gone", || program_of(&machine.ground) == 0);
        assert!(!machine.state().exists() || machine.is_clean());
    }
    println!(
        "{mode}: {changed} of {KILLS} were killed in the midst; the last one within {latest:?}"
    );
    assert!(changed >= KILLS / 10, "{mode}: only {changed} of {KILLS}");
}
