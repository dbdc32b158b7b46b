// SPDX-License-Identifier: GPL-3.0-or-later
//! Converts a trace to events of the limiter: requests, expiries and calls by the user.
use weir_emulate::run::{BoardEvent, EventKind};

use super::mark;

pub const EIMSK: u16 = 0x59;
pub const EIFR: u16 = 0x58;

/// The addresses in data space of a channel's registers, and the channel's bit in them.
#[derive(Debug, Clone, Copy)]
pub struct Channel {
    pub vector: u8,
    pub enables: u16,
    pub flags: u16,
    pub bit: u8,
    pub compare: u16,
    pub counter: u16,
    pub wide: bool,
}

/// Returns the compare channel of this name in ports/avr.
pub fn channel(name: &str) -> Channel {
    let (vector, enables, flags, bit, compare, counter, wide) = match name {
        "TIMER1A" => (12, 0x57, 0x56, 0x10, 0x4a, 0x4c, true),
        "TIMER1B" => (13, 0x57, 0x56, 0x08, 0x48, 0x4c, true),
        "TIMER3A" => (26, 0x7d, 0x7c, 0x10, 0x86, 0x88, true),
        "TIMER3B" => (27, 0x7d, 0x7c, 0x08, 0x84, 0x88, true),
        "TIMER0" => (15, 0x57, 0x56, 0x02, 0x51, 0x52, false),
        "TIMER2" => (9, 0x57, 0x56, 0x80, 0x43, 0x44, false),
        _ => panic!("no channel {name}"),
    };
    Channel {
        vector,
        enables,
        flags,
        bit,
        compare,
        counter,
        wide,
    }
}

/// The kinds of episodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An interrupt of the line.
    Request,
    /// An interrupt of the channel.
    Expiry,
    /// A call by the user, with its mark.
    Call(u8),
}

/// The register accesses of one interrupt or of one call by the user, and the state after it.
#[derive(Debug, Clone)]
pub struct Episode {
    pub kind: Kind,
    pub begin: u64,
    pub end: u64,
    /// The cycles at which handlers ran, with the source of each.
    pub served: Vec<(u64, u8)>,
    /// Whether a write cleared the pending bit.
    pub acked: bool,
    /// The pending bit at the start, and at the last write to a mask, flag or compare register.
    pub pending: (bool, bool),
    /// The compare flag at its first read. `None` if it was not read.
    pub flag: Option<bool>,
    /// The values read from the counter, with the cycle of each read. If the high byte of a 16-bit
    /// counter was not read, the value is the low byte only.
    pub counts: Vec<(u64, u16)>,
    /// Writes to the counter.
    pub restarts: Vec<(u64, u8)>,
    /// The state after the episode: the enable bits of the line and of the channel, and the compare
    /// register.
    pub enabled: bool,
    pub armed: bool,
    pub compare: u16,
    /// The marks that are not those of handlers.
    pub marks: Vec<u8>,
}

/// The events of the line with this number (0 to 7) in a run.
pub struct History {
    pub episodes: Vec<Episode>,
    /// Edges of the line.
    pub edges: Vec<u64>,
    /// All runs of handlers: the cycle and the source.
    pub served: Vec<(u64, u8)>,
}

struct Reader {
    line: u8,
    channel: Channel,
    mark: u16,
    pending: bool,
    enabled: bool,
    armed: bool,
    compare: u16,
    high: u8,
    low_read: Option<(u64, u8)>,
    open: Vec<Option<Episode>>,
}

impl Reader {
    fn episode(&mut self) -> Option<&mut Episode> {
        self.open.last_mut().and_then(Option::as_mut)
    }

    fn begin(&self, kind: Kind, at: u64) -> Episode {
        Episode {
            kind,
            begin: at,
            end: at,
            served: Vec::new(),
            acked: false,
            pending: (self.pending, self.pending),
            flag: None,
            counts: Vec::new(),
            restarts: Vec::new(),
            enabled: false,
            armed: false,
            compare: 0,
            marks: Vec::new(),
        }
    }

    fn end(&self, mut episode: Episode, at: u64) -> Episode {
        episode.end = at;
        episode.enabled = self.enabled;
        episode.armed = self.armed;
        episode.compare = self.compare;
        episode
    }

