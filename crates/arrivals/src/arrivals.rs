// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arrivals in the order of time.
use std::sync::Arc;

use crate::steps::{Alternation, Bursts, Mmpp, Periodic, Poisson, Uniform};
use crate::trace::{Playback, TraceError};

/// No arrival comes in this cycle or later, so that a program may add a time of its own without an
/// overflow: 292 years at 1 GHz.
pub const LATEST: u64 = 1 << 63;

/// An arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Its cycle from the start; never before that of the arrival before it.
    pub at: u64,
    /// What it is.
    pub what: What,
}

/// The kind of an arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A request: an edge of the direction that the program waits for, or a packet of which nothing
    /// is known.
    Request,
    /// The line goes high.
    Rise,
    /// The line goes low.
    Fall,
    /// A recorded packet.
    Packet(Packet),
}

/// What a recording tells about a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Packet {
    /// The protocol above IP; none where the recording does not say, and for all others.
    pub protocol: Option<Protocol>,
    /// The destination port of TCP or UDP; none where the recording does not say.
    pub port: Option<u16>,
    /// The flow that a recording names, as an index into
    /// [`Recording::flows`](crate::Recording::flows).
    pub flow: Option<u16>,
    /// Bytes on the wire without the checksum; 0 where the recording does not say.
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

/// The arrivals of a [`Pattern`](crate::Pattern), in ascending order: endless for all but traces.
pub struct Arrivals(ArrivalSource);

/// One kind of stream. Only a file, which has a system call to wait for, stands behind a pointer.
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

    /// Why a recording ended early, if it did. It was read as a whole before the run, so the file
    /// was changed or its disk failed in the meantime.
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
