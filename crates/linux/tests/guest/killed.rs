// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kills a run with kill -9 at a hundred random moments, while it sets up or runs.
use std::collections::hash_map::RandomState;
use std::env;
use std::hash::{BuildHasher, Hasher};
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use weir_linux::native::Native;
use weir_linux::sched::{self, SchedPolicy};
use weir_linux::settings::{Journal, NetDevice, Setting, Value};

use super::{all, interface, left, napi, stand, urgency, wanted};

/// The process that is killed. It makes all changes, changes policies again now and then as mode
/// predicted does, and restores everything.
fn victim(folder: &Path) {
    let name = env::var("WEIR_INTERFACE").unwrap();
    let interface = NetDevice::find(&name, None).unwrap();
    let (mut journal, _) = Journal::open(folder).unwrap();
    Native::new(vec![wanted(interface.clone())])
        .apply(&mut journal)
        .unwrap();
    for round in 0..20 {
        for thread in napi(&interface) {
            let policy = urgency(1 + round % 7).policy();
            journal
                .apply(&Setting::policy(&thread), &Value::Policy(policy))
                .unwrap();
        }
    }
    assert!(journal.restore().is_complete());
}

/// A uniformly distributed random time below `most`.
fn random(most: Duration) -> Duration {
    let bits = RandomState::new().build_hasher().finish() >> 32;
    most.mul_f64(bits as f64 / f64::from(u32::MAX))
}

#[test]
fn everything_comes_back_after_kill_9_at_any_moment() {
    if let Some(folder) = env::var_os("WEIR_FOLDER") {
        return victim(Path::new(&folder));
    }
    let Some(ground) = stand() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let interface = interface(&ground.receiver);
    let before = all(&interface);
    let start = || -> Child {
        ground
            .receiver
            .command(env::current_exe().unwrap())
            .args([
                "--exact",
                "guest::killed::everything_comes_back_after_kill_9_at_any_moment",
            ])
            .env("WEIR_FOLDER", folder.path())
            .env("WEIR_INTERFACE", &interface.name)
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    };
    let begin = Instant::now();
    assert!(start().wait().unwrap().success());
    // The latest moment of a kill is about the duration of a run. That depends on other work of the
    // machine, so it is adapted to how the last kills fell.
    let mut latest = begin.elapsed();
    assert_eq!((all(&interface), left(folder.path())), (before.clone(), 0));
    let (mut changed, mut journals) = (0, 0);
    for round in 0..100 {
        let mut child = start();
        sleep(random(latest));
        child.kill().unwrap();
        let ended = child.wait().unwrap().success();
        let has_changed = all(&interface) != before;
        if ended {
            latest = latest.mul_f64(0.9);
        } else if !has_changed {
            latest = latest.mul_f64(1.1);
        }
        changed += u32::from(has_changed);
        journals += usize::from(left(folder.path()) > 0);
        let restored = Journal::recover(folder.path()).unwrap();
        for restoration in &restored {
            assert!(restoration.is_complete(), "{round}: {restored:?}");
            assert_eq!(restoration.unreadable, 0);
        }
        assert_eq!(all(&interface), before, "{round}: {restored:?}");
        for thread in napi(&interface) {
            let policy = sched::get(thread.thread.tid);
            assert!(policy.is_err() || policy.unwrap() == SchedPolicy::Other { nice: 0 });
        }
        assert_eq!(left(folder.path()), 0);
    }
    println!(
        "of 100 killed, {journals} had a journal and {changed} had changed something; the last one was killed within {latest:?}"
    );
    assert!(
        changed >= 10,
        "only {changed} of 100 were killed in the midst"
    );
}
