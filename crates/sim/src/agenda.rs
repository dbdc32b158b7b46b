// SPDX-License-Identifier: MIT OR Apache-2.0
//! The event queue: one slot for each kind of event, with the earliest event on top.

/// The instant of an event that never happens.
pub(crate) const NEVER: u64 = u64::MAX;

/// A tournament tree over slots, ordered by instant. Every possible event has a slot of its own, so
/// the agenda never allocates memory during a run. Setting a slot takes time logarithmic in the
/// number of slots; finding the earliest takes constant time. Among slots with the same instant the
/// lowest index comes first.
#[derive(Debug)]
pub(crate) struct Agenda {
    /// The winner of each match, as a heap in an array. Element 1 is the overall winner; match `n`
    /// is played between elements `2n` and `2n + 1`. The second half of the array holds the slots
    /// themselves.
    winners: Vec<Winner>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Winner {
    at: u64,
    slot: u32,
}

impl Agenda {
    /// Makes an agenda with `slots` slots, all set to [`NEVER`].
    pub fn new(slots: usize) -> Self {
        let leaves = slots.next_power_of_two().max(2);
        let nothing = Winner { at: NEVER, slot: 0 };
        let mut winners = vec![nothing; 2 * leaves];
        for (slot, winner) in winners[leaves..].iter_mut().enumerate() {
            winner.slot = slot as u32;
        }
        for game in (1..leaves).rev() {
            winners[game] = winners[2 * game];
        }
        Self { winners }
    }

    /// Sets the instant of `slot` to `at`, or to [`NEVER`].
    #[inline]
    pub fn set(&mut self, slot: usize, at: u64) {
        let mut game = self.winners.len() / 2 + slot;
        self.winners[game].at = at;
        while game > 1 {
            game /= 2;
            let (left, right) = (self.winners[2 * game], self.winners[2 * game + 1]);
            let winner = if right.at < left.at { right } else { left };
            if self.winners[game] == winner {
                return;
            }
            self.winners[game] = winner;
        }
    }

    /// Returns the earliest instant and its slot.
    #[inline]
    pub fn earliest(&self) -> (u64, usize) {
        let Winner { at, slot } = self.winners[1];
        (at, slot as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_earliest_of_all_slots_is_on_top(
            slots in 1_usize..40,
            changes in proptest::collection::vec((0_usize..40, prop_oneof![0_u64..30, Just(NEVER)]), 1..200),
        ) {
            let mut agenda = Agenda::new(slots);
            let mut model = vec![NEVER; slots];
            for (slot, at) in changes {
                let slot = slot % slots;
                agenda.set(slot, at);
                model[slot] = at;
                let earliest = model.iter().copied().min().unwrap_or(NEVER);
                prop_assert_eq!(agenda.earliest().0, earliest);
                if earliest != NEVER {
                    prop_assert_eq!(Some(agenda.earliest().1), model.iter().position(|&at| at == earliest));
                }
            }
        }
    }
}
