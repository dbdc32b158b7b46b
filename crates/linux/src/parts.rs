// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a run consists of: parts that are given turns by one loop, when a descriptor of theirs says
//! that there is something to do, when their time has come, and once a period. Each has a section
//! of its own in the status.
mod accounting;
pub mod exact;
mod predicted;
mod presence;
mod said;
mod settings;

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use miette::IntoDiagnostic as _;
use serde_json::{Map, Value};
use weir_model::LinuxMode;

use crate::account::DemuxCounts;
use crate::receivers::{Follower, ReceiverTable, TableChange};
use crate::settings::Journal;
use crate::system::Node;

use accounting::Accounting;
use exact::Demultiplexing;
use predicted::PredictedPart;
pub use presence::Presence;
pub use said::Said;
use settings::Settings;

/// What no descriptor tells is seen so much later at the latest: an interface that was taken down
/// and up, a CPU that came.
pub const PERIOD: Duration = Duration::from_secs(2);

/// One part of a run. It ends when it is dropped, which happens before the journal puts the
/// settings back.
pub trait Part {
    /// The key of its section in the status.
    fn name(&self) -> &'static str;

    /// Readable when the part is to have a turn, until it has had it.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// When it is to have a turn at the latest; none: once a period will do.
    fn due(&self) -> Option<Instant> {
        None
    }

    /// Does what is to be done. It may be called at any time, and does not wait.
    ///
    /// # Errors
    /// What cannot be done. In the first turn this ends the run; later it is said, once, and tried
    /// again in the next turn.
    fn turn(&mut self, turn: &mut Turn<'_>) -> miette::Result<()>;

    /// Whose packets it has given to the threads of their classes until now; none if it gives none.
    fn given(&self) -> Option<DemuxCounts> {
        None
    }

    /// How it stands.
    fn status(&self) -> Value;
}

/// What a part is given.
pub struct Turn<'a> {
    /// For whatever is changed of the machine.
    pub journal: &'a mut Journal,
    /// For whatever somebody should know.
    pub said: &'a mut Said,
    /// Which of the run's interfaces are there; the others are left alone until they are back,
    /// which is said already.
    pub presence: &'a Presence,
    /// Who receives what; none where no part asks.
    pub receivers: Option<&'a ReceiverTable>,
    /// What is different there since the last turn; all that there is in the first.
    pub changes: &'a [TableChange],
    /// Whether a period is over.
    pub is_period: bool,
}

/// All parts of a run, and who follows the receivers for them.
pub struct RunParts {
    // In the order of their turns.
    parts: Vec<Box<dyn Part>>,
    // Of what the parts have done, so after them.
    accounting: Option<Accounting>,
    follower: Option<Follower>,
    node: Node,
    presence: Presence,
    period: Instant,
    is_begun: bool,
}

impl RunParts {
    /// The parts of a run of `node`. Nothing that outlives them is changed before the first
    /// [`turn`](Self::turn). `trusted` says that packets have their checksums where that cannot be
    /// seen.
    ///
    /// # Errors
    /// When the kernel refuses what one of them needs.
    pub fn start(node: &Node, trusted: bool) -> miette::Result<Self> {
        let accounting = node.accounting();
        let follower = match node.linux.mode {
            LinuxMode::Native if accounting.is_none() => None,
            LinuxMode::Native | LinuxMode::Predicted | LinuxMode::Exact => {
                Some(Follower::start(node.rules(), node.following()).into_diagnostic()?)
            }
        };
        // The settings first: the threads that follow come by one of them.
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

    /// What is readable when there is something to do.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let follower = self.follower.as_ref().and_then(Follower::descriptor);
        let parts = self.parts.iter().filter_map(|part| part.descriptor());
        follower.into_iter().chain(parts)
    }

    /// When there is something to do at the latest.
    #[must_use]
    pub fn due(&self) -> Instant {
        let follower = self.follower.as_ref().map(Follower::due);
        let parts = self.parts.iter().filter_map(|part| part.due());
        let accounting = self.accounting.as_ref().map(Accounting::due);
        let all = follower.into_iter().chain(parts).chain(accounting);
        all.fold(self.period, Instant::min)
    }

    /// Gives each part a turn. Returns whether a period is over.
    ///
    /// # Errors
    /// When receivers cannot be followed any longer; in the first turn, when an interface is not
    /// there or a part cannot do what it is to.
    pub fn turn(&mut self, journal: &mut Journal, said: &mut Said) -> miette::Result<bool> {
        let now = Instant::now();
        let is_period = now >= self.period;
        if is_period {
            self.period = now + PERIOD;
            match self.presence.look(&self.node, said) {
                Ok(()) => {}
                Err(error) if self.is_begun => said.once(&format!("{error:#}")),
                Err(error) => return Err(error),
            }
        }
        let changes = match &mut self.follower {
            Some(follower) => follower.poll(Duration::ZERO).into_diagnostic()?,
            None => Vec::new(),
        };
        let mut turn = Turn {
            journal,
            said,
            presence: &self.presence,
            receivers: self.follower.as_ref().map(Follower::table),
            changes: &changes,
            is_period,
        };
        for part in &mut self.parts {
            match part.turn(&mut turn) {
                Ok(()) => {}
                Err(_) if self.is_begun && self.presence.is_outdated() => {}
                Err(error) if self.is_begun => turn.said.once(&format!("{error:#}")),
                Err(error) => return Err(error),
            }
        }
        if let Some(accounting) = &mut self.accounting {
            let given = || self.parts.iter().find_map(|part| part.given());
            if let Err(error) = accounting.turn(turn.receivers, given, turn.said) {
                turn.said.once(&format!("{error:#}"));
            }
        }
        self.is_begun = true;
        Ok(is_period)
    }

    /// How all of them stand, each under its name.
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
