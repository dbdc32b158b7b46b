// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parts of a run. One loop calls the function `turn` of each part: when one of their
//! descriptors is readable, when a part is due, and once in a period. Each part has a section of
//! its own in the status.
mod accounting;
pub mod exact;
mod messages;
mod predicted;
mod presence;
mod settings;

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use miette::IntoDiagnostic as _;
use serde_json::{Map, Value};
use weir_model::LinuxMode;

use crate::account::DemuxCounts;
use crate::receivers::{Follower, Options, ReceiverTable, TableChange};
use crate::settings::Journal;
use crate::system::Node;

use accounting::Accounting;
use exact::Demultiplexing;
pub use messages::Messages;
use predicted::PredictedPart;
pub use presence::Presence;
use settings::Settings;

/// Longest time between two turns. In a turn at the end of a period, a part notices what no
/// descriptor reports: an interface that was taken down and up, or a CPU that came online.
pub const PERIOD: Duration = Duration::from_secs(2);

/// One part of a run. Parts are dropped before the journal restores the settings.
pub trait Part {
    /// Key of the part's section in the status.
    fn name(&self) -> &'static str;

    /// Descriptor that is readable when the part needs a turn.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Time at which the part needs a turn. `None` means that one turn in each period is enough.
    fn due(&self) -> Option<Instant> {
        None
    }

    /// Does the part's work. The loop may call it at any time, and it must not block.
    ///
    /// # Errors
    /// Fails if something cannot be done. In the first turn an error ends the run. In later turns
    /// the error is reported once, and the next turn tries again.
    fn turn(&mut self, turn: &mut Turn<'_>) -> miette::Result<()>;

    /// Counts of the packets that the part has given to the threads of their classes so far. `None`
    /// if the part has no classes.
    fn given(&self) -> Option<DemuxCounts> {
        None
    }

    /// Status of the part.
    fn status(&self) -> Value;
}

/// Arguments of a part's turn.
pub struct Turn<'a> {
    /// Journal through which the part changes settings.
    pub journal: &'a mut Journal,
    /// Messages for the user.
    pub messages: &'a mut Messages,
    /// The interfaces of the run, and which of them are present. A part leaves missing interfaces
    /// alone until they are back. Their absence has been reported already.
    pub presence: &'a Presence,
    /// Table of the receivers. `None` if no part needs it.
    pub receivers: Option<&'a ReceiverTable>,
    /// Changes of the table since the last turn. In the first turn these are its whole content.
    pub changes: &'a [TableChange],
    /// Whether a period has ended since the last turn with this flag.
    pub is_period: bool,
}

/// All parts of a run, and the follower that keeps the table of receivers up to date for them.
pub struct RunParts {
    // Parts in the order of their turns.
    parts: Vec<Box<dyn Part>>,
    // The account of what the parts have done. Its turn comes after those of the parts.
    accounting: Option<Accounting>,
    follower: Option<Follower>,
    node: Node,
    presence: Presence,
    period: Instant,
    is_begun: bool,
}

impl RunParts {
    /// Creates the parts of a run of `node`. Until the first [`turn`](Self::turn), they make no
    /// change that outlives them. `trusted` means that packets count as having checksums where that
    /// cannot be checked.
    ///
    /// # Errors
    /// Fails if the kernel refuses something that a part needs.
    pub fn start(node: &Node, trusted: bool) -> miette::Result<Self> {
        let accounting = node.accounting();
        let follower = node
            .loads_programs()
            .then(|| Follower::start(node.rules(), Options::default()).into_diagnostic())
            .transpose()?;
        // The settings come first, since one of them creates the threads that the other parts need.
        let mut parts: Vec<Box<dyn Part>> = vec![Box::new(Settings::new(node.clone()))];
        match node.linux.mode {
            LinuxMode::Native => {}
            LinuxMode::Predicted => parts.push(Box::new(PredictedPart::start(node)?)),
            LinuxMode::Exact => parts.push(Box::new(Demultiplexing::start(node, trusted)?)),
        }
        Ok(Self {
            parts,
            accounting: accounting.map(Accounting::start).transpose()?,
            follower,
            node: node.clone(),
            presence: Presence::default(),
            period: Instant::now(),
            is_begun: false,
        })
    }

    /// Descriptors that are readable when a part needs a turn.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let follower = self.follower.as_ref().and_then(Follower::descriptor);
        let parts = self.parts.iter().filter_map(|part| part.descriptor());
        follower.into_iter().chain(parts)
    }

    /// Earliest time at which a part needs a turn.
    #[must_use]
    pub fn due(&self) -> Instant {
        let follower = self.follower.as_ref().map(Follower::due);
        let parts = self.parts.iter().filter_map(|part| part.due());
        let accounting = self.accounting.as_ref().map(Accounting::due);
        let all = follower.into_iter().chain(parts).chain(accounting);
        all.fold(self.period, Instant::min)
    }

    /// Gives each part a turn. Returns whether a period has ended.
    ///
    /// # Errors
    /// Fails if receivers cannot be followed any longer. The first turn also fails if an interface
    /// is missing or a part cannot do its work.
    pub fn turn(&mut self, journal: &mut Journal, messages: &mut Messages) -> miette::Result<bool> {
        let now = Instant::now();
        let is_period = now >= self.period;
        if is_period {
            self.period = now + PERIOD;
            match self.presence.look(&self.node, messages) {
                Ok(()) => {}
                Err(error) if self.is_begun => messages.once(&format!("{error:#}")),
                Err(error) => return Err(error),
            }
        }
        let changes = match &mut self.follower {
            Some(follower) => follower.poll(Duration::ZERO).into_diagnostic()?,
            None => Vec::new(),
        };
        let mut turn = Turn {
            journal,
            messages,
            presence: &self.presence,
            receivers: self.follower.as_ref().map(Follower::table),
            changes: &changes,
            is_period,
        };
        for part in &mut self.parts {
            match part.turn(&mut turn) {
                Ok(()) => {}
                Err(_) if self.is_begun && self.presence.is_outdated() => {}
                Err(error) if self.is_begun => turn.messages.once(&format!("{error:#}")),
                Err(error) => return Err(error),
            }
        }
        if let Some(accounting) = &mut self.accounting {
            let given = || self.parts.iter().find_map(|part| part.given());
            if let Err(error) = accounting.turn(turn.receivers, given, turn.messages) {
                turn.messages.once(&format!("{error:#}"));
            }
        }
        self.is_begun = true;
        Ok(is_period)
    }

    /// Status of all parts, each under its name.
    #[must_use]
    pub fn status(&self) -> Value {
        let mut status = Map::new();
        for part in &self.parts {
            status.insert(part.name().to_owned(), part.status());
        }
        if let Some(accounting) = &self.accounting {
            status.insert("account".to_owned(), accounting.status());
        }
        if let Some(follower) = &self.follower {
            status.insert("receivers".to_owned(), follower.status());
        }
        Value::Object(status)
    }
}
