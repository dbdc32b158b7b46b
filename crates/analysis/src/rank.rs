// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who runs before whom: interrupts before tasks, and each among their own as the processor orders
//! them.

use weir_model::{Cpu, Level, Nesting, TaskModel};

/// A place in the order of the processor. The greater runs first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    /// Tasks, then interrupts.
    class: RankTier,
    /// Tasks: the urgency. Interrupts: the preemption group.
    group: u32,
    /// Inside a group; the chip's order counts downwards.
    inside: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum RankTier {
    Task,
    Interrupt,
}

/// A rank, and what it takes to preempt who has it: a greater rank than the threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PreemptionRank {
    /// Decides who is started.
    pub rank: Rank,
    /// Decides who may interrupt it once it runs; not below the rank.
    pub threshold: Rank,
}

impl PreemptionRank {
    /// The place of an interrupt.
    #[must_use]
    pub fn of_interrupt(cpu: &Cpu, level: &Level) -> Self {
        let (group, threshold_group) = match cpu.nesting {
            Nesting::Flat => (0, u32::MAX),
            Nesting::Grouped => (level.group, level.group),
        };
        Self {
            rank: Rank {
                class: RankTier::Interrupt,
                group,
                inside: u32::MAX - level.order,
            },
            threshold: Rank {
                class: RankTier::Interrupt,
                group: threshold_group,
                inside: u32::MAX,
            },
        }
    }

    /// The place of a task.
    #[must_use]
    pub fn of_task(cpu: &Cpu, urgency: u8) -> Self {
        let rank = Rank {
            class: RankTier::Task,
            group: u32::from(urgency),
            inside: 0,
        };
        Self {
            rank,
            threshold: match cpu.tasks {
                TaskModel::Preemptive => rank,
                TaskModel::Cooperative => Rank {
                    class: RankTier::Task,
                    group: u32::MAX,
                    inside: 0,
                },
            },
        }
    }

    /// Does `other` run before this when both wait? Equals may come in either order.
    #[must_use]
    pub fn is_delayed_by(&self, other: &Self) -> bool {
        other.rank >= self.rank
    }

    /// Can `other` interrupt this? Of equals the second waits in practice, but counting on it would
    /// need a promise of their order.
    #[must_use]
    pub fn is_preempted_by(&self, other: &Self) -> bool {
        other.rank > self.threshold || (other.rank == self.rank && self.threshold == self.rank)
    }

    /// Can this be kept waiting by one run of the less urgent `other`, once that runs?
    #[must_use]
    pub fn is_blocked_by(&self, other: &Self) -> bool {
        other.rank < self.rank && other.threshold >= self.rank
    }
}
