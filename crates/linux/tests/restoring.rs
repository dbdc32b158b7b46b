// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that the changes of a run are restored wherever the interface is by then, and whoever else
//! changes the settings. What cannot be restored is reported.
use crate::ground;
use crate::machine;

use std::fs;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use machine::{FILES, Machine, printed, signal, until};
use nix::sys::signal::Signal;
use weir_linux::sched::{self, SchedPolicy};
use weir_linux::settings::{Journal, Namespace, NetDevice, Setting, Value, sockets};
use weir_linux::threads::Thread;

/// The values of the interface `name`'s settings in the network namespace at `path`.
fn files(name: &str, path: &Path) -> Vec<String> {
    let open = NetDevice::find(name, Some(path)).unwrap().open().unwrap();
    let read = |file: &&str| open.read(file).unwrap().trim().to_owned();
    FILES.iter().map(read).collect()
}

fn ended(run: Child) -> (Option<i32>, String) {
    let ended = run.wait_with_output().unwrap();
    (ended.status.code(), printed(&ended))
}

/// Ends a run by this signal, and then restores what it may have left. Returns the messages of
/// both.
fn put_back(machine: &Machine, run: Child, how: Signal) -> String {
    signal(&run, how);
    let (code, text) = ended(run);
    assert_eq!(code, (how == Signal::SIGTERM).then_some(0), "{text}");
    let stopped = machine.weir("stop").output().unwrap();
    assert!(stopped.status.success(), "{}", printed(&stopped));
    format!("{text}{}", printed(&stopped))
}

/// Moves the machine's interface to the sender's namespace, and renames it to `name`.
fn moved(machine: &Machine, name: &str) {
    let (receiver, sender) = (&machine.ground.receiver, &machine.ground.sender);
    let process = format!("/proc/{}/fd/{}", std::process::id(), sender.descriptor());
    let here = &receiver.interface;
    receiver.ip(&format!("link set {here} down"));
    receiver.ip(&format!("link set {here} netns {process} name {name}"));
    sender.ip(&format!("link set {name} up"));
}

#[test]
fn an_interface_in_another_network_namespace_is_found_there() {
    for renamed in [false, true] {
        let Some(machine) = Machine::new() else {
            return;
        };
        let before = machine.settings();
        let run = machine.run();
        let name = if renamed {
            "weir-moved".to_owned()
        } else {
            machine.ground.receiver.interface.clone()
        };
        moved(&machine, &name);
        let there = machine.ground.sender.path();
        assert_ne!(files(&name, &there), before.files);
        std::thread::sleep(std::time::Duration::from_secs(3));
        signal(&run, Signal::SIGINT);
        let (code, text) = ended(run);
        assert_eq!(code, Some(0), "{text}");
        assert!(text.contains("in another network namespace now"), "{text}");
        assert_eq!(files(&name, &there), before.files, "{text}");
        assert!(machine.is_clean());
    }
}

/// A network namespace without threads: what keeps it alive, and the path at which it can be
/// opened.
type Kept = (Box<dyn std::any::Any>, String);

/// Creates a namespace that a descriptor of this process keeps.
fn kept_open() -> Kept {
    let made = std::thread::spawn(|| {
        nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
        fs::File::open("/proc/thread-self/ns/net").unwrap()
    });
    let file = made.join().unwrap();
    let path = format!(
        "/proc/{}/fd/{}",
        std::process::id(),
        std::os::fd::AsRawFd::as_raw_fd(&file)
    );
    (Box::new(file), path)
}

/// Takes the interface up in the namespace at `path`.
fn up(name: &str, path: &str) {
    let mut up = Command::new("nsenter");
    up.arg(format!("--net={path}"))
        .args(["ip", "link", "set", name, "up"]);
    assert!(up.status().unwrap().success());
}

/// A process that is killed when the test ends.
struct Keeper(Child);

impl Drop for Keeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Creates a namespace that is kept by a mount, which only another mount namespace shows.
fn kept_mounted(machine: &Machine) -> Kept {
    let place = machine.folder.path().join("kept");
    let mut keeper = machine.ground.receiver.command("unshare");
    keeper
        .args(["--mount", "sh", "-c"])
        .arg("touch $0 && unshare --net=$0 true && touch $0.there && exec sleep 100")
        .arg(&place);
    let keeper = Keeper(keeper.spawn().unwrap());
    until("it is mounted", || place.with_extension("there").exists());
    // The path leads through the mounts of the other process.
    let process = format!("/proc/{}", keeper.0.id());
    let path = [process.as_str(), "root"].join("/") + &place.display().to_string();
    (Box::new(keeper), path)
}

