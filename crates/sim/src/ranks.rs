// SPDX-License-Identifier: MIT OR Apache-2.0
//! A set of ranks with fast access to the highest one.

/// A set of ranks; rank 0 is the highest. Each operation takes time proportional to the base-64
/// logarithm of the number of ranks.
#[derive(Debug)]
pub(crate) struct Ranks {
    /// Level 0 has a bit for each rank. Each further level has a bit for each word of the level
    /// below, which is set if that word is not 0. The last level is a single word.
    levels: Vec<Vec<u64>>,
}

impl Ranks {
    /// Makes an empty set for the ranks below `count`.
    pub fn new(count: usize) -> Self {
        let mut levels = Vec::new();
        let mut words = count.div_ceil(64).max(1);
        loop {
            levels.push(vec![0; words]);
            if words == 1 {
                return Self { levels };
            }
            words = words.div_ceil(64);
        }
    }

    /// Adds a rank.
    pub fn insert(&mut self, mut rank: usize) {
        for level in &mut self.levels {
            let word = &mut level[rank / 64];
            let was_empty = *word == 0;
            *word |= 1 << (rank % 64);
            if !was_empty {
                return;
            }
            rank /= 64;
        }
    }

    /// Removes a rank.
    pub fn remove(&mut self, mut rank: usize) {
        for level in &mut self.levels {
            let word = &mut level[rank / 64];
            *word &= !(1 << (rank % 64));
            if *word != 0 {
                return;
            }
            rank /= 64;
        }
    }

    /// Returns the highest rank in the set.
    pub fn first(&self) -> Option<usize> {
        let mut at = 0;
        for level in self.levels.iter().rev() {
            let word = level[at];
            if word == 0 {
                return None;
            }
            at = at * 64 + word.trailing_zeros() as usize;
        }
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn the_first_is_the_lowest_number(
            count in 1_usize..9000,
            changes in proptest::collection::vec((0_usize..9000, any::<bool>()), 1..200),
        ) {
            let mut ranks = Ranks::new(count);
            let mut model = BTreeSet::new();
            for (rank, add) in changes {
                let rank = rank % count;
                if add {
                    ranks.insert(rank);
                    model.insert(rank);
                } else {
                    ranks.remove(rank);
                    model.remove(&rank);
                }
                prop_assert_eq!(ranks.first(), model.first().copied());
            }
        }
    }
}
