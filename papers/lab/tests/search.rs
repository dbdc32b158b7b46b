// SPDX-License-Identifier: GPL-3.0-or-later
//! Tests of searches for the worst flood by `weir-lab reproduce`.
use crate::common::{EXPERIMENT, repository, reproduce, said};

const NODE: &str = r#"
title = "A small one"
paper = "none"
section = "1"
about = "One node."
kind = "node"
claim = []
panel = []
[node]
windows = 1
seeds = [1]
x = { title = "x", values = [5, 6] }
series = [
    { id = "VARIANT.off", of = ["a"], value = "VARIANT.late" },
    { id = "VARIANT.few", value = "VARIANT.late", where = "x > 5" },
]
variant = [
    { id = "a", packets = "simulated", pattern = "1kHz", label = "a", colour = "blue" },
    { id = "b", packets = "simulated", pattern = "1kHz", label = "b", colour = "blue" },
]
[[node.search]]
id = "worst"
value = "VALUE"
pattern = "{rate}Hz"
ranges = { rate = [1, 2] }
runs = 1
seed = 1
"#;

#[test]
fn a_search_finds_the_worst_flood_and_finds_it_again() {
    // More requests cost more, so the worst flood is the fastest one in the range.
    let measured = "measure = [{ id = \"VARIANT.most_lost\", value = \"VARIANT.worst\" }]";
    let search = "[[firmware.search]]\nid = \"VARIANT.worst\"\nvalue = \"100 * VARIANT.lost\"\npattern = \"INT0={hertz}Hz:phase={phase}cycles\"\nranges = { hertz = [100, 20000], phase = [1, 100] }\nruns = 300\nseed = 1\n[flavour.c]";
    let experiment = EXPERIMENT
        .replace(
            "measure = [{ id = \"VARIANT.most_lost\", value = \"VARIANT.max\" }]",
            measured,
        )
        .replace("[flavour.c]", search);
    let root = repository(&experiment);
    let worst = || {
        let assert = reproduce(root.path(), &["none/small"]).assert().code(0);
        let text = said(&assert);
        let (_, flood) = text.split_once("INT0=").unwrap();
        flood.split_once("Hz").unwrap().0.parse::<u64>().unwrap()
    };
    let found = worst();
    assert!(found > 19_500, "{found}");
    assert_eq!(worst(), found);
    // Few runs suffice, because the ends of the ranges are tried first.
    let path = root.path().join("papers/experiments/none/small.toml");
    std::fs::write(&path, experiment.replace("runs = 300", "runs = 6")).unwrap();
    let found = worst();
    assert!(found > 19_500, "{found}");

    let wrong = [
        (
            "runs = 300",
            "around = 0\nruns = 300",
            "`around` is not 1 to",
        ),
        (
            "runs = 300",
            "around = 9223372036854775807\nruns = 300",
            "`around` is not 1 to",
        ),
        ("[100, 20000]", "[20000, 100]", "the range `hertz` is empty"),
        (
            "phase = [1, 100]",
            "phase = [0, 100]",
            "`phase` is empty or begins with 0",
        ),
        (":phase={phase}cycles", "", "the pattern has no {phase}"),
        (
            "={phase}cycles",
            "={phase}{unit}",
            "names more than its ranges",
        ),
        ("runs = 300", "runs = 0", "`runs` and `quick` are 1 or more"),
        (
            "runs = 300",
            "runs = 300\nquick = 0",
            "`runs` and `quick` are 1 or more",
        ),
        (
            "VARIANT.worst\"\nvalue = \"100",
            "worst\"\nof = [\"limited\"]\nvalue = \"100",
            "but the id has no VARIANT",
        ),
        (
            "VARIANT.worst\"\nvalue = \"100",
            "VARIANT.max\"\nvalue = \"100",
            "the claim of a series, has this id, too",
        ),
        (
            "seed = 1\n",
            "seed = 1\n[[firmware.search]]\nid = \"c.none.worst\"\nvalue = \"c.none.lost\"\npattern = \"INT0=1kHz\"\nranges = {}\nruns = 1\nseed = 1\n",
            "`c.none.worst`: another search",
        ),
        ("INT0=", "INT9=", "this form is possible; `INT9=100Hz:"),
        (
            "INT0={hertz}Hz",
            "INT0=brusts:{hertz}",
            "there is no pattern `brusts`",
        ),
        (
            "100 * VARIANT.lost",
            "1 / (VARIANT.lost - VARIANT.lost)",
            "and not finite",
        ),
    ];
    for (part, replaced, message) in wrong {
        let root = repository(&experiment.replace(part, replaced));
        let assert = reproduce(root.path(), &["none/small"]).assert().code(2);
        let text = said(&assert);
        assert!(text.contains(message), "{text}");
    }

    // Contradicting numbers are detected when they are drawn.
    let drawn = |seed: u64| {
        let period = "INT0=pairs:{hertz}cycles:gap={phase}cycles";
        let one = experiment
            .replace("INT0={hertz}Hz:phase={phase}cycles", period)
            .replace("[1, 100]", "[99, 19999]")
            .replace("runs = 300\nseed = 1", &format!("runs = 1\nseed = {seed}"));
        let assert = reproduce(repository(&one).path(), &["none/small"]).assert();
        (assert.get_output().status.code(), said(&assert))
    };
    let all: Vec<_> = (1..=8).map(drawn).collect();
    assert!(all.iter().any(|(code, _)| *code == Some(0)), "{all:?}");
    let none = "no flood that was tried is possible";
    let is_none = |(code, text): &(Option<i32>, String)| *code == Some(2) && text.contains(none);
    assert!(all.iter().any(is_none), "{all:?}");
}

#[test]
fn a_search_names_only_series_that_its_variant_has_at_its_point() {
    let run_of = |experiment: &str| {
        let root = repository(experiment);
        let node = root.path().join("papers/experiments/behnke2021/node");
        std::fs::create_dir_all(&node).unwrap();
        let costs = "interrupt = {}\ntask = {}\nlongest = {}\n";
        std::fs::write(node.join("costs.toml"), costs).unwrap();
        said(&reproduce(root.path(), &["none/small"]).assert().code(2))
    };
    let run = |value: &str| run_of(&NODE.replace("VALUE", value));
    let text = run("b.off");
    assert!(text.contains("`worst`: a run has no value `off`"), "{text}");
    let text = run("a.few");
    assert!(
        text.contains("`where` of `a.few` leaves out x = 5"),
        "{text}"
    );
    let delayed = NODE.replace("rate = [1, 2]", "rate = [1, 2], delay_us = [1, 2]");
    let text = run_of(&delayed.replace("VALUE", "a.off"));
    assert!(text.contains("`delay_us` is for a crowd"), "{text}");
    // The search itself is valid. The error is that this repository has no script to build the
    // node.
    let text = run("a.off");
    assert!(text.contains("run.sh"), "{text}");
}
