// SPDX-License-Identifier: MIT OR Apache-2.0
//! Formats claims as a table for the terminal.
use comfy_table::presets::NOTHING;
use comfy_table::{Attribute, Cell, CellAlignment, Color, ContentArrangement, Table};

use crate::number::short;
use crate::terminal::width;
use crate::{Claim, ClaimVerdict};

/// Returns a table with a line per claim: the measured value beside the goal and the paper's value.
/// Below it, unmet claims are explained in words. The table is at most as wide as the terminal, or
/// 100 columns. With `coloured`, unmet claims are red; without colours, a word marks them.
#[must_use]
pub fn claims_table(claims: &[Claim], coloured: bool) -> String {
    let mut table = Table::new();
    table
        .load_preset(NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(width())
        .set_header(["claim", "paper", "goal", "measured", "unit", ""]);
    if coloured {
        table.enforce_styling();
    } else {
        table.force_no_tty();
    }
    for claim in claims {
        let (word, colour) = match claim.verdict() {
            ClaimVerdict::Met => ("met", Color::Green),
            ClaimVerdict::Shown => ("shown", Color::Reset),
            ClaimVerdict::Missed => ("missed", Color::Yellow),
            ClaimVerdict::NotMet => ("NOT MET", Color::Red),
        };
        let right = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
        let mut verdict = Cell::new(word).fg(colour);
        if !claim.is_met() {
            verdict = verdict.add_attribute(Attribute::Bold);
        }
        table.add_row([
            Cell::new(&claim.id),
            right(claim.paper.map_or_else(|| "-".to_owned(), short)),
            right(claim.goal.to_string()),
            right(short(claim.measured)),
            Cell::new(&claim.unit),
            verdict,
        ]);
    }
    let unmet = claims.iter().filter_map(|claim| {
        let (id, what) = (&claim.id, &claim.what);
        match (claim.verdict(), claim.today) {
            (ClaimVerdict::Missed, Some(today)) => {
                Some(format!("missed, as known (today {today}): {id}: {what}"))
            }
            (ClaimVerdict::NotMet, Some(today)) => {
                Some(format!("not met, and behind today's {today}: {id}: {what}"))
            }
            (ClaimVerdict::NotMet, None) => Some(format!("not met: {id}: {what}")),
            (ClaimVerdict::Met, Some(_)) => Some(format!(
                "met, though its `today` says that it is missed: {id}"
            )),
            _ => None,
        }
    });
    table
        .lines()
        .chain(unmet)
        .map(|line| line.trim_end().to_owned())
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Goal;

    fn claims() -> Vec<Claim> {
        [5.0, 4.0]
            .into_iter()
            .map(|measured| Claim {
                id: "paper.bursty16_optimised.lost_below_limit".to_owned(),
                what: "requests that only the limiter loses".to_owned(),
                unit: "points".to_owned(),
                paper: Some(10.0),
                goal: Goal::AtMost(4.6),
                today: None,
                measured,
            })
            .collect()
    }

    #[test]
    fn it_is_narrow_enough_and_says_what_is_not_met() {
        let table = claims_table(&claims(), false);
        assert!(
            table.lines().all(|line| line.chars().count() <= 100),
            "{table}"
        );
        assert_eq!(table.matches("NOT MET").count(), 1, "{table}");
        assert_eq!(table.matches("requests that only").count(), 1, "{table}");
        assert_eq!(table.lines().count(), 4, "{table}");
        assert!(
            table.contains("≤ 4.6") && !table.contains('\u{1b}'),
            "{table}"
        );
    }

    #[test]
    fn what_is_missed_as_known_is_told() {
        let mut known = claims();
        known[0].today = Some(Goal::AtMost(5.5));
        let table = claims_table(&known, false);
        assert!(!table.contains("NOT MET"), "{table}");
        assert!(table.contains("missed, as known (today ≤ 5.5)"), "{table}");
        known[0].measured = 6.0;
        let table = claims_table(&known, false);
        assert!(table.contains("behind today's ≤ 5.5"), "{table}");
        known[0].measured = 4.0;
        let table = claims_table(&known, false);
        assert!(table.contains("though its `today`"), "{table}");
    }

    #[test]
    fn colours_are_there_when_asked_for() {
        assert!(claims_table(&claims(), true).contains('\u{1b}'));
    }
}
