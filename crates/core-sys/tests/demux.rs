// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests DEMUX-TABLE-* and DEMUX-LOOKUP-* against a model, a plain list.

use proptest::prelude::*;
use weir_core_sys::demux::{CLASSES, Demux, DemuxError, DemuxReceiver, Lookup, SocketKey};

/// The sockets of each reader, ordered by when the reader was bound or got its class. This is
/// everything that the table has to know.
#[derive(Default)]
struct Model {
    reads: Vec<(SocketKey, u16, u8)>,
}

impl Model {
    fn readers(&self, key: SocketKey) -> impl Iterator<Item = &(SocketKey, u16, u8)> {
        self.reads.iter().filter(move |read| read.0 == key)
    }

    fn sockets(&self) -> usize {
        let mut keys: Vec<SocketKey> = self.reads.iter().map(|read| read.0).collect();
        keys.sort();
        keys.dedup();
        keys.len()
    }

    fn set_class(&mut self, reader: u16, class: u8) -> Result<(), DemuxError> {
        let of_reader = |read: &(SocketKey, u16, u8)| read.1 == reader;
        if !self.reads.iter().any(of_reader) {
            return Err(DemuxError::NotBound);
        }
        // A reader that gets a class goes behind the readers that already have the class.
        let (told, mut others): (Vec<_>, Vec<_>) = self.reads.iter().copied().partition(of_reader);
        others.extend(
            told.into_iter()
                .map(|(key, reader, _)| (key, reader, class)),
        );
        self.reads = others;
        Ok(())
    }

    fn bind(&mut self, key: SocketKey, reader: u16, class: u8) {
        if !self.readers(key).any(|read| read.1 == reader) {
            self.reads.push((key, reader, class));
        }
        self.set_class(reader, class).expect("it is bound");
    }

    fn unbind(&mut self, key: SocketKey, reader: u16) -> Result<(), DemuxError> {
        let before = self.reads.len();
        self.reads.retain(|read| (read.0, read.1) != (key, reader));
        if self.reads.len() == before {
            Err(DemuxError::NotBound)
        } else {
            Ok(())
        }
    }

