// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares the table with a model of the system that consists of plain lists. Whatever happens,
//! and in whatever order it is reported, both must agree.
mod system;

use std::collections::BTreeMap;
use std::mem;

use proptest::prelude::*;

use super::table::Questions;
use super::{PacketKey, ReaderId, ReceiverTable, TableChange};
use crate::urgency::Urgency;
use system::{Step, System, rules};

fn told_step() -> impl Strategy<Value = Step> {
    let one = 0..8_usize;
    prop_oneof![
        4 => (one.clone(), 1..5_u16, any::<bool>(), 0..3_u8)
            .prop_map(|(process, port, tcp, place)| Step::Bind { process, port, tcp, place }),
        2 => one.clone().prop_map(|socket| Step::Release { socket }),
        2 => one.clone().prop_map(|parent| Step::Fork { parent }),
        1 => (one.clone(), any::<u8>()).prop_map(|(process, kept)| Step::Execute { process, kept }),
        1 => one.clone().prop_map(|process| Step::Exit { process }),
        1 => one.clone().prop_map(|process| Step::StartThread { process }),
        1 => (one.clone(), one.clone()).prop_map(|(process, thread)| Step::EndThread { process, thread }),
        1 => one.prop_map(|process| Step::Migrate { process }),
    ]
}

fn any_step() -> impl Strategy<Value = Step> {
    let one = 0..8_usize;
    prop_oneof![
        8 => told_step(),
        2 => (one.clone(), one.clone(), 0..100_u8)
            .prop_map(|(process, thread, urgency)| Step::SetUrgency { process, thread, urgency }),
        1 => (one.clone(), one.clone(), one.clone())
            .prop_map(|(process, to, socket)| Step::Pass { process, to, socket }),
        1 => (one.clone(), one.clone()).prop_map(|(process, socket)| Step::Close { process, socket }),
        1 => (one.clone(), one).prop_map(|(process, socket)| Step::Accept { process, socket }),
        1 => (1..6_usize).prop_map(|events| Step::Lose { events }),
        4 => (1..6_usize).prop_map(|events| Step::Tell { events }),
        1 => Just(Step::Scan),
    ]
}

/// The state that follows from the reported changes alone.
#[derive(Debug, Default)]
struct Listener(BTreeMap<(PacketKey, ReaderId), Urgency>);

impl Listener {
    fn hear(&mut self, changes: Vec<TableChange>) {
        for change in changes {
            let fits = match change {
                TableChange::Bound { key, reader } => {
                    self.0.insert((key, reader.id), reader.urgency).is_none()
                }
                TableChange::Unbound { key, reader } => self.0.remove(&(key, reader)).is_some(),
                TableChange::Urgency {
                    key,
                    reader,
                    from,
                    to,
                } => from != to && self.0.insert((key, reader), to) == Some(from),
            };
            assert!(fits, "a change of what was not so");
        }
    }
}

fn of_table(table: &ReceiverTable) -> BTreeMap<(PacketKey, ReaderId), Urgency> {
    table
        .iter()
        .map(|(key, reader)| ((key, reader.id), reader.urgency))
        .collect()
}

fn check_urgencies(table: &ReceiverTable, readers: &BTreeMap<(PacketKey, ReaderId), Urgency>) {
    for (key, _) in readers.keys() {
        let of_key = readers.iter().filter(|((other, _), _)| other == key);
        assert_eq!(
            table.urgency(*key),
            of_key.map(|(_, urgency)| *urgency).max()
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// In this test nothing is scanned as a whole. The events report everything but what the table
    /// asks for.
    #[test]
    fn what_is_told_at_once_is_right_at_once(steps in prop::collection::vec(told_step(), 1..80)) {
        let (mut system, mut table) = (System::new(), ReceiverTable::new(rules()));
        let (mut questions, mut listener) = (Questions::default(), Listener::default());
        for step in steps {
            system.step(&step);
            for event in mem::take(&mut system.events) {
                table.apply(event, &mut questions);
            }
            system.answer(&mut table, &mut questions);
            listener.hear(table.changes());
            prop_assert_eq!(&listener.0, &system.readers());
            prop_assert_eq!(of_table(&table), system.readers());
            check_urgencies(&table, &listener.0);
        }
    }

    /// In this test events are late or lost, some changes have no event, and scans happen in
    /// between.
    #[test]
    fn after_a_scan_all_is_right(steps in prop::collection::vec(any_step(), 1..120)) {
        let (mut system, mut table) = (System::new(), ReceiverTable::new(rules()));
        let (mut questions, mut listener) = (Questions::default(), Listener::default());
        for step in steps {
            system.step(&step);
            match step {
                Step::Tell { events } => {
                    let count = events.min(system.events.len());
                    for event in system.events.drain(..count).collect::<Vec<_>>() {
                        table.apply(event, &mut questions);
                    }
                    system.answer(&mut table, &mut questions);
                }
                Step::Scan => table.reconcile(None, system.scan(None), &mut questions),
                _ => {}
            }
            listener.hear(table.changes());
            prop_assert_eq!(&listener.0, &of_table(&table));
        }
        for event in mem::take(&mut system.events) {
            table.apply(event, &mut questions);
        }
        table.reconcile(None, system.scan(None), &mut questions);
        system.answer(&mut table, &mut questions);
        listener.hear(table.changes());
        prop_assert_eq!(&listener.0, &system.readers());
        prop_assert_eq!(of_table(&table), system.readers());
        prop_assert_eq!(table.sockets(), system.sockets.len());
    }
}
