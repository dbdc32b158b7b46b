// SPDX-License-Identifier: MIT OR Apache-2.0
//! The part of Perfetto's messages that Weir's traces need, under Perfetto's names and field
//! numbers.
//!
//! The messages are declared in protos/perfetto/trace/{trace,trace_packet}.proto,
//! track_event/{track_event,track_descriptor,counter_descriptor}.proto, system_info.proto and
//! interned_data/interned_data.proto of <https://github.com/google/perfetto>. Members of a oneof
//! are plain optional fields here: on the wire they are the same.

/// A trace file.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Trace {
    /// The packets in order of time, those without a time first.
    #[prost(message, repeated, tag = "1")]
    pub packet: Vec<TracePacket>,
}

/// `sequence_flags`: all that the sequence interned before is forgotten.
pub const SEQ_INCREMENTAL_STATE_CLEARED: u32 = 1;
/// `sequence_flags`: the packet refers to interned names by their numbers.
pub const SEQ_NEEDS_INCREMENTAL_STATE: u32 = 2;

/// An event at an instant, or a declaration.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TracePacket {
    /// Nanoseconds from the start of the run.
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    /// The sequence whose interned names hold.
    #[prost(uint32, optional, tag = "10")]
    pub trusted_packet_sequence_id: Option<u32>,
    /// What happened.
    #[prost(message, optional, tag = "11")]
    pub track_event: Option<TrackEvent>,
    /// Names, each with the number that stands for it from now on.
    #[prost(message, optional, tag = "12")]
    pub interned_data: Option<InternedData>,
    /// The `SEQ_…` flags.
    #[prost(uint32, optional, tag = "13")]
    pub sequence_flags: Option<u32>,
    /// What recorded the trace.
    #[prost(message, optional, tag = "45")]
    pub system_info: Option<SystemInfo>,
    /// A track is declared.
    #[prost(message, optional, tag = "60")]
    pub track_descriptor: Option<TrackDescriptor>,
}

/// What recorded a trace.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SystemInfo {
    /// The program, as its name and version.
    #[prost(string, optional, tag = "4")]
    pub tracing_service_version: Option<String>,
}

/// A track, or a group of tracks.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TrackDescriptor {
    /// Its number, unique in the trace.
    #[prost(uint64, optional, tag = "1")]
    pub uuid: Option<u64>,
    /// The name that is shown beside it.
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    /// The group that it stands in.
    #[prost(uint64, optional, tag = "5")]
    pub parent_uuid: Option<u64>,
    /// Makes it a counter: the track shows a number over time.
    #[prost(message, optional, tag = "8")]
    pub counter: Option<CounterDescriptor>,
    /// The order of the tracks in this group.
    #[prost(enumeration = "ChildTracksOrdering", optional, tag = "11")]
    pub child_ordering: Option<i32>,
    /// Its place among the others of its group, the lowest first.
    #[prost(int32, optional, tag = "12")]
    pub sibling_order_rank: Option<i32>,
    /// The text of its help button.
    #[prost(string, optional, tag = "14")]
    pub description: Option<String>,
}

/// The order of the tracks in a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, prost::Enumeration)]
#[repr(i32)]
pub enum ChildTracksOrdering {
    /// An order of the reader's choice.
    Unknown = 0,
    /// The order of their ranks.
    Explicit = 3,
}

/// The declaration of a counter.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct CounterDescriptor {
    /// The unit.
    #[prost(enumeration = "CounterUnit", optional, tag = "3")]
    pub unit: Option<i32>,
}

/// The unit of a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, prost::Enumeration)]
#[repr(i32)]
pub enum CounterUnit {
    /// Not stated.
    Unspecified = 0,
    /// A count.
    Count = 2,
}

/// Something on a track.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct TrackEvent {
    /// The kind of the event.
    #[prost(enumeration = "EventType", optional, tag = "9")]
    pub r#type: Option<i32>,
    /// The interned name of a slice that begins, or of an instant.
    #[prost(uint64, optional, tag = "10")]
    pub name_iid: Option<u64>,
    /// The uuid of the track.
    #[prost(uint64, optional, tag = "11")]
    pub track_uuid: Option<u64>,
    /// The counter's value from now on.
    #[prost(int64, optional, tag = "30")]
    pub counter_value: Option<i64>,
    /// Slices with the same number are joined by arrows. Perfetto allows several; one is written,
    /// which is the same as a list of one.
    #[prost(fixed64, optional, tag = "47")]
    pub flow_ids: Option<u64>,
}

/// The kind of a track event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, prost::Enumeration)]
#[repr(i32)]
pub enum EventType {
    /// No event.
    Unspecified = 0,
    /// A slice begins.
    SliceBegin = 1,
    /// The slice that began last on the track ends.
    SliceEnd = 2,
    /// An instant, without a duration.
    Instant = 3,
    /// The value of a counter changes.
    Counter = 4,
}

/// Names with the numbers that stand for them.
#[derive(Clone, PartialEq, prost::Message)]
pub struct InternedData {
    /// Names of events.
    #[prost(message, repeated, tag = "2")]
    pub event_names: Vec<EventName>,
}

/// A name.
#[derive(Clone, PartialEq, prost::Message)]
pub struct EventName {
    /// The number that stands for it; not 0.
    #[prost(uint64, optional, tag = "1")]
    pub iid: Option<u64>,
    /// The name.
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
}
