// SPDX-License-Identifier: GPL-3.0-or-later
//! Tests of simulated experiments: those of the repository in a short form, and the keys of an
//! experiment's file.
use std::path::Path;

use assert_cmd::Command;

const SYSTEM: &str = r#"
schema = 1
[cpu]
clock = "1MHz"
interrupts = "flat"
longest_instruction = "0 cycles"
costs = { off = { request_served = "0 cycles" } }
[[source]]
name = "card"
vector = "E"
order = 0
handler = "100 cycles"
max_work = 8
[[receiver]]
name = "job"
urgency = 2
period = "10ms"
deadline = "3ms"
wcet = "2ms"
[[receiver]]
name = "server"
urgency = 1
[[flow]]
name = "udp"
source = "card"
receiver = "server"
bottom_half = "300 cycles"
"#;

/// A job takes 2 ms. If bottom halves run at once, three packets interrupt the job, the third only
/// because of the first two. Otherwise two packets interrupt it.
const EXPERIMENT: &str = r#"
title = "A small one"
paper = "none"
section = "1"
about = "A job that packets interrupt."
kind = "simulation"
claim = [
    { id = "now.response.last", what = "three packets", unit = "us", within = [3199.9, 3200.1] },
    { id = "now.response.first", what = "no packet", unit = "us", within = [1999.9, 2000.1] },
    { id = "later.longer.max", what = "two packets, whose bottom halves wait", unit = "%", within = [9.99, 10.01] },
    { id = "saved.min", what = "of the first, at the second point", unit = "%", within = [31.24, 31.26] },
    { id = "now.missed.last", what = "all of those with packets", unit = "jobs", equal = 10 },
]
[simulation]
system = "papers/experiments/none/systems/small.toml"
duration = "100ms"
seeds = [1, 2]
feed = [{ to = "udp", pattern = "{100 * x}Hz:phase=500us" }]
x = { title = "packets", values = [0, 10] }
[[simulation.variant]]
id = "now"
defer = "immediate"
[[simulation.variant]]
id = "later"
defer = "exact"
[[simulation.series]]
id = "now.response"
y = "us"
value = "1000000 * now.job.response.most"
[[simulation.series]]
id = "later.longer"
y = "%"
value = "100 * (later.job.response.most / first.later.job.response.most - 1)"
[[simulation.series]]
id = "saved"
y = "%"
value = "100 * (1 - later.job.response.most / now.job.response.most)"
where = "x > 0"
[[simulation.series]]
id = "now.missed"
y = "jobs"
value = "now.job.missed"
[[panel]]
title = "all"
curves = [{ of = "now.response", label = "at once", colour = "black" }]
"#;

/// A repository with the experiment `none/small`, whose file and system file have these texts.
fn repository(experiment: &str, system: &str) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("papers/experiments/none");
    std::fs::create_dir_all(folder.join("systems")).unwrap();
    std::fs::create_dir_all(root.path().join("core")).unwrap();
    std::fs::write(folder.join("small.toml"), experiment).unwrap();
    std::fs::write(folder.join("systems/small.toml"), system).unwrap();
    root
}

/// Runs `weir-lab reproduce`. Returns the exit code, and the output without line breaks.
fn reproduce(root: &Path, arguments: &[&str]) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_weir-lab"))
        .current_dir(root)
        .arg("reproduce")
        .args(arguments)
        .output()
        .unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    let text = text.replace('│', " ");
    let words: Vec<&str> = text.split_whitespace().collect();
    (output.status.code().unwrap(), words.join(" "))
}

#[test]
fn series_are_what_a_hand_calculates() {
    let root = repository(EXPERIMENT, SYSTEM);
    let (code, said) = reproduce(root.path(), &["none/small"]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("A small one (simulated)"), "{said}");
    let results = root.path().join("results/none");
    let svg = std::fs::read_to_string(results.join("small.svg")).unwrap();
    assert!(svg.contains("(simulated)"));
    let json = std::fs::read(results.join("small.json")).unwrap();
    assert!(String::from_utf8_lossy(&json).contains("\"simulated\": true"));
    let (_, said) = reproduce(root.path(), &["none/small"]);
    assert!(said.contains("small.json"), "{said}");
    assert_eq!(json, std::fs::read(results.join("small.json")).unwrap());
}

#[test]
fn the_quick_form_says_what_it_does_not_judge() {
    let experiment = EXPERIMENT
        .replace(
            "seeds = [1, 2]",
            "seeds = [1, 2]\nquick = { values = [0, 10], seeds = [1] }",
        )
        .replace("equal = 10 }", "equal = 10, whole = true }");
    let root = repository(&experiment, SYSTEM);
    let (code, said) = reproduce(root.path(), &["none/small", "--quick"]);
    assert_eq!(code, 0, "{said}");
    let not_judged = "not judged, since they are about all points and seeds: now.missed.last";
    assert!(said.contains(not_judged), "{said}");
    let (_, said) = reproduce(root.path(), &["none/small"]);
    assert!(!said.contains("not judged"), "{said}");
}

