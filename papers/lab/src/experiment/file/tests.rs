// SPDX-License-Identifier: GPL-3.0-or-later
//! Tests that invalid files of experiments are rejected, and that messages point at the right
//! place.
use super::*;
use crate::experiment::kinds::KINDS;

const GOOD: &str = r#"
title = "t"
paper = "regehr2005"
section = "6.2"
about = "a"
kind = "firmware"
claim = [{ id = "c.strict", what = "w", unit = "points", at_most = 4.6 }]
[run]
clock = "4MHz"
warmup = "1ms"
length = "10ms"
[flavour.c]
[[variant]]
id = "c.none"
role = "unprotected"
[[variant]]
id = "c.strict"
role = "limited"
[[panel]]
title = "p"
curves = [{ of = "c.strict", label = "strict", colour = "vermilion" }]
[firmware]
measure = [
    { id = "VARIANT", of = ["limited"], overhead = true, value = "VARIANT.lost.max" },
    { id = "VARIANT.adversary", of = ["c.limited"], value = "VARIANT.lost.last" },
    { id = "VARIANT.extra_cycles", of = ["hardware"], value = "VARIANT.lost.min" },
]
[[firmware.flood]]
rates = ["1000 * x"]
phases = ["100cycles"]
x = { title = "kHz", values = [1] }
series = [
    { id = "VARIANT", y = "%", value = "100 * VARIANT.lost" },
    { id = "VARIANT.lost", value = "100 * VARIANT.lost" },
]
"#;

/// Replaces a text in a valid file. Returns the error's message, its help, and the text that it
/// points at.
fn refused(from: &str, to: &str) -> (String, String) {
    assert!(GOOD.contains(from), "{from}");
    let text = GOOD.replacen(from, to, 1);
    match ExperimentFile::parse(KINDS, "fig9.toml", &text).unwrap_err() {
        ExperimentError::File(error) => {
            let place = error
                .span
                .map_or("", |span| &text[span.offset()..span.offset() + span.len()]);
            let help = error.help.unwrap_or_default();
            (format!("{} | {help}", error.what), place.to_owned())
        }
        other => panic!("{other}"),
    }
}

#[test]
fn a_good_file_is_read() {
    let file = ExperimentFile::parse(KINDS, "fig9.toml", GOOD).unwrap();
    assert!(file.setup.claims("c.strict") && !file.setup.claims("c.bursty4"));
}

#[test]
fn an_unknown_key_is_pointed_at() {
    let (message, place) = refused("warmup = ", "warm_up = ");
    assert!(
        message.contains("warm_up") && place.contains("warm_up"),
        "{message} {place}"
    );
    let (message, _) = refused("unit = ", "units = ");
    assert!(message.contains("units"), "{message}");
}

#[test]
fn a_claim_that_nothing_measures_is_pointed_at() {
    let (message, place) = refused("id = \"c.strict\"", "id = \"c.strikt\"");
    assert!(
        message.contains("c.strikt") && message.contains("c.strict.adversary"),
        "{message}"
    );
    assert_eq!(place, "\"c.strikt\"");
}

#[test]
fn a_claim_states_one_goal() {
    for goal in [
        "",
        ", at_most = 1, equal = 2",
        ", at_most = 1, shown = true",
    ] {
        let (message, place) = refused(", at_most = 4.6", goal);
        assert!(message.contains("one goal"), "{message}");
        assert_eq!(place, "\"c.strict\"");
    }
}

#[test]
fn today_is_a_value_that_misses_the_goal() {
    for today in ["4", "4.6"] {
        let (message, place) = refused("at_most = 4.6", &format!("at_most = 4.6, today = {today}"));
        assert!(message.contains("`today`"), "{message}");
        assert_eq!(place, "\"c.strict\"");
    }
}

#[test]
fn a_quantity_is_checked_where_it_stands() {
    let (message, place) = refused("\"4MHz\"", "\"4\"");
    assert!(message.contains("MHz"), "{message}");
    assert_eq!(place, "\"4\"");
}

#[test]
fn names_of_other_things_are_checked() {
    let (message, _) = refused("kind = \"firmware\"", "kind = \"firm\"");
    assert!(message.contains("`firmware`, `constants`"), "{message}");
    let (message, _) = refused("id = \"c.none\"", "id = \"d.none\"");
    assert!(message.contains("no flavour `d`"), "{message}");
    let (message, place) = refused("of = \"c.strict\"", "of = \"c.weak\"");
    assert!(message.contains("there are: c.none, c.strict"), "{message}");
    assert_eq!(place, "\"c.weak\"");
    let (message, _) = refused("id = \"c.none\"", "id = \"c.strict\"");
    assert!(message.contains("two variants"), "{message}");
}

