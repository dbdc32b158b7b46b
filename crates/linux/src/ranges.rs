// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sets of CPUs and of queues in the notation of Linux.
use std::collections::BTreeSet;

/// Formats `numbers` as in `0-2,5`.
pub(crate) fn ranges(numbers: &BTreeSet<usize>) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for &number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let shown = ranges.iter().map(|(first, last)| {
        if first == last {
            first.to_string()
        } else {
            format!("{first}-{last}")
        }
    });
    shown.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_joined() {
        let shown = |numbers: &[usize]| ranges(&numbers.iter().copied().collect());
        assert_eq!(shown(&[0, 1, 2, 0, 1, 2]), "0-2");
        assert_eq!(shown(&[5, 1, 3, 2]), "1-3,5");
        assert_eq!(shown(&[0]), "0");
        assert_eq!(shown(&[]), "");
    }
}
