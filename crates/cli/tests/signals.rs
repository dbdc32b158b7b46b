// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whatever command is ended by a signal removes what it has begun.
#![cfg(target_os = "linux")]
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// The open flag by which a pipe without a reader is an error, in place of a wait.
const NONBLOCK: i32 = 0o4000;

/// Starts `weir` with `arguments`, sends it `signal` as soon as it reads `pipe`, and returns its
/// exit code.
fn ended_by(signal: &str, arguments: &[&str], folder: &Path, pipe: &Path) -> Option<i32> {
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
    let open = open.write(true).custom_flags(NONBLOCK);
    let _writer = loop {
        if let Ok(writer) = open.open(pipe) {
            break writer;
        }
        assert!(child.try_wait().unwrap().is_none(), "{arguments:?}");
        assert!(begun.elapsed() < Duration::from_secs(60), "{arguments:?}");
        std::thread::sleep(Duration::from_millis(1));
    };
    let pid = child.id().to_string();
    let sent = Command::new("kill").args([signal, &pid]).status().unwrap();
    assert!(sent.success());
    child.wait().unwrap().code()
}

#[test]
fn every_command_hears_signals_before_it_reads_a_file() {
    let folder = TempDir::new().unwrap();
    let pipe = folder.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    for arguments in [
        &["check", "pipe"][..],
        &["tune", "pipe"],
        &["verify", "pipe"],
        &["simulate", "pipe"],
        &["sweep", "pipe", "--out", "out.csv"],
        &["generate", "pipe", "--chip", "atmega128"],
    ] {
        for signal in ["-INT", "-TERM"] {
            let code = ended_by(signal, arguments, folder.path(), &pipe);
            assert_eq!(code, Some(130), "{arguments:?} {signal}");
        }
    }
    let left = std::fs::read_dir(folder.path()).unwrap();
    assert_eq!(left.count(), 1);
}
