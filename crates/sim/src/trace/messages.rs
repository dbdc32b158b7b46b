// SPDX-License-Identifier: MIT OR Apache-2.0
//! The subset of Perfetto's messages that Weir's traces need, with Perfetto's names and field
//! numbers.
//!
//! The messages are declared in protos/perfetto/trace/{trace,trace_packet}.proto,
//! track_event/{track_event,track_descriptor,counter_descriptor}.proto, system_info.proto and
//! interned_data/interned_data.proto of <https://github.com/google/perfetto>. Members of a oneof
//! are plain optional fields here, because the encoding is the same.

/// A trace file.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Trace {
    /// The packets, ordered by time. Packets without a time come first.
    #[prost(message, repeated, tag = "1")]
    pub packet: Vec<TracePacket>,
}

/// `sequence_flags`: the names that the sequence has interned so far are discarded.
pub const SEQ_INCREMENTAL_STATE_CLEARED: u32 = 1;
/// `sequence_flags`: the packet refers to interned names by number.
pub const SEQ_NEEDS_INCREMENTAL_STATE: u32 = 2;

/// An event at an instant, or a declaration.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TracePacket {
    /// Nanoseconds from the start of the run.
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    /// The sequence whose interned names the packet uses.
    #[prost(uint32, optional, tag = "10")]
    pub trusted_packet_sequence_id: Option<u32>,
    /// The event. `None` if the packet declares something.
    #[prost(message, optional, tag = "11")]
    pub track_event: Option<TrackEvent>,
    /// Names with their numbers, which following packets use.
    #[prost(message, optional, tag = "12")]
    pub interned_data: Option<InternedData>,
    /// The `SEQ_…` flags.
    #[prost(uint32, optional, tag = "13")]
    pub sequence_flags: Option<u32>,
    /// The program that recorded the trace.
    #[prost(message, optional, tag = "45")]
    pub system_info: Option<SystemInfo>,
    /// The declaration of a track.
    #[prost(message, optional, tag = "60")]
    pub track_descriptor: Option<TrackDescriptor>,
}

/// The program that recorded a trace.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SystemInfo {
    /// The name and version of the program.
    #[prost(string, optional, tag = "4")]
    pub tracing_service_version: Option<String>,
}

/// A track, or a group of tracks.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TrackDescriptor {
    /// The track's number, unique within the trace.
    #[prost(uint64, optional, tag = "1")]
    pub uuid: Option<u64>,
    /// The displayed name.
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    /// The uuid of the group that contains the track.
    #[prost(uint64, optional, tag = "5")]
    pub parent_uuid: Option<u64>,
    /// Makes the track a counter track, which shows a number over time.
    #[prost(message, optional, tag = "8")]
    pub counter: Option<CounterDescriptor>,
    /// The order of the child tracks of this group.
    #[prost(enumeration = "ChildTracksOrdering", optional, tag = "11")]
    pub child_ordering: Option<i32>,
    /// The position among the children of the parent group, lowest first.
    #[prost(int32, optional, tag = "12")]
    pub sibling_order_rank: Option<i32>,
    /// The help text of the track.
    #[prost(string, optional, tag = "14")]
    pub description: Option<String>,
}

/// The order of the tracks in a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, prost::Enumeration)]
#[repr(i32)]
pub enum ChildTracksOrdering {
    /// Perfetto chooses the order.
    Unknown = 0,
    /// The children are ordered by their ranks.
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
    /// The counter states no unit.
    Unspecified = 0,
    /// A count.
    Count = 2,
}

/// An event on a track.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct TrackEvent {
    /// The kind of the event.
    #[prost(enumeration = "EventType", optional, tag = "9")]
    pub r#type: Option<i32>,
    /// The interned name of a slice or of an instant event.
    #[prost(uint64, optional, tag = "10")]
    pub name_iid: Option<u64>,
    /// The uuid of the track.
    #[prost(uint64, optional, tag = "11")]
    pub track_uuid: Option<u64>,
    /// The new value of the counter.
    #[prost(int64, optional, tag = "30")]
    pub counter_value: Option<i64>,
    /// Flow identifier: arrows connect slices with the same identifier. Perfetto allows several
    /// identifiers; Weir writes one, which has the same encoding as a list of one.
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
    /// The most recent open slice on the track ends.
    SliceEnd = 2,
    /// An instant event, without a duration.
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
    /// The number that represents the name; not 0.
    #[prost(uint64, optional, tag = "1")]
    pub iid: Option<u64>,
    /// The name.
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
}
