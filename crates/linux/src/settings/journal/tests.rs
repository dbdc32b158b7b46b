// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests the journal on an imaginary machine whose settings are numbers. Whatever happens, the
//! first values are restored, and the values that somebody else has set are left alone.
mod trouble;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::OpenOptions;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// The process dies before the setting changes.
    Before,
    /// The process dies when the setting has changed.
    After,
}

#[derive(Default)]
struct Machine {
    values: BTreeMap<u8, u8>,
    /// Number of changes until the process dies, and when it dies. `None` if it does not die.
    fuse: Option<(usize, Fault)>,
}

thread_local! {
    static MACHINE: RefCell<Machine> = RefCell::default();
    /// Number of lines for which the disk still has room. `None` means any number.
    static ROOM: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Fails if the disk has no room for another line.
pub(super) fn disk() -> io::Result<()> {
    match ROOM.get() {
        None => Ok(()),
        Some(0) => Err(io::Error::from_raw_os_error(libc::ENOSPC)),
        Some(lines) => {
            ROOM.set(Some(lines - 1));
            Ok(())
        }
    }
}

fn machine<T>(with: impl FnOnce(&mut Machine) -> T) -> T {
    MACHINE.with_borrow_mut(with)
}

fn start(values: &[u8]) {
    machine(|machine| {
        *machine = Machine {
            values: (0..).zip(values.iter().copied()).collect(),
            fuse: None,
        };
    });
}

fn values() -> Vec<u8> {
    machine(|machine| machine.values.values().copied().collect())
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Knob(u8);

impl fmt::Display for Knob {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "knob {}", self.0)
    }
}

#[derive(Debug, thiserror::Error)]
enum KnobError {
    #[error("it is gone")]
    Gone,
    #[error("it died")]
    Died,
}

impl Adjustable for Knob {
    type Value = u8;
    type Error = KnobError;

    /// Each thread that runs tests has knobs of its own, so the knobs do not belong to the machine.
    const OF_MACHINE: bool = false;

    fn read(&self) -> Result<u8, KnobError> {
        machine(|machine| machine.values.get(&self.0).copied()).ok_or(KnobError::Gone)
    }

    fn apply(&self, value: &u8) -> Result<(), KnobError> {
        machine(|machine| {
            let fault = match &mut machine.fuse {
                Some((0, fault)) => Some(*fault),
                Some((left, _)) => {
                    *left -= 1;
                    None
                }
                None => None,
            };
            if fault != Some(Fault::Before) {
                *machine.values.get_mut(&self.0).ok_or(KnobError::Gone)? = *value;
            }
            fault.map_or(Ok(()), |_| Err(KnobError::Died))
        })
    }

    fn vanished(error: &KnobError) -> bool {
        matches!(error, KnobError::Gone)
    }
}

/// Ends a run as kill -9 does: only the file is closed.
fn die(mut log: Log<Knob>) -> PathBuf {
    log.ended = true;
    log.path.clone()
}

