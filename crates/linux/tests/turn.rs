// SPDX-License-Identifier: MIT OR Apache-2.0
//! Gives each test that works on the machine a process of its own, and lets it wait for its turn.
//!
//! A forked process has all descriptors of its parent, so it would be a reader of the sockets of
//! all tests in the same process. Therefore each of these tests starts this program anew, for
//! itself alone. The same holds for a test that writes a program and executes it. The kernel
//! refuses to execute the file while another process, forked meanwhile, has it open for writing.
//! Most of these tests wait more than they compute, and touch nothing that others use, so they run
//! at the same time. A test that needs something that the machine has only once waits for its turn.
use std::env;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::ground::Need;

/// Most tests that run at the same time, for each CPU, whatever number of threads the harness has.
/// A test that waits for its turn occupies a thread.
const BESIDE: usize = 4;

/// Name of the variable that is set in the process of a test.
const OWN: &str = "WEIR_TEST_OWN_PROCESS";

/// Whether the caller is the process of its test. If not, the test has run in a process of its own
/// when this returns, and the caller has nothing left to do.
///
/// # Panics
/// Panics if the test has failed in its process.
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

/// Prints the output of a test's process, and returns whether the test ran there. The lines are
/// indented, so that they are not taken for results of this process. Only the line of a skipped
/// test is not indented.
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

/// The tests that run, and the tests that wait to run at the same time.
struct Running {
    beside: usize,
    waiting: usize,
    is_alone: bool,
    /// Needs of the running tests.
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

/// Waits until `is_so` holds for the tests that run or wait.
fn once(
    running: MutexGuard<'static, Running>,
    is_so: impl Fn(&Running) -> bool,
) -> MutexGuard<'static, Running> {
    CHANGED
        .wait_while(running, |running| !is_so(running))
        .unwrap_or_else(PoisonError::into_inner)
}

/// A test's permission to run. It ends when this is dropped.
struct Turn<'needs>(&'needs [Need]);

impl<'needs> Turn<'needs> {
    fn take(needs: &'needs [Need]) -> Self {
        let mut running = running();
        if needs.contains(&Need::Alone) {
            // A test that runs alone waits for the tests that run at the same time, and for those
            // that wait to. Otherwise all of those would have to wait whenever such a test comes.
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
