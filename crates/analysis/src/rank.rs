// SPDX-License-Identifier: MIT OR Apache-2.0
//! The order in which the processor runs work: interrupts before tasks, and an order within each
//! kind.

use weir_model::{Cpu, Level, Nesting, TaskModel};

/// A position in the order in which the processor runs work. The greater rank runs first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    /// The class: interrupts exceed tasks.
    class: RankTier,
    /// The urgency of a task, or the preemption group of an interrupt.
    group: u32,
    /// The order inside a group. The chip's own order counts downwards, so it is inverted here.
    inside: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum RankTier {
    Task,
    Interrupt,
}

/// A rank, and the threshold that a rank has to exceed to preempt its holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PreemptionRank {
    /// The rank that decides which waiting unit starts first.
    pub rank: Rank,
    /// The rank that decides what may preempt the unit once it runs. It is not below `rank`.
    pub threshold: Rank,
}

impl PreemptionRank {
    /// The ranks of an interrupt.
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

    /// The ranks of a task.
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

    /// Whether `other` runs before this unit when both wait. Units of equal rank may run in either
    /// order.
    #[must_use]
    pub fn is_delayed_by(&self, other: &Self) -> bool {
        other.rank >= self.rank
    }

    /// Whether `other` can preempt this unit. In practice the second of two equal units waits, but
    /// the analysis could only rely on that with a promise about their order.
    #[must_use]
    pub fn is_preempted_by(&self, other: &Self) -> bool {
        other.rank > self.threshold || (other.rank == self.rank && self.threshold == self.rank)
    }

    /// Whether one run of the less urgent `other` can keep this unit waiting, once the run has
    /// begun.
    #[must_use]
    pub fn is_blocked_by(&self, other: &Self) -> bool {
        other.rank < self.rank && other.threshold >= self.rank
    }
}