fn outcomes(restored: Vec<Restoration<Knob>>) -> Vec<(u8, Outcome<u8>)> {
    restored
        .into_iter()
        .flat_map(|restoration| restoration.outcomes)
        .map(|(knob, outcome)| (knob.0, outcome))
        .collect()
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn begin(folder: &TempDir) -> Log<Knob> {
    Log::open(folder.path()).unwrap().0
}

/// Number of files in the folder besides the lock of the folder, which exists while there are other
/// files.
fn left(folder: &TempDir) -> usize {
    let entries = fs::read_dir(folder.path()).unwrap();
    let names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    let locks = names.iter().filter(|name| *name == state::ALONE).count();
    assert!(names.len() != 1 || locks == 0, "it stays alone");
    names.len() - locks
}

#[test]
fn puts_back_in_reverse_and_leaves_no_file() {
    start(&[1, 2]);
    let folder = folder();
    let mut log = begin(&folder);
    log.lock("interface-1").unwrap();
    assert_eq!(log.apply(&Knob(0), &5).unwrap(), ApplyOutcome::Changed);
    assert_eq!(log.apply(&Knob(1), &6).unwrap(), ApplyOutcome::Changed);
    assert_eq!(log.apply(&Knob(0), &7).unwrap(), ApplyOutcome::Changed);
    assert_eq!(log.apply(&Knob(0), &7).unwrap(), ApplyOutcome::Already);
    assert_eq!(values(), [7, 6]);
    let restored = log.restore();
    assert_eq!(
        outcomes(vec![restored]),
        [(1, Outcome::Restored), (0, Outcome::Restored)]
    );
    assert_eq!(values(), [1, 2]);
    assert_eq!(left(&folder), 0);
}

#[test]
fn a_dropped_journal_puts_back_too() {
    start(&[1]);
    let folder = folder();
    begin(&folder).apply(&Knob(0), &5).unwrap();
    assert_eq!((values(), left(&folder)), (vec![1], 0));
}

#[test]
fn leaves_what_somebody_else_has_changed() {
    start(&[1, 2]);
    let folder = folder();
    let mut log = begin(&folder);
    log.apply(&Knob(0), &5).unwrap();
    log.apply(&Knob(1), &6).unwrap();
    machine(|machine| machine.values.insert(0, 99));
    assert!(matches!(
        log.apply(&Knob(0), &7),
        Err(JournalError::Foreign { setting, found: 99 }) if *setting == Knob(0)
    ));
    let restored = log.restore();
    assert_eq!(
        outcomes(vec![restored]),
        [(1, Outcome::Restored), (0, Outcome::Foreign(99))]
    );
    assert_eq!(values(), [99, 2]);
}

#[test]
fn what_is_gone_stops_nothing() {
    start(&[1, 2]);
    let folder = folder();
    let mut log = begin(&folder);
    log.apply(&Knob(1), &6).unwrap();
    log.apply(&Knob(0), &5).unwrap();
    machine(|machine| machine.values.remove(&0));
    let restored = outcomes(vec![log.restore()]);
    assert_eq!(restored, [(0, Outcome::Vanished), (1, Outcome::Restored)]);
    assert_eq!((values(), left(&folder)), (vec![2], 0));
}

#[test]
fn what_cannot_be_put_back_is_kept_for_the_next_start() {
    start(&[1, 2]);
    let folder = folder();
    let mut log = begin(&folder);
    log.apply(&Knob(0), &5).unwrap();
    machine(|machine| machine.fuse = Some((0, Fault::Before)));
    let restored = log.restore();
    assert!(!restored.is_complete());
    assert_eq!((values(), left(&folder)), (vec![5, 2], 1));
    machine(|machine| machine.fuse = None);
    let (_log, restored) = Log::<Knob>::open(folder.path()).unwrap();
    assert_eq!(outcomes(restored), [(0, Outcome::Restored)]);
    assert_eq!(values(), [1, 2]);
}

#[test]
fn a_run_after_one_that_could_not_put_back_puts_the_first_values_back() {
    start(&[1]);
    let folder = folder();
    let mut log = begin(&folder);
    log.apply(&Knob(0), &5).unwrap();
    machine(|machine| machine.fuse = Some((0, Fault::Before)));
    assert!(!log.restore().is_complete());
    let mut log = begin(&folder);
    machine(|machine| machine.fuse = None);
    log.apply(&Knob(0), &6).unwrap();
    // Another process leaves the setting to the run that is alive.
    let restored = Log::<Knob>::recover(folder.path()).unwrap();
    assert_eq!(outcomes(restored), [(0, Outcome::Shared)]);
    assert_eq!(values(), [6]);
    drop(log);
    assert_eq!((values(), left(&folder)), (vec![1], 0));
}

#[test]
fn two_runs_are_kept_apart_and_share_what_both_need() {
    start(&[1, 2]);
    let folder = folder();
    let (mut one, mut two) = (begin(&folder), begin(&folder));
    one.lock("eth0").unwrap();
    one.lock("eth0").unwrap();
    let refused = two.lock("eth0").unwrap_err().to_string();
    assert!(refused.contains(&process::id().to_string()), "{refused}");
    two.lock("eth1").unwrap();
    assert_eq!(Log::<Knob>::running(folder.path()).unwrap().len(), 2);
    // The setting has the value that the second run wants. But the first run must not restore it
    // while the second run needs it.
    one.apply(&Knob(0), &5).unwrap();
    assert_eq!(two.apply(&Knob(0), &5).unwrap(), ApplyOutcome::Already);
    assert_eq!(two.apply(&Knob(0), &6).unwrap(), ApplyOutcome::Changed);
    assert_eq!(one.apply(&Knob(0), &7).unwrap(), ApplyOutcome::Changed);
    assert_eq!(outcomes(vec![one.restore()]), [(0, Outcome::Shared)]);
    assert_eq!(values(), [6, 2]);
    assert!(begin(&folder).lock("eth0").is_ok());
    drop(two);
    assert_eq!((values(), left(&folder)), (vec![1, 2], 0));
}

#[test]
fn a_run_that_died_leaves_its_lock_to_nobody() {
    start(&[1]);
    let folder = folder();
    let mut log = begin(&folder);
    log.lock("eth0").unwrap();
    die(log);
    assert_eq!(left(&folder), 2);
    begin(&folder).lock("eth0").unwrap();
    assert_eq!(left(&folder), 0);
    // The name of a lock must not contain a path.
    assert!(begin(&folder).lock("../eth0").is_err());
}

/// Creates the journal of a run that died after it had set the first knob to 5. `from` is replaced
/// by `to` in its text. Returns the folder and the journal's path.
fn left_with(from: &str, to: &str) -> (TempDir, PathBuf) {
    start(&[1]);
    let folder = folder();
    let mut log = begin(&folder);
    log.apply(&Knob(0), &5).unwrap();
    let path = die(log);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace(from, to)).unwrap();
    (folder, path)
}

