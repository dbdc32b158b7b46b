// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mode predicted in a run: the threads of interfaces follow the urgency of waiting receivers.
use miette::IntoDiagnostic as _;
use serde_json::{Value, json};
use weir_model::Predict;

use super::{Part, Turn};
use crate::plan;
use crate::predicted::{Basis, DeviceBottomHalf, Prediction, SETTER, Threads};
use crate::receivers::Reach;
use crate::settings::{self, Journal, Setting};
use crate::system::{Node, NodeInterface};
use crate::urgency::Urgency;

/// The part that gives the threads of each interface the urgency of the receiver that they follow.
pub struct PredictedPart {
    node: Node,
    predicted: Prediction,
    /// Threads of each interface, in the order of the node's interfaces.
    threads: Vec<Threads>,
}

impl PredictedPart {
    /// Loads the BPF programs. No policy is set before the first turn.
    pub fn start(node: &Node) -> miette::Result<Self> {
        let mut devices = Vec::new();
        let mut threads = Vec::new();
        for interface in &node.interfaces {
            let group = Threads::new(node.most_of(interface));
            devices.push(DeviceBottomHalf::for_threads(reach(interface)?, &group));
            threads.push(group);
        }
        let basis = match node.linux.predict {
            Predict::Waiting => Basis::Waiting,
            Predict::Registered => Basis::Registered,
        };
        let predicted = Prediction::start(devices, basis, Some(SETTER)).into_diagnostic()?;
        Ok(Self {
            node: node.clone(),
            predicted,
            threads,
        })
    }

    /// Updates the threads of the interface with this number, and the receivers that its packets
    /// can reach.
    fn look_at(&mut self, number: usize, journal: &mut Journal) -> miette::Result<()> {
        let interface = &self.node.interfaces[number];
        self.predicted.set_reach(number, reach(interface)?);
        let device = plan::device(&self.node, interface).into_diagnostic()?;
        let found = device.threads().into_diagnostic()?;
        let threads = &self.threads[number];
        let now: Vec<_> = found.iter().map(|found| found.thread).collect();
        if now == threads.get() {
            return Ok(());
        }
        let most = self.node.most_of(interface);
        for thread in &found {
            let announced = journal.announce(&Setting::policy(thread), &policies(most));
            announced.into_diagnostic()?;
        }
        threads.replace(now).into_diagnostic()
    }
}

fn reach(interface: &NodeInterface) -> miette::Result<Reach> {
    Reach::find(&interface.name).map_err(|error| {
        miette::miette!(
            "the interface `{}` cannot be found: {error}",
            interface.name
        )
    })
}

/// All policies that a thread may get. The least urgent policy is last.
fn policies(most: Urgency) -> Vec<settings::Value> {
    let urgencies = (0..=most.get())
        .rev()
        .filter_map(|one| Urgency::new(one).ok());
    urgencies
        .map(Urgency::policy)
        .map(settings::Value::Policy)
        .collect()
}

impl Part for PredictedPart {
    fn name(&self) -> &'static str {
        "predicted"
    }

    fn turn(&mut self, turn: &mut Turn<'_>) -> miette::Result<()> {
        if turn.is_period {
            for number in 0..self.threads.len() {
                if !turn.presence.has(&self.node.interfaces[number].name) {
                    continue;
                }
                // An error with one interface does not affect the others.
                match self.look_at(number, turn.journal) {
                    Err(error) if !turn.presence.is_outdated() => {
                        turn.messages.once(&format!("{error:#}"));
                    }
                    Ok(()) | Err(_) => {}
                }
            }
        }
        match turn.receivers {
            Some(receivers) if turn.is_period || !turn.changes.is_empty() => {
                self.predicted.update(receivers).into_diagnostic()
            }
            _ => Ok(()),
        }
    }

    fn status(&self) -> Value {
        let interfaces = self.node.interfaces.iter().zip(&self.threads).enumerate();
        let interfaces = interfaces.map(|(number, (interface, threads))| {
            json!({
                "name": interface.name,
                "urgency": threads.urgency(),
                "most": self.node.most_of(interface),
                "waiting": self.predicted.waiting(number),
            })
        });
        json!({
            "predict": self.node.linux.predict.name(),
            "changes": self.predicted.changes(),
            "interfaces": interfaces.collect::<Vec<_>>(),
        })
    }
}
