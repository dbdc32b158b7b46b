// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a test says that it is skipped.
use std::io::{self, Write};

/// Tells `scripts/test.sh` that the test of this thread is skipped, and why.
///
/// Written past the test harness, which shows what a test prints only if it fails; on a line of its
/// own, since the harness may have begun one.
pub fn skipped(reason: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test without a name");
    let _ = writeln!(io::stdout(), "\nskipped: {test}; {reason}");
}
