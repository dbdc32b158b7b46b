// SPDX-License-Identifier: MIT OR Apache-2.0
//! A test that works on the machine has a process of its own, and its turn.
//!
//! A process that is forked has all the descriptors of its parent, so that it would be a reader of
//! the sockets of all tests that run in one process. Hence each of these tests starts this program
//! anew, for itself alone. So does one that writes a program and executes it: the kernel refuses
//! that while a process that was forked meanwhile has the file. Most of these tests wait more than
//! they compute, and touch only what is their own: they run beside each other. What the machine has
//! only once is somebody's turn.
use std::env;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::ground::Need;

/// How many tests run beside each other at most for each CPU, however many threads the harness has.
/// Those that wait for their turn take a thread each.
const BESIDE: usize = 4;

/// Set in the process of a test.
const OWN: &str = "WEIR_TEST_OWN_PROCESS";

/// Whether the caller is the process of its test. If not, the test has been run in one when this
/// returns, and the caller has nothing left to do.
///
/// # Panics
/// When the test has failed there.
pub fn is_own(needs: &[Need]) -> bool {
    if env::var_os(OWN).is_some() {
        return true;
    }
    let thread = std::thread::current();
    let name = thread
        .name()
        .expect("the harness names threads after tests");
    let _turn = Turn::take(needs);
    let output = tempfile::tempfile().unwrap();
    let mut test = Command::new(env::current_exe().unwrap());
    test.args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(OWN, "1")
        .stdin(Stdio::null())
        .stdout(output.try_clone().unwrap())
        .stderr(output.try_clone().unwrap());
    // SAFETY: prctl is async-signal-safe.
    unsafe {
        test.pre_exec(
            || match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            },
        );
    }
    let ended = test.status().unwrap();
    let has_run = pass_on(output);
    assert!(ended.success() && has_run, "its process: {ended}");
    false
}

/// Prints what the process of a test has said, and tells whether the test was run there. What the
/// harness says is no result of this process, so no line stays at the margin but that of a skip.
fn pass_on(mut output: File) -> bool {
    let mut said = Vec::new();
    output.rewind().unwrap();
    output.read_to_end(&mut said).unwrap();
    let said = String::from_utf8_lossy(&said);
    for line in said.lines() {
        if line.starts_with("skipped: ") {
            let _ = writeln!(io::stdout(), "\n{line}");
        } else {
            println!("  {line}");
        }
    }
    said.contains("\ntest result: ok. 1 passed")
}

/// Who runs, and who waits to run beside them.
struct Running {
    beside: usize,
    waiting: usize,
    is_alone: bool,
    /// What those have that run.
    taken: Vec<Need>,
}

impl Running {
    fn has_room_for(&self, needs: &[Need]) -> bool {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let mut taken = self.taken.iter();
        !self.is_alone
            && self.beside < BESIDE * cpus
            && !taken.any(|taken| needs.iter().any(|need| need.excludes(*taken)))
    }
}

static RUNNING: Mutex<Running> = Mutex::new(Running {
    beside: 0,
    waiting: 0,
    is_alone: false,
    taken: Vec::new(),
});
static CHANGED: Condvar = Condvar::new();

fn running() -> MutexGuard<'static, Running> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until the others are so.
fn once(
    running: MutexGuard<'static, Running>,
    is_so: impl Fn(&Running) -> bool,
) -> MutexGuard<'static, Running> {
    CHANGED
        .wait_while(running, |running| !is_so(running))
        .unwrap_or_else(PoisonError::into_inner)
}

/// Held by a test that runs.
struct Turn<'needs>(&'needs [Need]);

impl<'needs> Turn<'needs> {
    fn take(needs: &'needs [Need]) -> Self {
        let mut running = running();
        if needs.contains(&Need::Alone) {
            // After those that run beside each other: else all of them would wait whenever one of
            // these comes.
            running = once(running, |it| !it.is_alone && it.beside + it.waiting == 0);
            running.is_alone = true;
        } else {
            running.waiting += 1;
            running = once(running, |it| it.has_room_for(needs));
            running.waiting -= 1;
            running.beside += 1;
            running.taken.extend(needs);
        }
        Self(needs)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut running = running();
        if self.0.contains(&Need::Alone) {
            running.is_alone = false;
        } else {
            running.beside -= 1;
            for need in self.0 {
                let place = running.taken.iter().position(|taken| taken == need);
                running.taken.swap_remove(place.expect("it was taken"));
            }
        }
        CHANGED.notify_all();
    }
}
