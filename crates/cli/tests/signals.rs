// SPDX-License-Identifier: MIT OR Apache-2.0
//! A command that is ended by a signal removes its unfinished files.
#![cfg(target_os = "linux")]
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::fcntl::OFlag;
use nix::sys::signal::{self, Signal};
use nix::sys::stat::Mode;
use nix::unistd::{self, Pid};
use tempfile::TempDir;

/// Starts `weir` with `arguments`, sends it `signal` as soon as it reads `pipe`, and returns its
/// exit code.
fn ended_by(signal: Signal, arguments: &[&str], folder: &Path, pipe: &Path) -> Option<i32> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    let mut open = OpenOptions::new();
    // With O_NONBLOCK, opening a pipe without a reader fails instead of blocking.
    let open = open.write(true).custom_flags(OFlag::O_NONBLOCK.bits());
    let _writer = loop {
        if let Ok(writer) = open.open(pipe) {
            break writer;
        }
        assert!(child.try_wait().unwrap().is_none(), "{arguments:?}");
        assert!(begun.elapsed() < Duration::from_secs(60), "{arguments:?}");
        std::thread::sleep(Duration::from_millis(1));
    };
    let pid = Pid::from_raw(child.id().try_into().unwrap());
    signal::kill(pid, signal).unwrap();
    child.wait().unwrap().code()
}

#[test]
fn every_command_hears_signals_before_it_reads_a_file() {
    let folder = TempDir::new().unwrap();
    let pipe = folder.path().join("pipe");
    unistd::mkfifo(&pipe, Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
    for arguments in [
        &["check", "pipe"][..],
        &["tune", "pipe"],
        &["verify", "pipe"],
        &["simulate", "pipe"],
        &["sweep", "pipe", "--out", "out.csv"],
        &["generate", "pipe", "--chip", "atmega128"],
    ] {
        for signal in [Signal::SIGINT, Signal::SIGTERM] {
            let code = ended_by(signal, arguments, folder.path(), &pipe);
            assert_eq!(code, Some(130), "{arguments:?} {signal}");
        }
    }
    let left = std::fs::read_dir(folder.path()).unwrap();
    assert_eq!(left.count(), 1);
}