#[test]
fn an_interface_in_a_namespace_that_no_thread_is_in_is_found_there() {
    for is_mounted in [false, true] {
        for how in [Signal::SIGTERM, Signal::SIGKILL] {
            let Some(machine) = Machine::new() else {
                return;
            };
            let before = machine.settings();
            let (_held, path) = if is_mounted {
                kept_mounted(&machine)
            } else {
                kept_open()
            };
            let run = machine.run();
            let name = &machine.ground.receiver.interface;
            let receiver = &machine.ground.receiver;
            receiver.ip(&format!("link set {name} netns {path}"));
            up(name, &path);
            assert_ne!(files(name, Path::new(&path)), before.files);
            let all = put_back(&machine, run, how);
            assert_eq!(files(name, Path::new(&path)), before.files, "{all}");
            assert!(machine.is_clean());
        }
    }
}

#[test]
fn a_pipe_in_the_place_of_a_namespace_is_not_waited_for() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let pipe = machine.folder.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
    let refused = Namespace::open(&pipe).unwrap_err();
    assert!(refused.to_string().contains("is no network namespace"));
    // Any user who has a user namespace can do this.
    let place = machine.folder.path().join("place");
    let mut keeper = machine.ground.receiver.command("unshare");
    keeper
        .args(["--mount", "sh", "-c"])
        .arg("touch $0 && unshare --net=$0 true && mount --bind $1 $0 && touch $0.there && exec sleep 100")
        .args([&place, &pipe]);
    let _keeper = Keeper(keeper.spawn().unwrap());
    until("it is mounted", || place.with_extension("there").exists());
    let run = machine.run();
    // Weir searches for the interface wherever there may be namespaces.
    let name = &machine.ground.receiver.interface;
    machine.ground.receiver.ip(&format!("link delete {name}"));
    let mut run = Keeper(run);
    signal(&run.0, Signal::SIGTERM);
    until("the run has ended", || run.0.try_wait().unwrap().is_some());
    assert!(machine.is_clean());
}

#[test]
fn an_interface_in_a_namespace_that_only_a_socket_keeps_is_found_there() {
    for how in [Signal::SIGTERM, Signal::SIGKILL] {
        let Some(machine) = Machine::new() else {
            return;
        };
        let before = machine.settings();
        let made = std::thread::spawn(|| {
            nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
            std::net::UdpSocket::bind(("0.0.0.0", 0)).unwrap()
        });
        let socket: OwnedFd = made.join().unwrap().into();
        let space = || {
            let held = sockets::namespace(&socket).unwrap();
            let path = format!("/proc/{}/fd/{}", std::process::id(), held.as_raw_fd());
            (held, path)
        };
        let run = machine.run();
        let name = &machine.ground.receiver.interface;
        {
            let (_held, path) = space();
            let receiver = &machine.ground.receiver;
            receiver.ip(&format!("link set {name} netns {path}"));
            up(name, &path);
            assert_ne!(files(name, Path::new(&path)), before.files);
        }
        let all = put_back(&machine, run, how);
        let (_held, path) = space();
        assert_eq!(files(name, Path::new(&path)), before.files, "{all}");
        assert!(machine.is_clean());
    }
}

#[test]
fn one_that_may_not_be_looked_for_is_not_said_to_be_gone() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let before = machine.settings();
    let mut run = machine.ground.receiver.command("unshare");
    // The process's /sys shows its own interfaces, as that of a service does.
    run.args(["--mount", "sh", "-c"])
        .arg("mount -t sysfs sys /sys && exec \"$@\"")
        .args(["sh", "setpriv", "--bounding-set=-sys_admin"])
        .args([env!("CARGO_BIN_EXE_weir-linux"), "run", "--state"])
        .args([machine.state(), machine.file()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let run = run.spawn().unwrap();
    until("the run is ready", || {
        machine.run_status()["changes"].as_u64() >= Some(1)
    });
    let name = machine.ground.receiver.interface.clone();
    moved(&machine, &name);
    signal(&run, Signal::SIGTERM);
    let (code, text) = ended(run);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("it has gone, or been moved to"), "{text}");
    let there = machine.ground.sender.path();
    assert_ne!(files(&name, &there), before.files);
    let stopped = machine.weir("stop").output().unwrap();
    assert!(stopped.status.success(), "{}", printed(&stopped));
    assert_eq!(files(&name, &there), before.files);
    assert!(machine.is_clean());
}

