// SPDX-License-Identifier: MIT OR Apache-2.0
//! The order of the processor: interrupts before tasks, and each kind among itself.

use weir_model::{Cpu, Level, Nesting, TaskModel};

/// A place in the order of the processor. The greater runs first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    /// Tasks, then interrupts.
    class: RankTier,
    /// The urgency of a task, or the preemption group of an interrupt.
    group: u32,
    /// The order inside a group; the chip's own order counts downwards.
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
    /// The rank that decides who is started.
    pub rank: Rank,
    /// The rank that decides who may interrupt it once it runs; not below the first.
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

    /// Does `other` run before this when both wait? Equals may come in either order.
    #[must_use]
    pub fn is_delayed_by(&self, other: &Self) -> bool {
        other.rank >= self.rank
    }

    /// Can `other` interrupt this? The second of two equals waits in practice, but to count on it
    /// would need a promise about their order.
    #[must_use]
    pub fn is_preempted_by(&self, other: &Self) -> bool {
        other.rank > self.threshold || (other.rank == self.rank && self.threshold == self.rank)
    }

    /// Can one run of the less urgent `other` keep this waiting, once it has begun?
    #[must_use]
    pub fn is_blocked_by(&self, other: &Self) -> bool {
        other.rank < self.rank && other.threshold >= self.rank
    }
}
