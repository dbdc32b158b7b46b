// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chooses the urgencies that get a class of their own, since there are at most eight classes, and
//! the class of each receiver.
use std::collections::BTreeSet;

use super::layout::CLASSES;
use crate::urgency::Urgency;

/// Chooses the urgencies of the classes, in ascending order. The first class is that of ordinary
/// processes. The candidates are the urgencies of the existing classes (`now`), those that the
/// system file has `stated`, and those of the receivers that are `present`. If there are more than
/// eight, the urgencies that are neither stated nor present are removed first. The least urgent
/// ones that are not stated follow, and then the least urgent ones. There are never fewer classes
/// than `now`, so that threads are not ended and started with each receiver.
#[must_use]
pub fn classes(
    now: &[Urgency],
    stated: &BTreeSet<Urgency>,
    present: &BTreeSet<Urgency>,
) -> Vec<Urgency> {
    let mut all: Vec<Urgency> = stated.iter().chain(present).chain(now).copied().collect();
    all.push(Urgency::ORDINARY);
    all.sort_unstable();
    all.dedup();
    let worth = |urgency: &Urgency| {
        (
            *urgency == Urgency::ORDINARY,
            stated.contains(urgency),
            present.contains(urgency),
            *urgency,
        )
    };
    while all.len() > CLASSES {
        let least = (0..all.len()).min_by_key(|at| worth(&all[*at]));
        all.remove(least.unwrap_or(0));
    }
    all
}

/// The class for a receiver of this urgency: the class with the same urgency, or else the next
/// lower one. A bottom half must not be more urgent than its receiver. The first of `classes` is
/// that of ordinary processes.
#[must_use]
pub fn class_of(classes: &[Urgency], urgency: Urgency) -> u8 {
    let above = classes.partition_point(|class| *class <= urgency);
    // The cast is exact, since there are at most eight classes.
    above.saturating_sub(1) as u8
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn urgencies(numbers: &[u8]) -> Vec<Urgency> {
        numbers
            .iter()
            .map(|one| Urgency::new(*one).unwrap())
            .collect()
    }

    fn set(numbers: &[u8]) -> BTreeSet<Urgency> {
        urgencies(numbers).into_iter().collect()
    }

    #[test]
    fn each_urgency_has_a_class_while_there_is_room() {
        let first = classes(&[], &set(&[60, 80]), &set(&[]));
        assert_eq!(first, urgencies(&[0, 60, 80]));
        let second = classes(&first, &set(&[60, 80]), &set(&[7]));
        assert_eq!(second, urgencies(&[0, 7, 60, 80]));
        assert_eq!(classes(&second, &set(&[60, 80]), &set(&[])), second);
        assert_eq!(class_of(&second, Urgency::new(60).unwrap()), 2);
        assert_eq!(class_of(&second, Urgency::new(59).unwrap()), 1);
        assert_eq!(class_of(&second, Urgency::ORDINARY), 0);
    }

    #[test]
    fn what_nobody_has_goes_first_and_what_the_file_says_last() {
        let now = urgencies(&[0, 10, 20, 30, 40, 50, 60, 70]);
        let stated = set(&[10]);
        let present = set(&[20, 30, 40, 50, 70, 80]);
        assert_eq!(
            classes(&now, &stated, &present),
            urgencies(&[0, 10, 20, 30, 40, 50, 70, 80])
        );
        let present = set(&[20, 30, 40, 50, 60, 70, 80, 90]);
        assert_eq!(
            classes(&now, &stated, &present),
            urgencies(&[0, 10, 40, 50, 60, 70, 80, 90])
        );
        let stated = set(&[1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(
            classes(&[], &stated, &present),
            urgencies(&[0, 3, 4, 5, 6, 7, 8, 9])
        );
    }

    proptest! {
        #[test]
        fn no_bottom_half_is_above_its_receiver(
            now in prop::collection::btree_set(0_u8..=99, 0..=8),
            stated in prop::collection::btree_set(0_u8..=99, 0..12),
            present in prop::collection::btree_set(0_u8..=99, 0..12),
        ) {
            let urgencies = |numbers: &BTreeSet<u8>| set(&numbers.iter().copied().collect::<Vec<_>>());
            let now = classes(&urgencies(&now).into_iter().collect::<Vec<_>>(), &set(&[]), &set(&[]));
            let (stated, present) = (urgencies(&stated), urgencies(&present));
            let all = classes(&now, &stated, &present);
            prop_assert!(all.len() <= CLASSES && all.len() >= now.len());
            prop_assert!(all.windows(2).all(|pair| pair[0] < pair[1]));
            let fits = [&stated, &present].into_iter().flatten().chain(&now).collect::<BTreeSet<_>>().len() <= CLASSES;
            for urgency in &present {
                let class = all[usize::from(class_of(&all, *urgency))];
                prop_assert!(class <= *urgency);
                prop_assert!(!fits || class == *urgency);
            }
        }
    }
}