#[test]
fn another_boots_journal_is_thrown_away() {
    let (folder, _) = left_with(&boot().unwrap(), "another");
    let restored = Log::<Knob>::recover(folder.path()).unwrap();
    assert!(outcomes(restored).is_empty());
    assert_eq!((values(), left(&folder)), (vec![5], 0));
}

#[test]
fn a_spoilt_line_spoils_no_other() {
    start(&[1, 2]);
    let folder = folder();
    let mut log = begin(&folder);
    log.apply(&Knob(0), &5).unwrap();
    log.apply(&Knob(1), &6).unwrap();
    let path = die(log);
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    fs::write(&path, format!("{}\n\u{0}{{\n{}\n", lines[1], lines[2])).unwrap();
    let restored = Log::<Knob>::recover(folder.path()).unwrap();
    assert_eq!((restored[0].unreadable, restored[0].pid), (1, None));
    assert_eq!(values(), [1, 2]);
    // It is not known whether the setting of the unreadable line is restored, so the result is not
    // complete.
    assert!(!restored[0].is_complete());
    assert!(restored[0].trouble[0].contains(&path.display().to_string()));
    assert_eq!(left(&folder), 1);
}

#[test]
fn a_journal_of_another_version_is_named_and_not_carried_out() {
    let (folder, path) = left_with("\"version\":1", "\"version\":2");
    let restored = Log::<Knob>::recover(folder.path()).unwrap();
    assert!(restored[0].trouble[0].contains(&path.display().to_string()));
    assert!(outcomes(restored).is_empty());
    assert_eq!((values(), left(&folder)), (vec![5], 1));
}

#[test]
fn a_journal_that_is_too_large_is_named_and_fills_no_memory() {
    start(&[1]);
    let folder = folder();
    let path = die(begin(&folder));
    File::options()
        .append(true)
        .open(&path)
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    let mut log = Log::<Knob>::open(folder.path()).unwrap().0;
    log.apply(&Knob(0), &5).unwrap();
    assert!(log.restore().is_complete());
    let restored = Log::<Knob>::recover(folder.path()).unwrap();
    assert!(restored[0].trouble[0].contains(&path.display().to_string()));
    assert_eq!((values(), left(&folder)), (vec![1], 1));
}

#[test]
fn there_is_nothing_to_put_back_where_nothing_ran() {
    let folder = folder();
    let nowhere = folder.path().join("nowhere");
    assert!(Log::<Knob>::recover(&nowhere).unwrap().is_empty());
    assert!(Log::<Knob>::running(&nowhere).unwrap().is_empty());
    assert!(!nowhere.exists());
}

#[derive(Debug, Clone)]
enum Step {
    /// Weir sets a knob to a value.
    Ours(u8, u8),
    /// Somebody else sets a knob to a value.
    Theirs(u8, u8),
    /// The process ends in one of several ways, and the next process starts.
    End(Ending),
}

