// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the trace of a run for the Perfetto UI: what runs, what waits, and what is lost
//! (docs/trace.md).
//!
//! The file is a Perfetto trace in protocol buffers. [`messages`] declares the part of the format
//! that Weir uses.
mod clock;
pub mod messages;
mod tracks;

use std::io::{self, Write};

use prost::Message;
use weir_model::System;

use self::clock::TraceClock;
use self::messages::{
    EventType, InternedData, SEQ_INCREMENTAL_STATE_CLEARED, SEQ_NEEDS_INCREMENTAL_STATE,
    SystemInfo, Trace, TracePacket, TrackEvent,
};
use self::tracks::{Declarations, Note, Uuids};
use crate::observer::{Observer, SimulationEvent, Track};

/// The program's name in the first packet of every trace.
pub const WRITTEN_BY: &str = "weir simulate";

/// The size of the write buffer in bytes.
const BUFFER: usize = 64 * 1024;
/// The number of the only packet sequence. Any number except 0 is valid.
const SEQUENCE: u32 = 1;

/// Writes a trace during a run. The memory in use depends on the system only, not on the length of
/// the run. The caller has to call [`finish`](Self::finish); without it the end of the trace is
/// missing.
#[derive(Debug)]
pub struct PerfettoTrace<W> {
    writer: W,
    /// The first write error. After an error nothing more is written.
    written: io::Result<()>,
    buffer: Vec<u8>,
    /// The packet that is being written, as a trace of one packet: the concatenation of such traces
    /// is a trace.
    packet: Trace,
    clock: TraceClock,
    uuids: Uuids,
    running: Option<Track>,
    /// The Perfetto flow that connects the parts of a preempted job, by track uuid. 0 if the job
    /// was not preempted.
    parts: Vec<u64>,
    /// The Perfetto flow number for the next job that is preempted.
    next_flow: u64,
    lines: Vec<LineTrack>,
}

/// The state of a source's track.
#[derive(Debug, Clone, Copy, Default)]
struct LineTrack {
    masked: bool,
    /// The instant of the latest notes, in nanoseconds.
    at: u64,
    /// The notes written for that instant, as a bit set by iid.
    noted: u16,
}

impl<W: Write> PerfettoTrace<W> {
    /// Begins the trace of a run of `system`.
    #[must_use]
    pub fn new(writer: W, system: &System) -> Self {
        let uuids = Uuids::of(system);
        let mut trace = Self {
            writer,
            written: Ok(()),
            buffer: Vec::with_capacity(BUFFER),
            packet: Trace {
                packet: vec![TracePacket::default()],
            },
            clock: TraceClock {
                hz: system.cpu.clock_hz,
            },
            uuids,
            running: None,
            parts: vec![0; uuids.end() as usize],
            next_flow: 1,
            lines: vec![LineTrack::default(); system.sources.len()],
        };
        trace.write(TracePacket {
            system_info: Some(SystemInfo {
                tracing_service_version: Some(format!(
                    "{WRITTEN_BY} {}",
                    env!("CARGO_PKG_VERSION")
                )),
            }),
            sequence_flags: Some(SEQ_INCREMENTAL_STATE_CLEARED),
            ..TracePacket::default()
        });
        let Declarations { tracks, names } = Declarations::of(system);
        trace.write(TracePacket {
            interned_data: Some(InternedData { event_names: names }),
            sequence_flags: Some(SEQ_NEEDS_INCREMENTAL_STATE),
            ..TracePacket::default()
        });
        for track in tracks {
            trace.write(TracePacket {
                track_descriptor: Some(track),
                ..TracePacket::default()
            });
        }
        trace
    }

    /// Closes the slices that are open at the end of the run, `at` cycles after its start. Flushes
    /// and returns the writer.
    ///
    /// # Errors
    /// Returns the first error of the writer, even if it happened earlier in the run. An example is
    /// a full disk.
    pub fn finish(mut self, at: u64) -> io::Result<W> {
        let at = self.clock.nanoseconds(at);
        if let Some(track) = self.running {
            self.end(at, self.uuids.track(track), None);
        }
        for source in 0..self.lines.len() {
            self.unmask(at, source);
        }
        self.drain();
        self.written?;
        self.writer.flush()?;
        Ok(self.writer)
    }

    /// Returns the Perfetto flow of the job on a track. 0 if the job was not preempted.
    fn job(&mut self, uuid: u64) -> &mut u64 {
        &mut self.parts[uuid as usize]
    }

    fn unmask(&mut self, at: u64, source: usize) {
        if std::mem::take(&mut self.lines[source].masked) {
            self.end(at, self.uuids.source(source), None);
        }
    }

