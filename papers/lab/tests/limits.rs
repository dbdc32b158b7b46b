// SPDX-License-Identifier: GPL-3.0-or-later
//! Tests that papers/LIMITS.md lists exactly the goals that are missed.
use std::path::Path;

/// Whether `name` matches the pattern, in which `*` stands for any text.
fn is_of(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((before, after)) => name.strip_prefix(before).is_some_and(|rest| {
            (0..=rest.len()).any(|at| rest.is_char_boundary(at) && is_of(after, &rest[at..]))
        }),
    }
}

/// The ids of the claims in an experiment's file whose goals are known to be missed.
fn missed(path: &Path) -> Vec<String> {
    let file: toml::Table = std::fs::read_to_string(path).unwrap().parse().unwrap();
    let claims = file.get("claim").and_then(toml::Value::as_array);
    let missed = claims
        .into_iter()
        .flatten()
        .filter(|claim| claim.get("today").is_some());
    missed
        .map(|claim| claim["id"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn the_page_of_known_limits_has_each_missed_goal_and_no_other() {
    let papers = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = std::fs::read_to_string(papers.join("LIMITS.md")).unwrap();
    let rows: Vec<[&str; 2]> = page
        .lines()
        .filter_map(|line| {
            let mut cells = line.split('|').map(str::trim).skip(1);
            let (experiment, claims) = (cells.next()?, cells.next()?);
            experiment
                .contains('/')
                .then(|| [experiment, claims.trim_matches('`')])
        })
        .collect();
    let mut used = vec![false; rows.len()];
    let place = weir_lab::experiment::Checkout::find(&papers).unwrap();
    for experiment in place.names() {
        for claim in missed(&papers.join(format!("experiments/{experiment}.toml"))) {
            let mut is_known = false;
            for (index, [of, pattern]) in rows.iter().enumerate() {
                if *of == experiment && is_of(pattern, &claim) {
                    (is_known, used[index]) = (true, true);
                }
            }
            assert!(
                is_known,
                "{experiment} misses {claim}: LIMITS.md has no reason for it"
            );
        }
    }
    for (row, used) in rows.iter().zip(used) {
        assert!(used, "no goal of {row:?} is missed");
    }
}