    fn note_pending(&mut self) {
        let pending = self.pending;
        if let Some(episode) = self.episode() {
            episode.pending.1 |= pending;
        }
    }

    fn written(&mut self, at: u64, address: u16, value: u8) {
        let (line, channel) = (1_u8 << self.line, self.channel);
        if address == EIMSK {
            self.enabled = value & line != 0;
            self.note_pending();
        } else if address == EIFR && value & line != 0 {
            self.note_pending();
            self.pending = false;
            if let Some(episode) = self.episode() {
                episode.acked = true;
            }
        } else if address == channel.enables {
            self.armed = value & channel.bit != 0;
            self.note_pending();
        } else if channel.wide && address == channel.compare + 1 {
            self.high = value;
        } else if address == channel.compare {
            let high = if channel.wide { self.high } else { 0 };
            self.compare = u16::from_le_bytes([value, high]);
            self.note_pending();
        } else if address == channel.counter {
            if let Some(episode) = self.episode() {
                episode.restarts.push((at, value));
            }
        }
    }

    fn read(&mut self, at: u64, address: u16, value: u8) {
        let channel = self.channel;
        let low_read = self.low_read;
        if address == channel.counter {
            self.low_read = Some((at, value));
        }
        let Some(episode) = self.episode() else {
            return;
        };
        if address == channel.flags {
            episode.flag.get_or_insert(value & channel.bit != 0);
        } else if address == channel.counter {
            episode.counts.push((at, u16::from(value)));
        } else if channel.wide && address == channel.counter + 1 {
            // Reading the low byte latches the high byte.
            if let (Some((at, low)), Some(last)) = (low_read, episode.counts.last_mut()) {
                *last = (at, u16::from_le_bytes([low, value]));
            }
        }
    }
}

/// Splits a trace into episodes. `mark` is the address of TEST_MARK.
pub fn history(events: &[BoardEvent], line: u8, channel: Channel, mark: u16) -> History {
    let mut all = History {
        episodes: Vec::new(),
        edges: Vec::new(),
        served: Vec::new(),
    };
    let mut r = Reader {
        line,
        channel,
        mark,
        pending: false,
        enabled: false,
        armed: false,
        compare: 0,
        high: 0,
        low_read: None,
        open: Vec::new(),
    };
    for event in events {
        let at = event.cycle;
        match event.kind {
            EventKind::PinEdge(edge) if edge.number() == usize::from(line) => {
                all.edges.push(at);
                r.pending = true;
            }
            EventKind::VectorEntered(vector) => {
                let kind = if vector == line + 1 {
                    r.pending = false;
                    Some(Kind::Request)
                } else if vector == channel.vector {
                    Some(Kind::Expiry)
                } else {
                    None
                };
                let episode = kind.map(|kind| r.begin(kind, at));
                r.open.push(episode);
            }
            EventKind::Reti => {
                r.note_pending();
                if let Some(Some(episode)) = r.open.pop() {
                    all.episodes.push(r.end(episode, at));
                }
            }
            EventKind::IoWritten { address, value } if address == r.mark => match value {
                mark::END => {
                    r.note_pending();
                    if let Some(Some(episode)) = r.open.pop() {
                        all.episodes.push(r.end(episode, at));
                    }
                }
                mark::FAILURE => panic!("the firmware says that a call failed, at cycle {at}"),
                mark::OVERLOAD_BEGINS | mark::OVERLOAD_ENDS => {
                    if let Some(episode) = r.episode() {
                        episode.marks.push(value);
                    }
                }
                mark::HANDLER..=0x2f => {
                    let source = value - mark::HANDLER;
                    all.served.push((at, source));
                    if let Some(episode) = r.episode() {
                        episode.served.push((at, source));
                    }
                }
                _ => {
                    let episode = r.begin(Kind::Call(value), at);
                    r.open.push(Some(episode));
                }
            },
            EventKind::IoWritten { address, value } => r.written(at, address, value),
            EventKind::IoRead { address, value } => r.read(at, address, value),
            EventKind::PinEdge(_) | EventKind::PcReached(_) => {}
        }
    }
    all
}
