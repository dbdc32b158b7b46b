// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reports a test as skipped.
use std::io::{self, Write};

/// Tells `scripts/test.sh` that the test of this thread is skipped, and why.
///
/// The line is written directly to standard output: the test harness shows what a test prints only
/// if the test fails. A line break comes first, since the harness may have begun a line.
pub fn skipped(reason: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test without a name");
    let _ = writeln!(io::stdout(), "\nskipped: {test}; {reason}");
}