    fn lookup(&self, key: SocketKey, orphans: Option<u8>) -> Lookup {
        let class = self.readers(key).map(|read| read.2).max();
        Lookup {
            class: class.or(orphans),
            receiver: self
                .readers(key)
                .find(|read| Some(read.2) == class)
                .map_or(DemuxReceiver::Orphan, |read| DemuxReceiver::Bound(read.1)),
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Bind(SocketKey, u16, u8),
    Unbind(SocketKey, u16),
    SetClass(u16, u8),
}

fn keys() -> impl Strategy<Value = SocketKey> {
    prop_oneof![
        4 => (0_u16..12).prop_map(SocketKey::udp),
        2 => (0_u16..12).prop_map(SocketKey::tcp),
        1 => (0_u8..3).prop_map(SocketKey::protocol),
        1 => (0x600_u16..0x603).prop_map(SocketKey::ethertype),
        1 => (0_u8..8).prop_map(SocketKey::pcp),
        1 => any::<u16>().prop_map(SocketKey::udp),
    ]
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        5 => (keys(), 0_u16..6, 0..CLASSES).prop_map(|(key, reader, class)| Event::Bind(key, reader, class)),
        3 => (keys(), 0_u16..6).prop_map(|(key, reader)| Event::Unbind(key, reader)),
        1 => (0_u16..6, 0_u8..6).prop_map(|(reader, class)| Event::SetClass(reader, class)),
    ];
    prop::collection::vec(event, 1..200)
}

proptest! {
    #![proptest_config(crate::cases(200, 1000))]

    /// DEMUX-TABLE-1 to -4: after any sequence of bind, unbind and set_class the table agrees with
    /// the list, and a refused call changes nothing.
    #[test]
    fn the_table_is_the_list(events in events(), capacity in 0_u32..7, readers in 1_usize..40, orphans in prop::option::of(0..CLASSES)) {
        let sockets = 1 << capacity;
        let mut demux = Demux::new(sockets, readers, orphans, None).unwrap();
        let mut model = Model::default();
        let mut asked: Vec<SocketKey> = Vec::new();
        for event in events {
            match event {
                Event::Bind(key, reader, class) => {
                    asked.push(key);
                    let is_new = !model.readers(key).any(|read| read.1 == reader);
                    let no_link = is_new && model.reads.len() == readers;
                    let result = demux.bind(key, reader, class);
                    if no_link {
                        prop_assert_eq!(result, Err(DemuxError::NoLinks));
                    } else if result == Err(DemuxError::NoSlot) {
                        prop_assert_eq!(model.readers(key).count(), 0);
                        // In a table of at most eight slots, every socket can use every slot.
                        prop_assert!(model.sockets() == sockets || sockets > 8);
                        prop_assert!(model.sockets() * 2 >= sockets, "refused at {} of {sockets}", model.sockets());
                    } else {
                        prop_assert_eq!(result, Ok(()));
                        model.bind(key, reader, class);
                    }
                }
                Event::Unbind(key, reader) => {
                    prop_assert_eq!(demux.unbind(key, reader), model.unbind(key, reader));
                }
                Event::SetClass(reader, class) => {
                    prop_assert_eq!(demux.set_class(reader, class), model.set_class(reader, class));
                }
            }
            for &key in &asked {
                prop_assert_eq!(demux.lookup(key), model.lookup(key, orphans));
            }
        }
    }
}

fn filled(sockets: usize, keys: impl Iterator<Item = SocketKey>) -> usize {
    let mut demux = Demux::new(sockets, sockets, None, None).unwrap();
    let mut bound = Vec::new();
    for key in keys {
        match demux.bind(key, 7, 3) {
            Ok(()) => bound.push(key),
            Err(error) => {
                assert!(matches!(error, DemuxError::NoSlot | DemuxError::NoLinks));
                assert_eq!(demux.lookup(key).receiver, DemuxReceiver::Orphan);
                break;
            }
        }
    }
    // The table made room for the last socket and kept the first.
    for &key in &bound {
        assert_eq!(demux.lookup(key).receiver, DemuxReceiver::Bound(7));
    }
    bound.len()
}

/// DEMUX-TABLE-5: a table fills to more than half before a port is rejected, for consecutive ports,
/// ports at any distance, and random ports.
#[test]
fn a_table_takes_half_its_slots_at_least() {
    for sockets in [1_usize, 2, 4, 8, 16, 64, 256, 1024] {
        let least = if sockets <= 8 { sockets } else { sockets / 2 };
        for stride in (1..200_u32).chain([250, 256, 500, 512, 1000, 1024, 2048, 4096, 10_000]) {
            // Visits all ports with this stride. Each round begins one port further, until every
            // port was visited.
            let ports = (0..65536_u32).map(|i| (i * stride + i * stride / 65536) as u16);
            let mut seen = vec![false; 65536];
            let fresh =
                ports.filter(|&port| !std::mem::replace(&mut seen[usize::from(port)], true));
            let count = filled(sockets, fresh.map(SocketKey::udp));
            assert!(count >= least, "{count} of {sockets}, {stride} apart");
        }
        let mut dice = 0x2545_f491_u32;
        for _ in 0..50 {
            let mut seen = vec![false; 65536];
            let random = std::iter::repeat_with(|| {
                dice ^= dice << 13;
                dice ^= dice >> 17;
                dice ^= dice << 5;
                (dice >> 7) as u16
            });
            let fresh =
                random.filter(|&port| !std::mem::replace(&mut seen[usize::from(port)], true));
            let count = filled(sockets, fresh.map(SocketKey::tcp));
            assert!(count >= least, "{count} of {sockets}, at random");
        }
    }
}

/// DEMUX-TABLE-4: invalid arguments are rejected.
#[test]
fn nonsense_is_refused() {
    let new = |sockets, readers| Demux::new(sockets, readers, None, None).map(|_| ());
    for (sockets, readers) in [
        (0, 1),
        (3, 1),
        (1, 0),
        (65536, 1),
        (usize::MAX, 1),
        (1, 65536),
    ] {
        assert_eq!(
            new(sockets, readers),
            Err(DemuxError::Capacity),
            "{sockets}, {readers}"
        );
    }
    assert_eq!(new(32768, 65535), Ok(()));
    assert_eq!(
        Demux::new(1, 1, Some(CLASSES), None).map(|_| ()),
        Err(DemuxError::Class)
    );
    assert_eq!(
        Demux::new(1, 1, None, Some(255)).map(|_| ()),
        Err(DemuxError::Class)
    );
    let mut demux = Demux::new(8, 8, Some(0), Some(1)).unwrap();
    assert_eq!(
        demux.bind(SocketKey::udp(1), 1, CLASSES),
        Err(DemuxError::Class)
    );
    assert_eq!(
        demux.bind(SocketKey::udp(1), 1, 255),
        Err(DemuxError::Class)
    );
    assert_eq!(demux.bind(SocketKey::pcp(8), 1, 1), Err(DemuxError::Key));
    assert_eq!(
        demux.bind(SocketKey::ethertype(0x5ff), 1, 1),
        Err(DemuxError::Key)
    );
    assert_eq!(demux.bind(SocketKey::udp(1), 1, 5), Ok(()));
    assert_eq!(demux.set_class(1, CLASSES), Err(DemuxError::Class));
    assert_eq!(demux.lookup(SocketKey::udp(1)).class, Some(5));
    assert_eq!(demux.set_class(2, 1), Err(DemuxError::NotBound));
    assert_eq!(
        demux.unbind(SocketKey::udp(2), 1),
        Err(DemuxError::NotBound)
    );
    assert_eq!(
        demux.unbind(SocketKey::udp(1), 2),
        Err(DemuxError::NotBound)
    );
}

/// A shared socket is as urgent as its most urgent reader. When that reader leaves, the socket gets
/// the urgency of the next one (lee2010 §4: the entry is made at bind and ends at close).
#[test]
fn a_forked_socket_is_as_urgent_as_its_most_urgent_reader() {
    let mut demux = Demux::new(16, 16, Some(0), Some(0)).unwrap();
    let class = |demux: &Demux| demux.lookup(SocketKey::udp(5000)).class;
    demux.bind(SocketKey::udp(5000), 1, 4).unwrap();
    demux.bind(SocketKey::udp(5000), 2, 9).unwrap();
    demux.bind(SocketKey::udp(6000), 2, 9).unwrap();
    assert_eq!(class(&demux), Some(9));
    demux.set_class(2, 3).unwrap();
    assert_eq!(class(&demux), Some(4));
    assert_eq!(demux.lookup(SocketKey::udp(6000)).class, Some(3));
    demux.unbind(SocketKey::udp(5000), 1).unwrap();
    assert_eq!(class(&demux), Some(3));
    demux.unbind(SocketKey::udp(5000), 2).unwrap();
    assert_eq!(class(&demux), Some(0));
    assert_eq!(
        demux.lookup(SocketKey::tcp(5000)).receiver,
        DemuxReceiver::Orphan
    );
}
