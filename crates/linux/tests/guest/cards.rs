// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests settings that the card or the machine does not have. The run notes them, and everything
//! else works.
use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use weir_linux::native::{Device, Native, Note};
use weir_linux::sched::{self, SchedPolicy};
use weir_linux::settings::journal::Adjustable as _;
use weir_linux::settings::steering::FlowSpec;
use weir_linux::settings::{Journal, JournalError, NetDevice, Setting, SettingError, Value};
use weir_linux::threads;

use super::ground::{Need, Offload, skipped};
use super::{all, interface, stand, stand_with, urgency};

#[test]
fn what_a_card_does_not_have_is_noted() {
    let Some(ground) = stand() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let interface = interface(&ground.receiver);
    let before = all(&interface);
    let (mut journal, _) = Journal::open(folder.path()).unwrap();
    let flow = FlowSpec::Port {
        tcp: false,
        v6: false,
        port: 502,
    };
    let native = Native::new(vec![Device {
        gathering: Some(Duration::from_micros(50)),
        ring: Some(512),
        steered: vec![flow],
        ..Device::new(interface.clone(), urgency(20))
    }]);
    let report = native.apply(&mut journal).unwrap();
    assert!(
        matches!(
            &report.notes[..],
            [
                Note::NoSteering(..),
                Note::Missing(SettingError::Absent(Setting::Ring { .. })),
                Note::Missing(SettingError::Absent(Setting::Coalescing { .. }))
            ]
        ),
        "{:?}",
        report.notes
    );
    drop(journal);
    // Without GRO a veth has no NAPI, so packets are received on the CPU that sends them. Newer
    // kernels then have no file `threaded` either.
    ground.receiver.offload(Offload::Receive, false);
    let (mut journal, _) = Journal::open(folder.path()).unwrap();
    let native = Native::new(vec![Device::new(interface.clone(), urgency(20))]);
    let report = native.apply(&mut journal).unwrap();
    assert!(
        matches!(&report.notes[..], [.., Note::NoThread(_)]),
        "{:?}",
        report.notes
    );
    drop(journal);
    assert_eq!(all(&interface), before);
}

#[test]
fn a_cards_gathering_is_set_and_put_back() {
    let Some(ground) = stand() else {
        return;
    };
    if !Path::new("/dev/net/tun").exists() {
        skipped("there is no /dev/net/tun, whose interfaces can gather packets");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    ground.receiver.ip("tuntap add name wtap mode tap");
    let interface = NetDevice::find("wtap", Some(&ground.receiver.path())).unwrap();
    let setting = Setting::Coalescing {
        interface,
        queue: None,
    };
    let frames = || match setting.value() {
        Ok(Value::Coalescing(coalescing)) => coalescing,
        other => panic!("{other:?}"),
    };
    let before = frames();
    let (mut journal, _) = Journal::open(folder.path()).unwrap();
    let eight = Value::Coalescing(before.with_receive_frames(before.receive_frames() + 8));
    journal.apply(&setting, &eight).unwrap();
    assert_eq!(frames().receive_frames(), before.receive_frames() + 8);
    // The veth cannot gather packets for a time.
    let time = Value::Coalescing(before.with_receive_microseconds(50));
    assert!(matches!(
        journal.apply(&setting, &time),
        Err(JournalError::Setting(SettingError::Absent(_)))
    ));
    assert!(journal.restore().is_complete());
    assert_eq!(frames(), before);
}

#[test]
fn a_cap_without_room_is_refused() {
    // The cap takes the room of all CPUs for SCHED_DEADLINE.
    if stand_with(&[Need::Namespaces, Need::RealTime, Need::Alone]).is_none() {
        return;
    }
    let period = Duration::from_millis(100);
    let most = Value::Policy(SchedPolicy::Deadline {
        runtime: period.mul_f64(0.9),
        deadline: period,
        period,
    });
    // There is one thread more than there are CPUs, and all of them sleep.
    let (end, wait) = mpsc::channel::<()>();
    let wait = Arc::new(Mutex::new(wait));
    let cpus = std::thread::available_parallelism().unwrap().get();
    let (tell, told) = mpsc::channel();
    let sleepers: Vec<_> = (0..=cpus)
        .map(|_| {
            let (tell, wait) = (tell.clone(), wait.clone());
            std::thread::spawn(move || {
                tell.send(nix::unistd::gettid().as_raw()).unwrap();
                let _ = wait.lock().unwrap().recv();
            })
        })
        .collect();
    let refused = (0..=cpus)
        .map(|_| Setting::Policy {
            thread: threads::Thread::find(told.recv().unwrap())
                .unwrap()
                .unwrap(),
            name: "sleeper".to_owned(),
        })
        .find_map(|setting| setting.apply(&most).err());
    drop(end);
    for sleeper in sleepers {
        sleeper.join().unwrap();
    }
    assert!(
        matches!(refused, Some(SettingError::NoRoom { .. })),
        "{refused:?}"
    );
}

#[test]
fn the_share_of_a_cap_is_free_again_when_it_is_put_back() {
    if stand_with(&[Need::Namespaces, Need::RealTime]).is_none() {
        return;
    }
    let period = Duration::from_millis(10);
    let cap = SchedPolicy::Deadline {
        runtime: period / 2,
        deadline: period,
        period,
    };
    let (end, wait) = mpsc::channel::<()>();
    let (tell, told) = mpsc::channel();
    let sleeper = std::thread::spawn(move || {
        tell.send(nix::unistd::gettid().as_raw()).unwrap();
        let _ = wait.recv();
    });
    let tid = told.recv().unwrap();
    // The cap is set and restored more often than the CPUs have room for such shares.
    let cpus = std::thread::available_parallelism().unwrap().get();
    for round in 0..4 * cpus {
        // The thread sleeps, and has not used its share for a long time.
        std::thread::sleep(2 * period);
        sched::set(tid, cap).unwrap_or_else(|error| panic!("round {round}: {error}"));
        std::thread::sleep(2 * period);
        sched::set(tid, SchedPolicy::Other { nice: 0 }).unwrap();
    }
    drop(end);
    sleeper.join().unwrap();
}
