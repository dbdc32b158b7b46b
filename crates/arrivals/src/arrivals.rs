// SPDX-License-Identifier: MIT OR Apache-2.0
//! Iterators over arrivals in the order of time.
use std::sync::Arc;

use crate::steps::{Alternation, Bursts, Mmpp, Periodic, Poisson, Uniform};
use crate::trace::{Playback, TraceError};

/// Every arrival comes before this cycle, so that a program can add times of its own without an
/// overflow. The value is 292 years at 1 GHz.
pub const LATEST: u64 = 1 << 63;

/// An arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// The cycle of the arrival, counted from the start. Never before the previous arrival.
    pub at: u64,
    /// The kind of the arrival.
    pub what: What,
}

/// The kind of an arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A request: an edge of the direction that the program waits for, or a packet of which only
    /// the time is known.
    Request,
    /// The line goes high.
    Rise,
    /// The line goes low.
    Fall,
    /// A recorded packet.
    Packet(Packet),
}

/// The facts about a packet that a recording contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Packet {
    /// The protocol above IP. `None` if the recording does not state it, or if it is none of
    /// [`Protocol`].
    pub protocol: Option<Protocol>,
    /// The destination port of TCP or UDP. `None` if the recording does not state it.
    pub port: Option<u16>,
    /// The flow that a recording names, as an index into
    /// [`Recording::flows`](crate::Recording::flows). `None` if the recording names no flow.
    pub flow: Option<u16>,
    /// The length on the wire in bytes, without the checksum. 0 if the recording does not state it.
    pub length: u32,
}

/// A protocol above IP, as a flow's selector names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// ICMP, of IPv4 and of IPv6.
    Icmp,
}

/// The arrivals of a [`Pattern`](crate::Pattern) in ascending order. Only traces end.
pub struct Arrivals(ArrivalSource);

/// The kinds of streams. Only a file is behind a pointer: reading it takes system calls, so that
/// the pointer does not matter.
pub(crate) enum ArrivalSource {
    Periodic(Periodic),
    Poisson(Poisson),
    Mmpp(Mmpp),
    Bursts(Bursts),
    Uniform(Uniform),
    Level(Alternation),
    Times { times: Arc<[u64]>, index: usize },
    File(Box<Playback>),
}

impl Arrivals {
    pub(crate) fn new(source: ArrivalSource) -> Self {
        Self(source)
    }

    /// Returns why a recording ended early. `None` if it did not. The recording was read completely
    /// before the run, so the cause is that the file was changed or that its disk failed in the
    /// meantime.
    #[must_use]
    pub fn error(&self) -> Option<&TraceError> {
        match &self.0 {
            ArrivalSource::File(playback) => playback.error(),
            _ => None,
        }
    }
}

impl Iterator for Arrivals {
    type Item = Arrival;

    #[inline]
    fn next(&mut self) -> Option<Arrival> {
        let request = |at| Arrival {
            at,
            what: What::Request,
        };
        match &mut self.0 {
            ArrivalSource::Periodic(periodic) => periodic.next().map(request),
            ArrivalSource::Poisson(poisson) => poisson.next().map(request),
            ArrivalSource::Mmpp(mmpp) => mmpp.next().map(request),
            ArrivalSource::Bursts(bursts) => bursts.next().map(request),
            ArrivalSource::Uniform(uniform) => uniform.next().map(request),
            ArrivalSource::Level(level) => level.next(),
            ArrivalSource::Times { times, index } => {
                let at = *times.get(*index)?;
                *index += 1;
                Some(request(at))
            }
            ArrivalSource::File(playback) => playback.next(),
        }
        .filter(|arrival| arrival.at < LATEST)
    }
}
