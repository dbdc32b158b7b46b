// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads a trace as Perfetto's trace processor does, but rejects what Perfetto would silently
//! repair.
use std::collections::{BTreeMap, HashMap};

use prost::Message;
use weir_sim::trace::messages::{
    EventType, SEQ_INCREMENTAL_STATE_CLEARED, SEQ_NEEDS_INCREMENTAL_STATE, Trace, TrackDescriptor,
    TrackEvent,
};

/// A time span in which work ran or a source was masked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slice {
    pub track: String,
    pub name: String,
    pub begin: u64,
    pub end: u64,
    /// The Perfetto flows that enter at the begin and leave at the end of the slice.
    pub flows: (Option<u64>, Option<u64>),
}

/// The content of a trace. Times are in nanoseconds; tracks are named by their path.
#[derive(Debug, Default)]
pub struct Seen {
    /// The paths of the tracks in display order, depth first.
    pub tracks: Vec<String>,
    /// The slices, ordered by their ends.
    pub slices: Vec<Slice>,
    pub notes: Vec<(u64, String, String)>,
    pub depths: Vec<(u64, String, i64)>,
}

#[derive(Default)]
struct Reader {
    names: HashMap<u64, String>,
    tracks: BTreeMap<u64, TrackDescriptor>,
    open: HashMap<u64, Slice>,
    now: u64,
    seen: Seen,
}

/// Reads a whole trace file.
pub fn read(bytes: &[u8]) -> Seen {
    let trace = Trace::decode(bytes).expect("a trace");
    let mut reader = Reader::default();
    for (index, packet) in trace.packet.into_iter().enumerate() {
        assert_eq!(packet.trusted_packet_sequence_id, Some(1));
        let flags = packet.sequence_flags.unwrap_or(0);
        assert_eq!(
            flags & SEQ_INCREMENTAL_STATE_CLEARED != 0,
            index == 0,
            "names hold to the end"
        );
        for name in packet
            .interned_data
            .into_iter()
            .flat_map(|data| data.event_names)
        {
            let before = reader.names.insert(name.iid.unwrap(), name.name.unwrap());
            assert_eq!(before, None);
        }
        if let Some(track) = packet.track_descriptor {
            let parent = track.parent_uuid;
            assert!(parent.is_none_or(|parent| reader.tracks.contains_key(&parent)));
            assert!(reader.tracks.insert(track.uuid.unwrap(), track).is_none());
        }
        if let Some(event) = packet.track_event {
            let at = packet.timestamp.expect("an instant");
            assert!(at >= reader.now, "time goes on");
            reader.now = at;
            let by_number = flags & SEQ_NEEDS_INCREMENTAL_STATE != 0;
            assert_eq!(by_number, event.name_iid.is_some());
            reader.event(at, event);
        }
    }
    assert!(reader.open.is_empty(), "every slice has its end");
    reader.seen.tracks = reader.leaves(None);
    reader.seen
}

impl Reader {
    fn event(&mut self, at: u64, event: TrackEvent) {
        let uuid = event.track_uuid.unwrap();
        let track = self.path(uuid);
        let name = event.name_iid.map(|iid| self.names[&iid].clone());
        let is_counter = self.tracks[&uuid].counter.is_some();
        assert_eq!(is_counter, event.r#type() == EventType::Counter);
        match event.r#type() {
            EventType::SliceBegin => {
                let slice = Slice {
                    track,
                    name: name.unwrap(),
                    begin: at,
                    end: at,
                    flows: (event.flow_ids, None),
                };
                assert!(self.open.insert(uuid, slice).is_none(), "one at a time");
            }
            EventType::SliceEnd => {
                let slice = self.open.remove(&uuid).expect("what ends has begun");
                self.seen.slices.push(Slice {
                    end: at,
                    flows: (slice.flows.0, event.flow_ids),
                    ..slice
                });
            }
            EventType::Instant => self.seen.notes.push((at, track, name.unwrap())),
            EventType::Counter => self
                .seen
                .depths
                .push((at, track, event.counter_value.unwrap())),
            EventType::Unspecified => panic!("{event:?} is nothing"),
        }
    }

    fn path(&self, uuid: u64) -> String {
        let track = &self.tracks[&uuid];
        match track.parent_uuid {
            Some(parent) => format!("{}/{}", self.path(parent), track.name()),
            None => track.name().to_owned(),
        }
    }

    /// Returns the tracks below `parent`, without the groups.
    fn leaves(&self, parent: Option<u64>) -> Vec<String> {
        let mut children: Vec<_> = self
            .tracks
            .values()
            .filter(|track| track.parent_uuid == parent)
            .collect();
        children.sort_by_key(|track| track.sibling_order_rank());
        children
            .into_iter()
            .flat_map(|track| match track.child_ordering {
                Some(_) => self.leaves(track.uuid),
                None => vec![self.path(track.uuid())],
            })
            .collect()
    }
}
