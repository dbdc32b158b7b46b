// SPDX-License-Identifier: MIT OR Apache-2.0
//! Of a table that is too long, the rows that matter.

/// The rows of `items` that are shown, in their order: the `most` of the least `worth`.
pub(super) fn fold<T>(items: &[T], most: usize, worth: impl Fn(&T) -> f64) -> Vec<&T> {
    if items.len() <= most {
        return items.iter().collect();
    }
    let mut ranked: Vec<(f64, usize)> = items.iter().map(worth).zip(0..).collect();
    ranked.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut shown: Vec<usize> = ranked
        .into_iter()
        .take(most)
        .map(|(_, index)| index)
        .collect();
    shown.sort_unstable();
    shown
        .into_iter()
        .filter_map(|index| items.get(index))
        .collect()
}

/// What is said below a folded table; nothing if it is whole.
pub(super) fn hidden(shown: usize, of: usize, what: &str, why: &str) -> String {
    if shown >= of {
        return String::new();
    }
    let more = of - shown;
    format!("\n{more} more {what}, {why}: --all shows them")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_of_the_least_worth_stay_in_their_order() {
        let items: Vec<f64> = (0..100).map(|i| f64::from((i * 37) % 100)).collect();
        let shown = fold(&items, 40, |&item| item);
        assert_eq!(shown.len(), 40);
        assert!(shown.iter().all(|&&item| item < 40.0));
        let places: Vec<usize> = shown
            .iter()
            .map(|&shown| items.iter().position(|item| item == shown).unwrap())
            .collect();
        assert!(places.is_sorted());
        assert_eq!(fold(&items, usize::MAX, |&item| item).len(), 100);
        assert_eq!(fold(&items[..40], 40, |&item| item).len(), 40);
    }
}