#[derive(Debug, Clone)]
enum Ending {
    Stop,
    Kill,
    /// The process dies during the next change, or after writing only a part of the line.
    At(Fault),
    Torn(usize),
    /// The process dies. The next starts die, too, while they restore settings, after this number
    /// of changes.
    Twice(usize, Fault),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let fault = prop_oneof![Just(Fault::Before), Just(Fault::After)];
    let ending = prop_oneof![
        Just(Ending::Stop),
        Just(Ending::Kill),
        fault.clone().prop_map(Ending::At),
        (0..200_usize).prop_map(Ending::Torn),
        (0..4_usize, fault).prop_map(|(after, fault)| Ending::Twice(after, fault)),
    ];
    let step = prop_oneof![
        8 => (0..4_u8, 0..8_u8).prop_map(|(knob, value)| Step::Ours(knob, value)),
        1 => (0..4_u8, 100..104_u8).prop_map(|(knob, value)| Step::Theirs(knob, value)),
        2 => ending.prop_map(Step::End),
    ];
    prop::collection::vec(step, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// After every end and the start that follows, each knob has its first value, or the value that
    /// somebody else set last.
    #[test]
    fn the_first_values_come_back_after_any_end(steps in steps()) {
        let mut right = vec![10, 11, 12, 13];
        start(&right);
        let folder = folder();
        let mut log = begin(&folder);
        for step in steps.into_iter().chain([Step::End(Ending::Stop)]) {
            let ending = match step {
                Step::Ours(knob, value) => {
                    let foreign = values()[usize::from(knob)] >= 100;
                    match log.apply(&Knob(knob), &value) {
                        // The run accepts a knob that somebody else has changed only if the run had
                        // not changed it before.
                        Ok(_) => {}
                        Err(JournalError::Foreign { .. }) => prop_assert!(foreign),
                        Err(error) => return Err(TestCaseError::fail(error.to_string())),
                    }
                    continue;
                }
                Step::Theirs(knob, value) => {
                    machine(|machine| machine.values.insert(knob, value));
                    right[usize::from(knob)] = value;
                    continue;
                }
                Step::End(ending) => ending,
            };
            match ending {
                Ending::Stop => drop(log),
                Ending::Kill => drop(die(log)),
                Ending::At(fault) => {
                    machine(|machine| machine.fuse = Some((0, fault)));
                    let _ = log.apply(&Knob(0), &9);
                    machine(|machine| machine.fuse = None);
                    die(log);
                }
                Ending::Torn(length) => {
                    let whole = log.length;
                    machine(|machine| machine.fuse = Some((0, Fault::Before)));
                    let _ = log.apply(&Knob(1), &9);
                    machine(|machine| machine.fuse = None);
                    let now = log.length;
                    let path = die(log);
                    // At least the line break is cut off.
                    let kept = (whole + length as u64).min(now.saturating_sub(1)).max(whole);
                    OpenOptions::new().write(true).open(path).unwrap().set_len(kept).unwrap();
                }
                Ending::Twice(after, fault) => {
                    die(log);
                    machine(|machine| machine.fuse = Some((after, fault)));
                    let _ = Log::<Knob>::recover(folder.path()).unwrap();
                    machine(|machine| machine.fuse = None);
                }
            }
            log = begin(&folder);
            prop_assert_eq!(&values(), &right);
            prop_assert_eq!(left(&folder), 1);
        }
    }
}

#[test]
fn what_was_announced_is_put_back_from_any_of_its_values() {
    for (now, expected) in [
        (1, Outcome::Unchanged),
        (20, Outcome::Restored),
        (30, Outcome::Restored),
        (40, Outcome::Foreign(40)),
    ] {
        for is_killed in [false, true] {
            start(&[1]);
            let folder = folder();
            let mut log = begin(&folder);
            log.announce(&Knob(0), &[20, 30]).unwrap();
            assert_eq!(values(), [1]);
            // Announcing the same values again records nothing.
            log.announce(&Knob(0), &[20, 30]).unwrap();
            assert_eq!(log.entries[0].ours, [20, 30]);
            Knob(0).apply(&now).unwrap();
            let restored = if is_killed {
                die(log);
                Log::recover(folder.path()).unwrap()
            } else {
                vec![log.restore()]
            };
            assert_eq!(outcomes(restored), [(0, expected.clone())]);
            let left_at = if now == 40 { 40 } else { 1 };
            assert_eq!(values(), [left_at]);
            assert_eq!(left(&folder), 0);
        }
    }
}

#[test]
fn what_was_announced_may_be_set_by_the_log_too_and_by_nobody_else() {
    start(&[1]);
    let folder = folder();
    let mut log = begin(&folder);
    log.announce(&Knob(0), &[20, 30]).unwrap();
    Knob(0).apply(&30).unwrap();
    assert_eq!(log.apply(&Knob(0), &25).unwrap(), ApplyOutcome::Changed);
    log.announce(&Knob(0), &[20, 25, 26]).unwrap();
    assert_eq!(log.entries[0].ours, [20, 30, 25, 26]);
    Knob(0).apply(&7).unwrap();
    assert!(matches!(
        log.announce(&Knob(0), &[20]),
        Err(JournalError::Foreign { found: 7, .. })
    ));
}
