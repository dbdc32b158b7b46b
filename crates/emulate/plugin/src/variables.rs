// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tracks the increase of the guest's variables.
use std::collections::BTreeMap;

use crate::plan::Variable;

/// The guest's memory.
pub trait Memory {
    /// Returns the unsigned number of 1, 2, 4 or 8 bytes at this address. `None` if there is no
    /// memory.
    fn number(&self, address: u32, bytes: u8) -> Option<u64>;
}

/// The interval at which variables of 1 or 2 bytes are read, in nanoseconds, so that wrap-arounds
/// are detected: 1,250 instructions of 8 ns.
const LOOK_NS: u64 = 10_000;

/// The tracked variables.
#[derive(Debug)]
pub struct Variables {
    followed: Vec<WatchedVariable>,
    next: Option<u64>,
}

#[derive(Debug)]
struct WatchedVariable {
    variable: Variable,
    last: u64,
    grown: i64,
}

impl Variables {
    /// Makes a tracker of these variables that starts at `begin`.
    #[must_use]
    pub fn new(variables: &[Variable], begin: u64) -> Self {
        let followed = variables.iter().map(|variable| WatchedVariable {
            variable: variable.clone(),
            last: 0,
            grown: 0,
        });
        Self {
            followed: followed.collect(),
            next: Some(begin),
        }
    }

    /// Returns the time at which the variables have to be read next.
    #[must_use]
    pub fn next(&self) -> Option<u64> {
        self.next
    }

    /// Reads all variables if that is due. The first read gives the initial values.
    pub fn look_if_due(&mut self, now: u64, memory: &impl Memory) {
        if self.next.is_none_or(|due| now < due) {
            return;
        }
        self.look(memory);
        let small = |one: &WatchedVariable| one.variable.bytes <= 2;
        self.next = self
            .followed
            .iter()
            .any(small)
            .then(|| now.saturating_add(LOOK_NS));
    }

    /// Reads all variables.
    pub fn look(&mut self, memory: &impl Memory) {
        for one in &mut self.followed {
            let variable = &one.variable;
            let Some(value) = memory.number(variable.address, variable.bytes) else {
                continue;
            };
            // The difference is signed and has the variable's size.
            let unused = 64 - 8 * u32::from(variable.bytes);
            #[expect(clippy::cast_possible_wrap, reason = "that is what is wanted")]
            let difference = ((value.wrapping_sub(one.last) << unused) as i64) >> unused;
            one.grown = one.grown.wrapping_add(difference);
            one.last = value;
        }
    }

    /// Makes the values of the last read the initial values.
    pub fn clear(&mut self) {
        for one in &mut self.followed {
            one.grown = 0;
        }
    }

    /// Returns the increase of each variable. 0 if it is below its initial value.
    #[must_use]
    pub fn growth(&self) -> BTreeMap<String, u64> {
        let grown = self.followed.iter().map(|one| {
            let grown = u64::try_from(one.grown).unwrap_or(0);
            (one.variable.name.clone(), grown)
        });
        grown.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Same(u64);

    impl Memory for Same {
        fn number(&self, address: u32, _bytes: u8) -> Option<u64> {
            (address != 0).then_some(self.0)
        }
    }

    fn variables(bytes: u8) -> Variables {
        let variable = |name: &str, address| Variable {
            name: name.to_owned(),
            address,
            bytes,
        };
        Variables::new(&[variable("there", 4), variable("nowhere", 0)], 500)
    }

    #[test]
    fn a_small_variable_may_wrap_around() {
        let mut all = variables(1);
        assert_eq!(all.next(), Some(500));
        all.look_if_due(499, &Same(9));
        all.look_if_due(507, &Same(200));
        all.clear();
        assert_eq!(all.next(), Some(507 + LOOK_NS));
        all.look_if_due(508, &Same(0));
        all.look_if_due(20_000, &Same(40));
        all.look(&Same(150));
        assert_eq!(
            all.growth(),
            [("there".to_owned(), 206), ("nowhere".to_owned(), 0)].into()
        );
    }

    #[test]
    fn a_large_one_is_looked_at_twice() {
        let mut all = variables(8);
        all.look_if_due(500, &Same(u64::MAX));
        all.clear();
        assert_eq!(all.next(), None);
        all.look(&Same(4));
        assert_eq!(all.growth()["there"], 5);
        all.look(&Same(2));
        all.look(&Same(u64::MAX - 4));
        assert_eq!(all.growth()["there"], 0, "less than at the beginning");
    }
}
