// SPDX-License-Identifier: MIT OR Apache-2.0
//! A receive queue for the most urgent packets alone. Rules bring these packets to the queue, and
//! the card spreads all other packets over the other queues. So the queue's thread can have a
//! policy of its own.
use super::{Device, Note};
use crate::settings::steering::{self, FlowSpec, Rule, RuleTable};
use crate::settings::{OpenInterface, Setting, Value, netlink};

/// The queue for the packets of [`Device::steered`].
#[derive(Debug)]
pub(super) struct UrgentQueue {
    /// Number of the queue: the last one.
    pub queue: u32,
    /// Settings that the queue needs. The list is empty once all of them are made.
    pub wanted: Vec<(Setting, Value)>,
    /// Number of the NAPI instance that serves the queue. `None` if the driver does not report it.
    pub instance: Option<u32>,
}

impl UrgentQueue {
    /// Finds the queue of `device`. `None` if nothing is steered, or if the card cannot steer
    /// packets; the latter is added to `notes`.
    pub(super) fn find(
        device: &Device,
        open: &OpenInterface,
        notes: &mut Vec<Note>,
    ) -> Option<Self> {
        if device.steered.is_empty() {
            return None;
        }
        let interface = &device.interface;
        let mut cannot = |reason: String| {
            notes.push(Note::NoSteering(interface.name.clone(), reason));
            None
        };
        let found = steering::queues(open).and_then(|queues| Ok((queues, RuleTable::read(open)?)));
        let (queues, rules) = match found {
            Ok(found) => found,
            Err(error) => return cannot(error.to_string()),
        };
        if queues < 2 {
            return cannot("it has one receive queue".to_owned());
        }
        let queue = queues - 1;
        let is_steered = |flow: FlowSpec| rules.rules.iter().any(|rule| rule.brings(flow, queue));
        let flows = device.steered.iter().copied();
        let missing: Vec<FlowSpec> = flows.filter(|flow| !is_steered(*flow)).collect();
        let places: Vec<u32> = rules.free().take(missing.len()).collect();
        if places.len() < missing.len() {
            let (free, needed) = (places.len(), missing.len());
            return cannot(format!(
                "its table of rules has {free} free places, and {needed} are needed"
            ));
        }
        let mut wanted: Vec<(Setting, Value)> = missing
            .into_iter()
            .zip(places)
            .map(|(flow, place)| {
                let interface = interface.clone();
                let rule = Rule::new(flow, queue, place);
                (
                    Setting::Steering { interface, place },
                    Value::Rule(Some(rule)),
                )
            })
            .collect();
        match steering::spread(open) {
            Ok(table) => wanted.extend(without(&table, queue).map(|table| {
                let interface = interface.clone();
                (Setting::Spread { interface }, Value::Queues(table))
            })),
            Err(error) => notes.push(Note::Shared {
                interface: interface.name.clone(),
                queue,
                reason: error.to_string(),
            }),
        }
        let instances = interface.inside(|| netlink::instances(interface.index));
        Some(Self {
            queue,
            wanted,
            instance: instances
                .ok()
                .and_then(|instances| instances.get(&queue).copied()),
        })
    }
}

/// Replaces `queue` in `table` by the other queues, each in its turn. `None` if the table does not
/// contain `queue`.
fn without(table: &[u32], queue: u32) -> Option<Vec<u32>> {
    let mut others = (0..queue).cycle();
    let other = |place: &u32| {
        if *place == queue {
            others.next().unwrap_or_default()
        } else {
            *place
        }
    };
    table
        .contains(&queue)
        .then(|| table.iter().map(other).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_leaves_the_table_to_the_others() {
        let table = [0, 1, 2, 3, 0, 1, 2, 3, 3];
        assert_eq!(without(&table, 3).unwrap(), [0, 1, 2, 0, 0, 1, 2, 1, 2]);
        assert_eq!(without(&[0, 1, 2], 3), None);
        assert_eq!(without(&[1, 1], 1).unwrap(), [0, 0]);
    }
}
