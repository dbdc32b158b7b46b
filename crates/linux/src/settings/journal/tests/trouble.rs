// SPDX-License-Identifier: MIT OR Apache-2.0
//! What other users may do to the folder of the state, and what a full disk may do. Content that
//! others could have written is never acted on, and nothing keeps the first values from being
//! restored.
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::time::Instant;

use super::*;

/// Errors of opening a journal and of recovering, for a folder that cannot be trusted or used.
fn refusals(folder: &Path) -> [String; 2] {
    let begin = Instant::now();
    let messages = [
        Log::<Knob>::open(folder).unwrap_err().to_string(),
        Log::<Knob>::recover(folder).unwrap_err().to_string(),
    ];
    assert!(begin.elapsed() < 10 * state::PATIENCE);
    messages
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn nobody_else_may_look_at_the_state() {
    start(&[1]);
    let above = folder();
    let folder = above.path().join("new/state");
    let mut log = Log::<Knob>::open(&folder).unwrap().0;
    log.lock("eth0").unwrap();
    assert_eq!(mode(&folder), 0o700);
    for entry in fs::read_dir(&folder).unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o600);
    }
    drop(log);
    // Weir does not change the permissions of a folder that existed before, since the user may have
    // mistyped its name.
    set_mode(&folder, 0o755);
    Log::<Knob>::recover(&folder).unwrap();
    let _log = Log::<Knob>::open(&folder).unwrap();
    assert_eq!(mode(&folder), 0o755);
}

#[test]
fn what_is_in_the_place_of_the_lock_is_named() {
    let folder = folder();
    let planted = folder.path().join(state::ALONE);
    nix::unistd::mkfifo(&planted, nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
    for message in refusals(folder.path()) {
        assert!(
            message.contains("weir.alone there: it is no file"),
            "{message}"
        );
    }
}

#[test]
fn who_locks_the_folder_itself_keeps_nobody_waiting() {
    start(&[1]);
    let folder = folder();
    // A process that has opened the folder can lock it, even if the folder is closed to it later.
    let kept = state::lock(File::open(folder.path()).unwrap()).unwrap();
    let mut log = begin(&folder);
    log.apply(&Knob(0), &5).unwrap();
    assert!(log.restore().is_complete());
    assert_eq!((values(), left(&folder)), (vec![1], 0));
    drop(kept);
}

#[test]
fn of_many_who_wait_for_the_folder_one_has_it_at_a_time() {
    const ROUNDS: usize = 200;
    let folder = folder();
    let inside = std::sync::atomic::AtomicUsize::new(0);
    let order = std::sync::atomic::Ordering::SeqCst;
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    // Each process is the last one that uses the folder, so each removes the lock
                    // file that the other may be waiting for.
                    let alone = state::alone(folder.path()).unwrap();
                    assert_eq!(inside.fetch_add(1, order), 0);
                    std::thread::yield_now();
                    inside.fetch_sub(1, order);
                    drop(alone);
                }
            });
        }
    });
    assert_eq!(left(&folder), 0);
}

#[test]
fn what_others_may_have_written_is_not_carried_out() {
    start(&[1]);
    let above = folder();
    let folder = above.path().join("state");
    let mut log = Log::<Knob>::open(&folder).unwrap().0;
    log.apply(&Knob(0), &5).unwrap();
    die(log);
    for wrong in [0o777, 0o770, 0o1777] {
        set_mode(&folder, wrong);
        for message in refusals(&folder) {
            assert!(
                message.contains("others may write to the folder"),
                "{message}"
            );
        }
        assert_eq!(values(), [5]);
    }
    set_mode(&folder, 0o700);
    // A folder is also refused if its path contains a link, or if somebody could put another folder
    // in its place.
    let link = above.path().join("link");
    std::os::unix::fs::symlink(&folder, &link).unwrap();
    Log::<Knob>::recover(&link).unwrap_err();
    set_mode(above.path(), 0o777);
    for message in refusals(&folder) {
        assert!(
            message.contains("could put another folder in its place"),
            "{message}"
        );
    }
    set_mode(above.path(), 0o1777);
    assert_eq!(
        outcomes(Log::<Knob>::recover(&folder).unwrap()),
        [(0, Outcome::Restored)]
    );
}

#[test]
fn what_is_no_file_of_ours_is_said_and_keeps_nothing_from_being_put_back() {
    start(&[1, 2]);
    let folder = folder();
    let mut log = begin(&folder);
    log.apply(&Knob(0), &5).unwrap();
    die(log);
    let planted = folder.path().join("0.0.journal");
    nix::unistd::mkfifo(&planted, nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
    let written = folder.path().join("0.1.journal");
    fs::write(
        &written,
        "{\"change\":{\"setting\":1,\"before\":9,\"after\":[2]}}\n",
    )
    .unwrap();
    set_mode(&written, 0o666);
    std::os::unix::fs::symlink(&written, folder.path().join("0.2.journal")).unwrap();
    let restored = Log::<Knob>::recover(folder.path()).unwrap();
    assert_eq!(restored.iter().filter(|one| !one.is_complete()).count(), 3);
    assert_eq!(outcomes(restored), [(0, Outcome::Restored)]);
    assert_eq!(values(), [1, 2]);
}

#[test]
fn who_keeps_the_folder_is_not_waited_for_without_an_end() {
    start(&[1]);
    let folder = folder();
    let mut log = begin(&folder);
    log.apply(&Knob(0), &5).unwrap();
    let kept = state::alone(folder.path()).unwrap();
    for message in refusals(folder.path()) {
        assert!(
            message.contains("has locked weir.alone there for"),
            "{message}"
        );
    }
    // A run that ends restores its settings all the same, and reports the error.
    let restored = log.restore();
    assert_eq!(restored.trouble.len(), 1);
    assert_eq!(outcomes(vec![restored]), [(0, Outcome::Restored)]);
    drop(kept);
    assert_eq!((values(), left(&folder)), (vec![1], 0));
}

#[test]
fn a_folder_that_has_gone_keeps_nothing_from_being_put_back() {
    start(&[1]);
    let above = folder();
    let folder = above.path().join("state");
    let mut log = Log::<Knob>::open(&folder).unwrap().0;
    log.lock("eth0").unwrap();
    log.apply(&Knob(0), &5).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(outcomes(vec![log.restore()]), [(0, Outcome::Restored)]);
    assert_eq!(values(), [1]);
}

#[test]
fn a_disk_that_is_full_at_any_line_stops_nothing_else() {
    for room in 0..6 {
        start(&[1, 2, 3]);
        let folder = folder();
        let mut other = begin(&folder);
        other.apply(&Knob(2), &8).unwrap();
        let begin = Instant::now();
        ROOM.set(Some(room));
        match Log::<Knob>::open(folder.path()) {
            Err(error) => assert!(
                room == 0 && error.to_string().contains("os error 28"),
                "{error}"
            ),
            Ok((mut log, _)) => {
                for (line, knob) in [(1, 0), (2, 1), (3, 0)] {
                    let done = log.apply(&Knob(knob), &(10 + line as u8));
                    assert_eq!(done.is_ok(), line < room, "{done:?}");
                }
                let changed = values();
                assert_eq!(changed[1] == 12, room > 2);
                drop(log);
            }
        }
        // The other run can still end in order.
        assert!(other.restore().is_complete());
        ROOM.set(None);
        assert!(begin.elapsed() < state::PATIENCE, "{:?}", begin.elapsed());
        assert_eq!((values(), left(&folder)), (vec![1, 2, 3], 0));
    }
}
