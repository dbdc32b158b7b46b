// SPDX-License-Identifier: GPL-3.0-or-later
//! Tests of the experiments in the repository, and of how a kind is added.
mod sum_kind;

use super::*;

#[test]
fn every_experiment_of_the_repository_is_well_formed() {
    let place = Checkout::of_this_repository();
    let names = place.names();
    assert!(names.len() >= 5, "{names:?}");
    for name in names {
        if let Err(error) = Experiment::load(&place, &name) {
            panic!("{name}: {:?}", miette::Report::new(error));
        }
    }
}

const GOOD: &str = r#"
title = "t"
paper = "regehr2005"
section = "1"
about = "a"
kind = "made-up"
claim = [{ id = "sum", what = "w", unit = "1", paper = 5, at_most = 6 }]
[made-up]
values = [1.5, 2.5, 2]
[[panel]]
title = "p"
curves = [{ of = "values", label = "values", colour = "blue" }]
"#;

/// Parses an experiment from this text. The kind may be the made-up one of these tests.
fn read(text: &str) -> Result<Experiment, ExperimentError> {
    let kinds = [KINDS, &[sum_kind::KIND]].concat();
    Experiment::parse(&kinds, "paper/fig9", "fig9.toml", text)
}

#[test]
fn a_kind_is_added_by_one_file_and_one_entry() {
    let place = Checkout::of_this_repository();
    let mut experiment = read(GOOD).unwrap();
    let findings = experiment.run(&place).unwrap();
    assert_eq!(findings.report.claims[0].measured, 6.0);
    assert!(findings.report.is_met());
    assert_eq!(findings.report.series[0].points.len(), 3);
    assert!(matches!(findings.picture, Some(Picture::Plot(_))));
    assert!(matches!(
        experiment.shorten(),
        Err(ExperimentError::NotQuick(_))
    ));
    assert!(matches!(
        experiment.measure_anew(&place),
        Err(ExperimentError::NothingKept(_))
    ));
}

#[test]
fn the_quick_form_does_not_judge_what_is_about_the_whole() {
    let place = Checkout::of_this_repository();
    let text = GOOD.replace(
        "claim = [",
        "claim = [{ id = \"count\", what = \"w\", unit = \"1\", equal = 3, whole = true }, ",
    );
    let text = text.replace("[made-up]", "[made-up]\nquick = [1]");
    let ids = |experiment: &Experiment| -> Vec<String> {
        let claims = experiment.run(&place).unwrap().report.claims;
        claims.into_iter().map(|claim| claim.id).collect()
    };
    let mut experiment = read(&text).unwrap();
    assert_eq!(ids(&experiment), ["count", "sum"]);
    assert_eq!(experiment.shorten().unwrap(), ["count"]);
    assert_eq!(ids(&experiment), ["sum"]);
}

#[test]
fn a_file_of_an_added_kind_is_refused_as_any_other() {
    for (from, to, says, place) in [
        ("values = [", "value = [", "unknown field `value`", "value"),
        ("values = [1.5", "values = [\"1\"", "expected f64", "\"1\""),
        (
            "values = [1.5, 2.5, 2]",
            "",
            "missing field `values`",
            "[made-up]",
        ),
        (
            "id = \"sum\"",
            "id = \"total\"",
            "there are: count, sum",
            "\"total\"",
        ),
        (
            "of = \"values\"",
            "of = \"sums\"",
            "there are: values",
            "\"sums\"",
        ),
        ("[made-up]", "[made]", "unknown field `made`", "made"),
        (
            "[made-up]",
            "[made-up.x]\n[bounds]",
            "and none of another kind",
            "\"made-up\"",
        ),
        (
            "kind = \"made-up\"",
            "kind = \"bounds\"",
            "a table [bounds]",
            "\"bounds\"",
        ),
        (
            "title = \"t\"",
            "board = \"soc\"\ntitle = \"t\"",
            "kinds without firmware",
            "\"soc\"",
        ),
    ] {
        assert!(GOOD.contains(from), "{from}");
        let text = GOOD.replacen(from, to, 1);
        let Err(ExperimentError::File(error)) = read(&text) else {
            panic!("{text}");
        };
        let shown = format!("{} | {}", error.what, error.help.unwrap_or_default());
        assert!(shown.contains(says), "{shown}");
        let span = error.span.unwrap();
        assert_eq!(&text[span.offset()..span.offset() + span.len()], place);
    }
}
