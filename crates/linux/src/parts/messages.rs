// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages of a run, on its terminal or in the journal of its service.
use std::cell::Cell;
use std::collections::HashSet;
use std::os::fd::{AsFd, BorrowedFd};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde_json::{Value, json};
use weir_report::plural;

/// Longest wait for a reader of the messages, in milliseconds. After such a wait, further messages
/// are not waited for until the reader has read again.
const PATIENCE: u16 = 1_000;
/// Bytes that a pipe accepts without blocking when it is ready for writing (PIPE_BUF).
const AT_ONCE: usize = 4_096;

/// Writer of messages, either in words or as one JSON object per line.
#[derive(Debug)]
pub struct Messages {
    json: bool,
    lines: HashSet<String>,
    /// Number of lines that were left out since the reader last read.
    unread: Cell<u64>,
}

impl Messages {
    /// Creates a writer. With `json`, all messages are JSON on standard output. Otherwise they are
    /// words: results on standard output, all others on standard error.
    #[must_use]
    pub fn new(json: bool) -> Self {
        Self {
            json,
            lines: HashSet::new(),
            unread: Cell::new(0),
        }
    }

    /// Reports a message under the event name `note`.
    pub fn line(&self, text: &str) {
        self.event("note", text, json!({}));
    }

    /// Reports a message. As JSON it is an object with the name `event`, the text, and the members
    /// of `more`.
    pub fn event(&self, event: &str, text: &str, mut more: Value) {
        if self.json {
            more["event"] = event.into();
            more["text"] = text.into();
            self.write(std::io::stdout(), &more.to_string());
        } else {
            self.write(std::io::stderr(), &format!("weir linux: {text}"));
        }
    }

    /// Reports a message unless the same message was reported before.
    pub fn once(&mut self, text: &str) {
        if !self.lines.contains(text) {
            self.line(text);
            self.lines.insert(text.to_owned());
        }
    }

    /// Reports a step of the run. In words it is `text`. As JSON it is an object with the name
    /// `event` and the members of `more`.
    pub fn step(&self, event: &str, text: &str, mut more: Value) {
        if self.json {
            more["event"] = event.into();
            self.write(std::io::stdout(), &more.to_string());
        } else {
            self.write(std::io::stdout(), text);
        }
    }

    /// Writes a line. It neither fails nor waits for long if nobody reads. Otherwise a full pipe or
    /// a stopped terminal would keep a run from restoring settings.
    fn write(&self, to: impl AsFd, line: &str) {
        let unread = self.unread.get();
        let patience = if unread == 0 { PATIENCE } else { 0 };
        let missed = match (unread, self.json) {
            (0, _) => String::new(),
            (count, true) => {
                let text = left_out(count);
                format!("{}\n", json!({ "event": "note", "text": text }))
            }
            (count, false) => format!("weir linux: {}\n", left_out(count)),
        };
        let is_written = write_all(to.as_fd(), format!("{missed}{line}\n").as_bytes(), patience);
        self.unread.set(if is_written { 0 } else { unread + 1 });
    }
}

/// Writes all bytes. Returns false if there is no room for a piece of them within `patience`
/// milliseconds. If the reader has closed its end, the bytes count as written.
fn write_all(to: BorrowedFd<'_>, bytes: &[u8], patience: u16) -> bool {
    for piece in bytes.chunks(AT_ONCE) {
        let mut rest = piece;
        while !rest.is_empty() {
            let mut room = [PollFd::new(to, PollFlags::POLLOUT)];
            if matches!(poll(&mut room, PollTimeout::from(patience)), Ok(0) | Err(_)) {
                return false;
            }
            match nix::unistd::write(to, rest) {
                Ok(written) => rest = &rest[written..],
                Err(nix::errno::Errno::EINTR | nix::errno::Errno::EAGAIN) => {}
                Err(_) => return true,
            }
        }
    }
    true
}

fn left_out(lines: u64) -> String {
    let (were, them) = if lines == 1 {
        ("was", "it")
    } else {
        ("were", "them")
    };
    format!(
        "{} {were} left out, since nobody read {them}",
        plural(lines, "line")
    )
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read as _;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_reader_who_does_not_read_keeps_nobody_waiting() {
        let (reader, writer) = nix::unistd::pipe().unwrap();
        let messages = Messages::new(false);
        let begin = Instant::now();
        for number in 0..5_000 {
            messages.write(&writer, &format!("{number} {}", "x".repeat(90)));
        }
        assert!(begin.elapsed() < Duration::from_secs(5));
        assert!(messages.unread.get() > 4_000);
        let mut bytes = vec![0; 1 << 20];
        let length = File::from(reader.try_clone().unwrap())
            .read(&mut bytes)
            .unwrap();
        assert!(length > 10_000);
        // The next message also says how many lines were left out.
        messages.write(&writer, "again");
        drop(writer);
        let mut text = String::new();
        File::from(reader).read_to_string(&mut text).unwrap();
        assert!(
            text.contains(" lines were left out, since nobody read them\nagain\n"),
            "{text}"
        );
    }
}