#[test]
fn an_interface_of_another_name_is_no_other_one() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let before = machine.settings();
    let run = machine.run();
    let receiver = &machine.ground.receiver;
    let name = &receiver.interface;
    receiver.ip(&format!("link set {name} down"));
    receiver.ip(&format!("link set {name} name weir-renamed"));
    receiver.ip("link set weir-renamed up");
    std::thread::sleep(std::time::Duration::from_secs(3));
    signal(&run, Signal::SIGINT);
    let (code, text) = ended(run);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("is `weir-renamed` now"), "{text}");
    assert_eq!(files("weir-renamed", &receiver.path()), before.files);
    assert!(machine.is_clean());
}

#[test]
fn an_interface_that_got_anothers_number_is_left_alone() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let run = machine.run();
    let receiver = &machine.ground.receiver;
    let name = &receiver.interface;
    let index = NetDevice::find(name, Some(&receiver.path())).unwrap().index;
    receiver.ip(&format!("link delete {name}"));
    receiver.ip(&format!(
        "link add weir-other index {index} type veth peer name weir-end"
    ));
    let open = || {
        let other = NetDevice::find("weir-other", Some(&receiver.path()));
        other.unwrap().open().unwrap()
    };
    // By chance this is the value that the run has set.
    open().write("gro_flush_timeout", "1000000").unwrap();
    signal(&run, Signal::SIGINT);
    let (code, text) = ended(run);
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(open().read("gro_flush_timeout").unwrap().trim(), "1000000");
}

#[test]
fn one_interface_is_looked_after_by_one_run_wherever_its_state_is() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let before = machine.settings();
    let run = machine.run();
    let mut second = machine
        .ground
        .receiver
        .command(env!("CARGO_BIN_EXE_weir-linux"));
    second
        .args(["run", "--state"])
        .args([machine.folder.path().join("another"), machine.file()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut second = second.spawn().unwrap();
    until("it is refused", || second.try_wait().unwrap().is_some());
    let (code, text) = ended(second);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains(&format!("process {}", run.id())), "{text}");
    machine.end(run, Signal::SIGINT, &before);
}

/// If this variable is set, the test program acts as a second run. It sets the policy of a process,
/// which is given together with the folder of its state. It ends when its input is closed.
const OTHER: &str = "WEIR_OTHER_RUN";

fn policy_of(pid: i32) -> Setting {
    Setting::Policy {
        thread: Thread::find(pid).unwrap().unwrap(),
        name: "a process of the test".to_owned(),
    }
}

fn fifo(priority: u8) -> Value {
    Value::Policy(SchedPolicy::Fifo(priority))
}

/// Starts the second run. It has set the policy when this returns.
fn other(folder: &Path, pid: i32, priority: u8) -> Child {
    let child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "restoring::two_runs_with_their_states_apart_share_what_both_set",
        ])
        .env(OTHER, format!("{}|{pid}|{priority}", folder.display()))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    until("the other run has set it", || {
        sched::get(pid).unwrap() == SchedPolicy::Fifo(priority)
    });
    child
}

fn be_the_other(what: &str) {
    let parts: Vec<&str> = what.split('|').collect();
    let (mut journal, _) = Journal::open(Path::new(parts[0])).unwrap();
    let setting = policy_of(parts[1].parse().unwrap());
    journal
        .apply(&setting, &fifo(parts[2].parse().unwrap()))
        .unwrap();
    // This blocks until the other end is closed.
    let _ = std::io::Read::read(&mut std::io::stdin(), &mut [0]);
    drop(journal);
}

#[test]
fn two_runs_with_their_states_apart_share_what_both_set() {
    if let Ok(what) = std::env::var(OTHER) {
        return be_the_other(&what);
    }
    let Some(_ground) = ground::begin(&[ground::Need::RealTime]) else {
        return;
    };
    let folders = tempfile::tempdir().unwrap();
    let (one, two) = (folders.path().join("one"), folders.path().join("two"));
    let mut process = Command::new("sleep").arg("100").spawn().unwrap();
    let pid = process.id() as i32;
    let policy = || sched::get(pid).unwrap();
    let ordinary = policy();
    // Each of the two runs may end first.
    for first_ends_first in [true, false] {
        let (mut journal, _) = Journal::open(&one).unwrap();
        journal.apply(&policy_of(pid), &fifo(10)).unwrap();
        let mut later = other(&two, pid, 20);
        if first_ends_first {
            assert!(journal.restore().is_complete());
            assert_eq!(policy(), SchedPolicy::Fifo(20));
            drop(later.stdin.take());
            assert!(later.wait().unwrap().success());
        } else {
            drop(later.stdin.take());
            assert!(later.wait().unwrap().success());
            assert_eq!(policy(), SchedPolicy::Fifo(10));
            assert!(journal.restore().is_complete());
        }
        assert_eq!(policy(), ordinary);
    }
    // The other run does not know a run that was killed. It takes the present value for the first
    // value, so the journal of the killed run is kept.
    let mut killed = other(&one, pid, 10);
    killed.kill().unwrap();
    killed.wait().unwrap();
    let mut later = other(&two, pid, 20);
    let restored = Journal::recover(&one).unwrap();
    assert!(!restored[0].is_complete(), "{restored:?}");
    drop(later.stdin.take());
    later.wait().unwrap();
    assert!(Journal::recover(&one).unwrap()[0].is_complete());
    assert_eq!(policy(), ordinary);
    process.kill().unwrap();
    process.wait().unwrap();
}