#[test]
fn what_is_wrong_is_said_before_anything_runs() {
    for (from, to, says) in [
        (
            "now.job.missed\"",
            "then.job.missed\"",
            "does not begin with a variant; the variants are later, now",
        ),
        ("now.job.missed\"", "now.job.mist\"", "no value `job.mist`"),
        ("now.job.missed\"", "now.job.missed +* 1\"", "formula"),
        (
            "to = \"udp\"",
            "to = \"tcp\"",
            "there is no flow `tcp`, but udp",
        ),
        ("{100 * x}Hz", "{100 * y}Hz", "about x, and not about `y`"),
        ("{100 * x}Hz", "{100 * x}m", "Hz"),
        ("systems/small", "systems/large", "large.toml"),
        (
            "id = \"now.missed.last\"",
            "id = \"now.missed.most\"",
            "now.missed.argmin",
        ),
        (
            "id = \"later\"\n",
            "id = \"later\"\ndelays = { card = \"1ms\" }\n",
            "the system does not moderate `card`",
        ),
        (
            "id = \"later\"\n",
            "id = \"later\"\nurgencies = { jobs = 3 }\n",
            "there is no receiver `jobs`, but job, server",
        ),
        (
            "kind = \"simulation\"",
            "kind = \"firmware\"",
            "a table [firmware]",
        ),
    ] {
        assert!(EXPERIMENT.contains(from), "{from}");
        let root = repository(&EXPERIMENT.replace(from, to), SYSTEM);
        let (code, said) = reproduce(root.path(), &["none/small"]);
        assert_eq!(code, 2, "{to}: {said}");
        assert!(said.contains(says), "{to}: {said}");
        assert!(!root.path().join("results").exists(), "{to}");
    }
}

#[test]
fn things_that_share_a_name_are_told_apart_or_refused() {
    let root = repository(EXPERIMENT, &SYSTEM.replace("\"udp\"", "\"card\""));
    let (code, said) = reproduce(root.path(), &["none/small"]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("`card.arrived`"), "{said}");
}

#[test]
fn firmware_says_how_long_it_runs() {
    let text = EXPERIMENT
        .split("[simulation]")
        .next()
        .unwrap()
        .replace("simulation", "firmware");
    let root = repository(
        &format!("{text}[firmware]\nflood = []\nmeasure = []\n"),
        SYSTEM,
    );
    let (code, said) = reproduce(root.path(), &["none/small"]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("how long the firmware runs"), "{said}");
}

/// Runs an experiment of the repository in a shorter form. Each replacement applies to the
/// experiment's file and to the system file, and its text must exist in one of them.
fn shortened(name: &str, replaced: &[(&str, &str)]) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../experiments");
    let root = tempfile::tempdir().unwrap();
    let paper = name.split('/').next().unwrap();
    let there = root.path().join("papers/experiments");
    std::fs::create_dir_all(there.join(paper).join("systems")).unwrap();
    std::fs::create_dir_all(root.path().join("core")).unwrap();
    let mut used = vec![false; replaced.len()];
    let mut copy = |file: &str| {
        let mut text = std::fs::read_to_string(here.join(file)).unwrap();
        for ((from, to), used) in replaced.iter().zip(&mut used) {
            *used |= text.contains(from);
            text = text.replace(from, to);
        }
        std::fs::write(there.join(file), text).unwrap();
    };
    copy(&format!("{name}.toml"));
    for system in std::fs::read_dir(here.join(paper).join("systems")).unwrap() {
        let system = system.unwrap().file_name().into_string().unwrap();
        copy(&format!("{paper}/systems/{system}"));
    }
    assert!(used.iter().all(|used| *used), "{name}: {used:?}");
    let (code, said) = reproduce(root.path(), &[name]);
    assert_eq!(code, 0, "{said}");
}

const TENTH: [(&str, &str); 3] = [
    ("duration = \"110s\"", "duration = \"11s\""),
    (
        "period = \"110s\"\nwcet = \"100s\"",
        "period = \"11s\"\nwcet = \"10s\"",
    ),
    ("cpu = \"100s\"", "cpu = \"10s\""),
];
const RATES: &str = "[1000, 2500, 5000, 10000, 20000, 30000, 40000, 50000]";

#[test]
fn zhang2006_holds_in_a_tenth_of_the_time() {
    let short = [
        &TENTH[..],
        &[(RATES, "[10000, 50000]"), ("[1, 2, 3, 4, 5]", "[1]")],
    ]
    .concat();
    shortened("zhang2006/fig6", &short);
    shortened("zhang2006/fig7", &short);
    shortened(
        "zhang2006/fig8",
        &[
            ("\"100s\"", "\"30s\""),
            (RATES, "[10000, 50000]"),
            ("[1, 2, 3]", "[1]"),
        ],
    );
}

#[test]
fn lee2010_holds_with_one_seed() {
    let rates = "[0, 100, 200, 300, 400, 500, 600, 700, 800, 900]";
    shortened("lee2010/fig3", &[(rates, "[0, 900]"), ("[1, 2, 3]", "[1]")]);
    shortened(
        "lee2010/fig4",
        &[(rates, "[0, 900]"), ("[1, 2, 3, 4, 5]", "[1]")],
    );
}

#[test]
fn behnke2022_holds_with_one_seed() {
    shortened("behnke2022/fig2", &[]);
    let one = ("[1, 2, 3]", "[1]");
    shortened("behnke2022/fig3", &[one]);
    shortened("behnke2022/fig4", &[one]);
    shortened("behnke2022/optimum", &[one]);
}
