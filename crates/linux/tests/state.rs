// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests the folder of the state. No other user can keep a run from restoring settings, or make it
//! do something. A full disk keeps no run from ending.
use crate::ground;
use crate::machine;

use std::fs::{self, Permissions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use machine::{Machine, printed, signal};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use weir_linux::settings::{Journal, NetDevice};
use weir_linux::threads::Thread;

/// A time that is far longer than Weir waits for anything.
const LONG: Duration = Duration::from_secs(45);

/// Options of setpriv for a user without rights.
const NOBODY: [&str; 3] = ["--reuid=65534", "--regid=65534", "--clear-groups"];

/// A machine whose state is in a folder that any user can reach.
fn machine() -> Option<Machine> {
    let machine = Machine::new()?;
    fs::set_permissions(machine.folder.path(), Permissions::from_mode(0o755)).unwrap();
    Some(machine)
}

/// The output of a command that must end within [`LONG`].
fn ended(mut child: Child, what: &str) -> Output {
    let end = Instant::now() + LONG;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > end {
            let _ = child.kill();
            panic!("it does not end: {what}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.wait_with_output().unwrap()
}

fn begun(machine: &Machine, command: &str) -> Child {
    let mut weir = machine.weir(command);
    weir.stdout(Stdio::piped()).stderr(Stdio::piped());
    weir.spawn().unwrap()
}

fn weir(machine: &Machine, command: &str) -> Output {
    ended(begun(machine, command), command)
}

/// The folder of the state, and all files in it.
fn places(machine: &Machine) -> Vec<PathBuf> {
    let entries = fs::read_dir(machine.state()).unwrap();
    let files = entries.map(|entry| entry.unwrap().path());
    std::iter::once(machine.state()).chain(files).collect()
}

/// A process that opens `path`, and locks it on request. If it is refused, it ends.
struct Locker {
    process: Child,
    has_it: bool,
}

impl Locker {
    fn opens(as_user: &[&str], path: &Path) -> Self {
        let mut process = Command::new("setpriv")
            .args(as_user)
            .args(["sh", "-c"])
            .arg("exec 9<\"$0\" && echo opened && read it && flock -n 9 && echo locked && exec sleep 100")
            .arg(path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let has_it = tells(&mut process, "opened\n");
        Self { process, has_it }
    }

    fn locks(&mut self) {
        // If the process was refused, it has ended, so writing may fail.
        let _ = self.process.stdin.as_mut().unwrap().write_all(b"\n");
        self.has_it &= tells(&mut self.process, "locked\n");
    }

    fn new(as_user: &[&str], path: &Path) -> Self {
        let mut locker = Self::opens(as_user, path);
        locker.locks();
        locker
    }
}

/// Whether a process prints this line before it ends.
fn tells(process: &mut Child, line: &str) -> bool {
    let mut told = vec![0; line.len()];
    let read = process.stdout.as_mut().unwrap().read_exact(&mut told);
    read.is_ok() && told == line.as_bytes()
}

impl Drop for Locker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn no_other_user_keeps_a_run_from_putting_back() {
    let Some(machine) = machine() else { return };
    let before = machine.settings();
    for how in [Signal::SIGINT, Signal::SIGKILL] {
        let run = machine.run();
        let mut lockers: Vec<Locker> = Vec::new();
        for place in places(&machine) {
            let about = fs::metadata(&place).unwrap();
            assert_eq!(about.mode() & 0o077, 0, "{}", place.display());
            let locker = Locker::new(&NOBODY, &place);
            assert!(!locker.has_it, "{}", place.display());
            lockers.push(locker);
        }
        signal(&run, how);
        ended(run, "the run");
        let stopped = weir(&machine, "stop");
        assert!(stopped.status.success(), "{}", printed(&stopped));
        assert_eq!(machine.settings(), before);
        assert!(machine.is_clean());
    }
}

#[test]
fn who_had_the_folder_open_keeps_no_run_from_putting_back() {
    let Some(machine) = machine() else { return };
    let before = machine.settings();
    for how in [Signal::SIGINT, Signal::SIGKILL] {
        let _ = fs::create_dir(machine.state());
        fs::set_permissions(machine.state(), Permissions::from_mode(0o755)).unwrap();
        let mut locker = Locker::opens(&NOBODY, &machine.state());
        let run = machine.run();
        locker.locks();
        assert!(locker.has_it);
        let begin = Instant::now();
        signal(&run, how);
        let run = ended(run, "the run");
        assert_eq!(run.status.success(), how == Signal::SIGINT, "{run:?}");
        let stopped = weir(&machine, "stop");
        assert!(stopped.status.success(), "{}", printed(&stopped));
        assert!(begin.elapsed() < Duration::from_secs(9));
        assert_eq!(machine.settings(), before);
        assert!(machine.is_clean());
    }
}

/// A run has its journal some milliseconds before it is listed, and still has it while it restores
/// settings.
#[test]
fn a_run_that_begins_or_ends_is_waited_for_before_its_journal_is_said_to_be_kept() {
    let Some(machine) = machine() else { return };
    let stop = || begun(&machine, "stop");
    let (journal, _) = Journal::open(&machine.state()).unwrap();
    let mut stopping = stop();
    std::thread::sleep(Duration::from_secs(1));
    assert!(stopping.try_wait().unwrap().is_none());
    assert!(journal.restore().is_complete());
    let stopped = ended(stopping, "stop");
    assert_eq!(stopped.status.code(), Some(0), "{}", printed(&stopped));
    assert!(
        !printed(&stopped).contains("in use"),
        "{}",
        printed(&stopped)
    );
    // A journal that stays in use is not waited for without end.
    let (_journal, _) = Journal::open(&machine.state()).unwrap();
    let stopped = ended(stop(), "stop");
    assert_eq!(stopped.status.code(), Some(1), "{}", printed(&stopped));
    assert!(
        printed(&stopped).contains("is in use"),
        "{}",
        printed(&stopped)
    );
}

#[test]
fn a_folder_that_is_not_weirs_stays_as_it_is() {
    let Some(machine) = machine() else { return };
    fs::create_dir(machine.state()).unwrap();
    fs::set_permissions(machine.state(), Permissions::from_mode(0o755)).unwrap();
    fs::write(machine.state().join("passwd"), "root").unwrap();
    for command in ["status", "stop"] {
        weir(&machine, command);
    }
    let run = machine.run();
    signal(&run, Signal::SIGKILL);
    ended(run, "the run");
    let stopped = weir(&machine, "stop");
    assert!(stopped.status.success(), "{}", printed(&stopped));
    let mode = fs::metadata(machine.state()).unwrap().mode() & 0o7777;
    assert_eq!(mode, 0o755);
    let left: Vec<_> = places(&machine).split_off(1);
    assert_eq!(left, [machine.state().join("passwd")]);
}

#[test]
fn a_process_of_roots_that_has_the_folder_is_named_and_not_waited_for() {
    let Some(machine) = machine() else { return };
    let before = machine.settings();
    let run = machine.run();
    let locker = Locker::new(&[], &machine.state().join("weir.alone"));
    assert!(locker.has_it);
    // Each command waits before it gives up, so both run at the same time. The first one ends the
    // run all the same.
    let commands = ["stop", "run"].map(|command| (begun(&machine, command), command));
    for (command, what) in commands {
        let refused = ended(command, what);
        let text = printed(&refused);
        assert_eq!(refused.status.code(), Some(2), "{text}");
        assert!(
            text.contains(&format!(
                "the process {} has locked weir.alone there",
                locker.process.id()
            )),
            "{text}"
        );
    }
    let run = ended(run, "the run");
    assert_eq!(run.status.code(), Some(1), "{}", printed(&run));
    assert!(
        printed(&run).contains("has locked weir.alone"),
        "{}",
        printed(&run)
    );
    assert_eq!(machine.settings(), before);
    drop(locker);
    let stopped = weir(&machine, "stop");
    assert!(stopped.status.success(), "{}", printed(&stopped));
    assert!(machine.is_clean());
}

#[test]
fn what_others_have_written_is_not_carried_out() {
    let Some(machine) = machine() else { return };
    let name = &machine.ground.receiver.interface;
    let path = machine.ground.receiver.path();
    let interface = NetDevice::find(name, Some(&path)).unwrap();
    let before = machine.settings();
    let mut bystander = Command::new("sleep").arg("100").spawn().unwrap();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let head = json!({"journal": {"version": 1, "boot": boot.trim(), "pid": 1}});
    let setting = json!({"device": {"interface": interface, "file": "gro_flush_timeout"}});
    let text = |text: &str| json!({ "text": text });
    let change =
        json!({"change": {"setting": setting, "before": text("77000"), "after": [text("0")]}});
    let process = Thread::find(bystander.id() as i32).unwrap().unwrap();
    let run = json!({"system": "test", "file": machine.file(), "mode": "native", "interfaces": [],
        "process": process, "status": Value::Null});
    let planted = [
        ("1.0.journal", format!("{head}\n{change}\n")),
        ("1.run.json", run.to_string()),
    ];
    // Others may write to the first folder, and own the second.
    for (mode, owner) in [(0o777, 0), (0o755, 65534)] {
        fs::create_dir(machine.state()).unwrap();
        for (name, text) in &planted {
            fs::write(machine.state().join(name), text).unwrap();
        }
        let set = || {
            fs::set_permissions(machine.state(), Permissions::from_mode(mode)).unwrap();
            std::os::unix::fs::chown(machine.state(), Some(owner), None).unwrap();
        };
        set();
        for command in ["stop", "run", "status"] {
            let refused = weir(&machine, command);
            let text = printed(&refused);
            assert_eq!(refused.status.code(), Some(2), "{command}: {text}");
            assert!(
                text.contains("others may write to the folder")
                    || text.contains("the folder belongs to user 65534"),
                "{text}"
            );
        }
        assert!(bystander.try_wait().unwrap().is_none());
        assert_eq!(machine.settings(), before);
        fs::remove_dir_all(machine.state()).unwrap();
    }
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

/// One of two runs finds the disk full when it begins, the other one while it runs. Both end, and
/// so does the command that stops them.
const FULL: &str = r#"
set -u
mount -t tmpfs -o size=64k,mode=700 none "$STATE" || exit 77
"$WEIR" run --state "$STATE" "$FILE" >"$OUT/first" 2>&1 &
first=$!
until "$WEIR" status --state "$STATE" --json | grep -q '"changes": [1-9]'; do sleep 0.1; done
cat /dev/zero >"$STATE/full" 2>"$OUT/filling"
timeout -k 5 45 "$WEIR" run --state "$STATE" "$FILE" >"$OUT/second" 2>&1
echo "second $?"
sleep 5
kill -0 $first && echo "first goes on"
sed -i 's/absolute = "1ms"/absolute = "2ms"/' "$FILE"
kill -HUP $first
sleep 3
kill -0 $first && echo "first goes on after a reload"
timeout -k 5 45 "$WEIR" stop --state "$STATE" >"$OUT/stop" 2>&1
echo "stop $?"
kill -9 $first 2>/dev/null
wait $first
echo "first $?"
"#;

#[test]
fn a_disk_that_is_full_keeps_no_run_from_ending() {
    let Some(machine) = machine() else { return };
    let before = machine.settings();
    fs::create_dir(machine.state()).unwrap();
    let out = machine.folder.path();
    let mut script = machine.ground.receiver.command("unshare");
    script
        .args(["--mount", "sh", "-c", FULL])
        .env("WEIR", env!("CARGO_BIN_EXE_weir-linux"))
        .env("STATE", machine.state())
        .env("FILE", machine.file())
        .env("OUT", out)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let ended = script.output().unwrap();
    if ended.status.code() == Some(77) {
        ground::skipped("no file system can be mounted here");
        return;
    }
    let text = |name| fs::read_to_string(out.join(name)).unwrap();
    let all = ["first", "second", "stop"].map(text).join("\n---\n");
    let codes = String::from_utf8(ended.stdout).unwrap();
    assert_eq!(
        codes.lines().collect::<Vec<_>>(),
        [
            "second 2",
            "first goes on",
            "first goes on after a reload",
            "stop 0",
            "first 0"
        ],
        "{all}"
    );
    assert!(text("second").contains("os error 28"), "{all}");
    assert!(text("first").contains("the run goes on as before"), "{all}");
    assert_eq!(machine.settings(), before);
}