#[test]
fn a_board_is_one_that_there_is() {
    let (message, place) = refused("title = ", "board = \"mps3\"\ntitle = ");
    assert!(
        message.contains("the boards are atmega128, soc and mps2-an385"),
        "{message}"
    );
    assert_eq!(place, "\"mps3\"");
    let text = GOOD.replacen("title = ", "board = \"soc\"\ntitle = ", 1);
    assert_eq!(
        ExperimentFile::parse(KINDS, "fig9.toml", &text)
            .unwrap()
            .setup
            .board,
        EmulatedBoard::SOC
    );
}

#[test]
fn a_limiter_in_silicon_is_one_of_its_flavour_and_on_soc() {
    let variant = |id: &str| format!("[[variant]]\nid = \"{id}\"\nrole = \"hardware\"\n[[panel]]");
    let (message, place) = refused("[[panel]]", &variant("c.hardware"));
    assert!(message.contains("only with board = \"soc\""), "{message}");
    assert_eq!(place, "\"c.hardware\"");
    let on_soc = GOOD.replacen("title = ", "board = \"soc\"\ntitle = ", 1);
    let with = |id: &str| {
        ExperimentFile::parse(
            KINDS,
            "fig9.toml",
            &on_soc.replacen("[[panel]]", &variant(id), 1),
        )
    };
    let file = with("c.hardware").unwrap();
    let claims = file.kind.known(&file.setup).claims;
    assert!(claims.contains("c.hardware.extra_cycles") && !claims.contains("c.hardware"));
    assert!(with("c.silicon").is_err());
}

#[test]
fn a_claim_can_be_about_each_variant_that_is_meant() {
    let text = GOOD.replacen(
        "id = \"c.strict\", what",
        "id = \"VARIANT.adversary\", of = [\"limited\"], what",
        1,
    );
    let file = ExperimentFile::parse(KINDS, "fig9.toml", &text).unwrap();
    assert!(file.setup.claims("c.strict.adversary") && !file.setup.claims("c.none.adversary"));
    let (message, place) = refused(
        "id = \"c.strict\", what",
        "id = \"VARIANT.weak\", of = [\"limited\"], what",
    );
    assert!(message.contains("c.strict.weak"), "{message}");
    assert_eq!(place, "\"VARIANT.weak\"");
}

#[test]
fn an_ideal_limiter_has_a_limit_and_no_other_variant_has() {
    for (from, to) in [
        ("role = \"limited\"", "role = \"ideal\""),
        ("role = \"limited\"", "role = \"limited\"\nlimit = \"4kHz\""),
    ] {
        let (message, place) = refused(from, to);
        assert!(message.contains("`limit`"), "{message}");
        assert_eq!(place, "\"c.strict\"");
    }
}

#[test]
fn a_panel_is_about_all_variants_or_about_those_it_names() {
    let node = r#"
title = "t"
paper = "behnke2021"
section = "V"
about = "a"
kind = "node"
claim = []
[node]
windows = 1
seeds = [1]
x = { title = "x", values = [5, 6] }
series = [{ id = "VARIANT.late", y = "%", value = "VARIANT.late_jobs" }]
variant = [
    { id = "a", packets = "simulated", pattern = "1kHz", label = "one", colour = "blue" },
    { id = "b", packets = "simulated", pattern = "1kHz", label = "two", colour = "green" },
]
[[panel]]
title = "p"
"#;
    let parse = |panel: &str| ExperimentFile::parse(KINDS, "fig9.toml", &format!("{node}{panel}"));
    for (panel, labels) in [
        (r#"each = "late""#, &["one", "two"][..]),
        (
            r#"each = "late"
        of = ["b"]"#,
            &["two"],
        ),
    ] {
        let file = parse(panel).unwrap();
        let curves = file.panel[0].curves.iter();
        assert_eq!(curves.map(|curve| &curve.label).collect::<Vec<_>>(), labels);
    }
    for (panel, message) in [
        (
            r#"each = "late"
        of = ["c"]"#,
            "`c` is no variant",
        ),
        (
            r#"each = "late"
        of = ["a", "a"]"#,
            "stands here twice",
        ),
        (
            r#"curves = [{ of = "a.late", label = "a", colour = "blue" }]
        of = ["a"]"#,
            "the panel has no `each`",
        ),
    ] {
        let error = parse(panel).unwrap_err();
        assert!(error.to_string().contains(message), "{panel}: {error}");
    }
}