    /// Writes a note on the track of a source. The same note in the same nanosecond is skipped,
    /// because Perfetto would draw it under the first one.
    fn note_at_source(&mut self, at: u64, source: usize, note: Note) {
        let line = &mut self.lines[source];
        if line.at != at {
            line.at = at;
            line.noted = 0;
        }
        let bit = 1 << note.iid();
        if line.noted & bit == 0 {
            line.noted |= bit;
            self.note(at, self.uuids.source(source), note);
        }
    }

    fn note(&mut self, at: u64, uuid: u64, note: Note) {
        self.named(at, EventType::Instant, uuid, note.iid(), None);
    }

    /// Slices have the name of their track.
    fn begin(&mut self, at: u64, uuid: u64, flow: Option<u64>) {
        self.named(at, EventType::SliceBegin, uuid, uuid, flow);
    }

    fn end(&mut self, at: u64, uuid: u64, flow: Option<u64>) {
        self.write(TracePacket {
            timestamp: Some(at),
            track_event: Some(TrackEvent {
                flow_ids: flow,
                ..track_event(EventType::SliceEnd, uuid)
            }),
            ..TracePacket::default()
        });
    }

    fn named(&mut self, at: u64, what: EventType, uuid: u64, iid: u64, flow: Option<u64>) {
        self.write(TracePacket {
            timestamp: Some(at),
            sequence_flags: Some(SEQ_NEEDS_INCREMENTAL_STATE),
            track_event: Some(TrackEvent {
                name_iid: Some(iid),
                flow_ids: flow,
                ..track_event(what, uuid)
            }),
            ..TracePacket::default()
        });
    }

    fn write(&mut self, packet: TracePacket) {
        self.packet.packet[0] = TracePacket {
            trusted_packet_sequence_id: Some(SEQUENCE),
            ..packet
        };
        self.packet
            .encode(&mut self.buffer)
            .expect("a vector has room for a message");
        if self.buffer.len() >= BUFFER {
            self.drain();
        }
    }

    fn drain(&mut self) {
        if self.written.is_ok() {
            self.written = self.writer.write_all(&self.buffer);
        }
        self.buffer.clear();
    }
}

fn track_event(what: EventType, uuid: u64) -> TrackEvent {
    TrackEvent {
        r#type: Some(what.into()),
        track_uuid: Some(uuid),
        ..TrackEvent::default()
    }
}

impl<W: Write> Observer for PerfettoTrace<W> {
    fn event(&mut self, at: u64, event: SimulationEvent) {
        let at = self.clock.nanoseconds(at);
        match event {
            SimulationEvent::Arrived(source) => self.note_at_source(at, source, Note::Arrived),
            SimulationEvent::Lost(source, why) => self.note_at_source(at, source, Note::Lost(why)),
            SimulationEvent::Masked(source) => {
                if !std::mem::replace(&mut self.lines[source].masked, true) {
                    let uuid = self.uuids.source(source);
                    self.named(at, EventType::SliceBegin, uuid, Note::Masked.iid(), None);
                }
            }
            SimulationEvent::Unmasked(source) => self.unmask(at, source),
            SimulationEvent::Starts(track) => {
                self.running = Some(track);
                self.begin(at, self.uuids.track(track), None);
            }
            SimulationEvent::Resumes(track) => {
                self.running = Some(track);
                let uuid = self.uuids.track(track);
                let flow = *self.job(uuid);
                self.begin(at, uuid, (flow != 0).then_some(flow));
            }
            SimulationEvent::Stops(track) => {
                self.running = None;
                let uuid = self.uuids.track(track);
                // A resumed part has had the job's flow from its beginning. The first part gets the
                // flow here, at its end.
                let first = *self.job(uuid) == 0;
                if first {
                    *self.job(uuid) = self.next_flow;
                    self.next_flow += 1;
                }
                let flow = *self.job(uuid);
                self.end(at, uuid, first.then_some(flow));
            }
            SimulationEvent::Ends(track) => {
                self.running = None;
                let uuid = self.uuids.track(track);
                *self.job(uuid) = 0;
                self.end(at, uuid, None);
            }
            SimulationEvent::Released(task) => {
                self.note(at, self.uuids.track(Track::Task(task)), Note::Released)
            }
            SimulationEvent::Missed(task) => {
                self.note(at, self.uuids.track(Track::Task(task)), Note::Missed)
            }
            SimulationEvent::Depth(queue, waiting) => self.write(TracePacket {
                timestamp: Some(at),
                track_event: Some(TrackEvent {
                    counter_value: Some(i64::try_from(waiting).unwrap_or(i64::MAX)),
                    ..track_event(EventType::Counter, self.uuids.queue(queue))
                }),
                ..TracePacket::default()
            }),
        }
    }
}

/// An observer that is chosen at run time. `None` ignores all events.
impl<O: Observer> Observer for Option<O> {
    #[inline]
    fn event(&mut self, at: u64, event: SimulationEvent) {
        if let Some(observer) = self {
            observer.event(at, event);
        }
    }
}