#[test]
fn a_hang_up_has_the_file_read_anew() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let before = machine.settings();
    let run = machine.run();
    let text = fs::read_to_string(machine.file()).unwrap();
    let timeout = || machine.settings().files[1].clone();
    assert_eq!(timeout(), "1000000");
    let new = text.replace("absolute = \"1ms\"", "absolute = \"2ms\"");
    fs::write(machine.file(), &new).unwrap();
    signal(&run, Signal::SIGHUP);
    until("what the file says now is set", || timeout() == "2000000");
    until("it is ready again", || {
        machine.run_status()["changes"].as_u64() >= Some(1)
    });
    // A file that cannot be used changes nothing.
    fs::write(machine.file(), "schema = 1\n").unwrap();
    signal(&run, Signal::SIGHUP);
    std::thread::sleep(std::time::Duration::from_secs(3));
    assert_eq!((timeout(), machine.napi().len()), ("2000000".to_owned(), 1));
    fs::write(machine.file(), &new).unwrap();
    signal(&run, Signal::SIGHUP);
    std::thread::sleep(std::time::Duration::from_secs(1));
    let text = machine.end(run, Signal::SIGTERM, &before);
    for said in [
        "the file has changed: everything is put back",
        "the changed file cannot be carried out, and the run goes on as before",
        "the file asks for the same as before, and the run goes on",
    ] {
        assert!(text.contains(said), "no `{said}` in {text}");
    }
}

#[test]
fn what_cannot_be_begun_after_a_hang_up_leaves_all_as_it_was() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let receiver = &machine.ground.receiver;
    receiver.ip("link add weir-b type veth peer name weir-c");
    receiver.ip("link set weir-b up");
    receiver.offload_of("weir-b", ground::Offload::Receive, true);
    let before = machine.settings();
    let of_first = fs::read_to_string(machine.file()).unwrap();
    machine.write("weir-b");
    let of_second = fs::read_to_string(machine.file()).unwrap();
    let file = machine.folder.path().join("second.toml");
    fs::write(&file, &of_second).unwrap();
    fs::write(machine.file(), &of_first).unwrap();

    let run = machine.run();
    let changed = machine.settings();
    assert_ne!(changed, before);
    let mut second = receiver.command(env!("CARGO_BIN_EXE_weir-linux"));
    second
        .args(["run", "--state"])
        .args([&machine.folder.path().join("another"), &file])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let second = second.spawn().unwrap();
    let deferred = || {
        let open = NetDevice::find("weir-b", Some(&receiver.path())).unwrap();
        open.open().unwrap().read("gro_flush_timeout").unwrap()
    };
    until("the second run is ready", || deferred().trim() == "1000000");

    // One file has an interface that another run uses, and one is not a regular file.
    fs::write(machine.file(), &of_second).unwrap();
    signal(&run, Signal::SIGHUP);
    std::thread::sleep(std::time::Duration::from_secs(3));
    until("the first is ready again", || {
        machine.run_status()["changes"].as_u64() >= Some(1)
    });
    assert_eq!(machine.settings(), changed);
    fs::remove_file(machine.file()).unwrap();
    nix::unistd::mkfifo(&machine.file(), nix::sys::stat::Mode::S_IRUSR).unwrap();
    signal(&run, Signal::SIGHUP);
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert_eq!(machine.settings(), changed);
    let text = machine.end(run, Signal::SIGTERM, &before);
    for said in ["the earlier one is carried out again", "is no file"] {
        assert!(text.contains(said), "no `{said}` in {text}");
    }
    // The other run is alive, so `stop` has nothing to restore for it.
    let stopped = machine.weir("stop").output().unwrap();
    assert!(stopped.status.success(), "{}", printed(&stopped));
    signal(&second, Signal::SIGTERM);
    assert_eq!(ended(second).0, Some(0));
}
