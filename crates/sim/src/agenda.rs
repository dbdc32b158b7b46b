// SPDX-License-Identifier: MIT OR Apache-2.0
//! What happens next: one instant per thing that can happen, the earliest on top.

/// Never.
pub(crate) const NEVER: u64 = u64::MAX;

/// A tournament of slots by their instants. Everything that can happen has a slot of its own, so nothing is ever allocated: setting a slot costs the logarithm
/// of their number, the earliest is known. Of slots at the same instant the lowest comes first.
#[derive(Debug)]
pub(crate) struct Agenda {
    /// Of each slot its instant; as many as a power of two.
    at: Vec<u64>,
    /// Of each match its winner; the final is number 1, the matches that `n` feeds come from are 2n and 2n + 1.
    winners: Vec<u32>,
}

impl Agenda {
    /// An agenda of so many slots, at which nothing happens.
    pub fn new(slots: usize) -> Self {
        let leaves = slots.next_power_of_two().max(2);
        let mut agenda = Self {
            at: vec![NEVER; leaves],
            winners: vec![0; leaves],
        };
        for game in (1..leaves).rev() {
            agenda.play(game);
        }
        agenda
    }

    fn winner(&self, game: usize) -> u32 {
        let leaves = self.at.len();
        if game >= leaves {
            (game - leaves) as u32
        } else {
            self.winners[game]
        }
    }

    fn play(&mut self, game: usize) -> bool {
        let (left, right) = (self.winner(2 * game), self.winner(2 * game + 1));
        let winner = if self.at[right as usize] < self.at[left as usize] {
            right
        } else {
            left
        };
        let changed = self.winners[game] != winner;
        self.winners[game] = winner;
        changed
    }

    /// From now on `slot` happens at `at`, or [`NEVER`].
    pub fn set(&mut self, slot: usize, at: u64) {
        if self.at[slot] == at {
            return;
        }
        self.at[slot] = at;
        let mut game = (self.at.len() + slot) / 2;
        while game > 0 {
            // Above a match that another slot still wins, nothing has changed.
            if !self.play(game) && self.winners[game] as usize != slot {
                return;
            }
            game /= 2;
        }
    }

    /// The earliest instant, and its slot.
    pub fn earliest(&self) -> (u64, usize) {
        let slot = self.winners[1] as usize;
        (self.at[slot], slot)
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
