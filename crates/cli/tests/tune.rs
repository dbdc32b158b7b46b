// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of `weir tune`: its output, and the files that it writes or leaves alone.

use std::path::{Path, PathBuf};

use crate::common::{Printed, check_file, run, weir};
use serde_json::Value;
use tempfile::TempDir;

/// The sources of regehr2005 §3.5, without limits.
const NODE: &str = r#"schema = 1
[cpu]
board = "atmega128"   # as in the paper
clock = "4MHz"
[[source]]
name = "first"
vector = "INT0"
handler = "250 cycles"
max_work = 1
rate = { expected = "324Hz" }
[[source]]
name = "second"
vector = "INT1"
handler = "250 cycles"
max_work = 1
rate = { expected = "200Hz" }
[[source]]
name = "third"
vector = "INT2"
handler = "250 cycles"
max_work = 1
rate = { expected = "754Hz" }
[[receiver]]
name = "work"
urgency = 1
period = "20ms"
deadline = "20ms"
wcet = "6ms"
"#;

/// A folder with a system file.
struct Case {
    folder: TempDir,
}

impl Case {
    fn new(text: &str) -> Self {
        let folder = TempDir::new().unwrap();
        std::fs::write(folder.path().join("system.toml"), text).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self) -> String {
        std::fs::read_to_string(self.path("system.toml")).unwrap()
    }

    fn tune(&self, arguments: &[&str]) -> Printed {
        tune(&self.path("system.toml"), arguments)
    }
}

fn tune(path: &Path, arguments: &[&str]) -> Printed {
    run(weir().arg("tune").arg(path).args(arguments))
}

fn json(printed: &Printed) -> Value {
    serde_json::from_str(&printed.out)
        .unwrap_or_else(|error| panic!("{error}: {}\n{}", printed.out, printed.err))
}

#[test]
fn by_default_nothing_is_written() {
    let case = Case::new(NODE);
    let printed = case.tune(&[]);
    assert_eq!(printed.code, Some(0), "{}", printed.err);
    assert_eq!(case.text(), NODE);
    assert!(printed.out.contains("--write"), "{}", printed.out);
    assert!(printed.out.contains("chosen") && !printed.out.contains('\u{1b}'));
    is_narrow(&printed);
}

fn is_narrow(printed: &Printed) {
    for line in printed.out.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
}

/// Other statements of a source do not prevent its limit from being tuned.
#[test]
fn a_source_with_a_queue_is_tuned() {
    let text = NODE.replacen("max_work = 1", "max_work = 1\nqueue = 4", 1)
        + r#"[[flow]]
name = "packets"
source = "first"
receiver = "work"
top_half = "20 cycles"
bottom_half = "300 cycles"
"#;
    let printed = Case::new(&text).tune(&["--json"]);
    assert_eq!(printed.code, Some(0), "{}", printed.err);
    let all = json(&printed).to_string();
    for source in ["first", "second", "third"] {
        assert!(all.contains(&format!("\"{source}\"")), "{source}: {all}");
    }
}

#[test]
fn scales_channels_and_notes_are_told() {
    let printed = tune(&example("flight-controller"), &[]);
    assert_eq!(printed.code, Some(0), "{}", printed.err);
    for text in [
        "tolerated rates",
        "strict lazy",
        "note: no timer can limit gps",
    ] {
        assert!(
            printed.out.contains(text),
            "{text} is missing in\n{}",
            printed.out
        );
    }
    is_narrow(&printed);
}

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples")
        .join(name)
        .join("system.toml")
}

#[test]
fn what_is_written_is_guaranteed_and_stays() {
    let case = Case::new(NODE);
    assert_eq!(case.tune(&["--write"]).code, Some(0));
    let written = case.text();
    assert!(
        written.contains("# as in the paper") && written.contains("[[timer]]"),
        "{written}"
    );
    assert_eq!(check_file(&case.path("system.toml"), &[]).code, Some(0));
    let again = case.tune(&["--write"]);
    assert_eq!(case.text(), written);
    assert!(again.out.contains("already"), "{}", again.out);
}

#[test]
fn a_copy_leaves_the_file_alone() {
    let case = Case::new(NODE);
    let copy = case.path("tuned.toml");
    assert_eq!(
        case.tune(&["--output", copy.to_str().unwrap()]).code,
        Some(0)
    );
    assert_eq!(case.text(), NODE);
    assert_eq!(check_file(&copy, &[]).code, Some(0));
    let both = case.tune(&["--write", "--output", copy.to_str().unwrap()]);
    assert_eq!(both.code, Some(2));
}

#[cfg(unix)]
#[test]
fn the_file_behind_a_link_is_written_and_stays_as_private_as_it_was() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let case = Case::new(NODE);
    let private = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(case.path("system.toml"), private).unwrap();
    symlink(case.path("system.toml"), case.path("link.toml")).unwrap();
    assert_eq!(tune(&case.path("link.toml"), &["--write"]).code, Some(0));
    assert_ne!(case.text(), NODE);
    assert!(case.path("link.toml").is_symlink());
    let mode = std::fs::metadata(case.path("system.toml"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn at_110_hz_the_bursts_are_those_of_the_paper() {
    let found = json(&Case::new(NODE).tune(&["--timer-rate", "110Hz", "--json"]));
    assert_eq!(found["feasible"], true);
    let bursts: Vec<&Value> = found["sources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|of| &of["burst"])
        .collect();
    assert_eq!(bursts, [3, 2, 7]);
    let rate = found["timers"][0]["rate_hz"].as_f64().unwrap();
    assert!(rate <= 110.0 && rate > 109.9, "{rate}");
}

#[test]
fn the_papers_limits_are_shown_beside_the_chosen_ones() {
    let found = json(&tune(&example("shared-timer"), &["--json"]));
    let (ours, theirs) = (&found["measure"], &found["before"]);
    for key in ["timer_rate_hz", "over_admission", "overhead"] {
        assert!(
            ours[key].as_f64() <= theirs[key].as_f64(),
            "{key}: {ours} {theirs}"
        );
    }
    let front = found["front"].as_array().unwrap();
    assert_eq!(front.iter().filter(|of| of["chosen"] == true).count(), 1);
}

#[test]
fn a_shorter_delay_costs_more_interrupts() {
    let case = Case::new(NODE);
    let corner = ["--json", "--aim", "fewest-interrupts"];
    let free = json(&case.tune(&corner));
    let short = json(&case.tune(&[&corner[..], &["--longest-delay", "2ms"]].concat()));
    assert!(short["measure"]["longest_delay"].as_u64() <= Some(8_000));
    assert!(short["measure"]["timer_rate_hz"].as_f64() > free["measure"]["timer_rate_hz"].as_f64());
}

/// The paper's sources share a timer of 110 Hz. Interrupts then delay tasks for 1.8 ms.
#[test]
fn the_default_is_a_knee_and_not_the_corner() {
    let at = |arguments: &[&str]| {
        let found = json(&tune(
            &example("shared-timer"),
            &[&["--json"], arguments].concat(),
        ));
        let measure = &found["measure"];
        (
            measure["longest_delay"].as_f64().unwrap() / 4e6,
            measure["overhead"].as_f64().unwrap(),
        )
    };
    let (delay, overhead) = at(&[]);
    let (longest, least) = at(&["--aim", "fewest-interrupts"]);
    assert!(delay < 1.8e-3 && longest > 10e-3, "{delay} {longest}");
    assert!(overhead < least + 0.003, "{overhead} {least}");
}

/// A CAN node. A bucket of four would delay the serial line for too long.
const CAN_NODE: &str = r#"schema = 1
[cpu]
board = "atmega128"
clock = "16MHz"
[[source]]
name = "can"
vector = "INT0"
handler = "400 cycles"
max_work = 1
rate = { expected = "800Hz", tolerated = "2kHz", worst = "can" }
limit = { policy = "bucket", burst = 4, rate = "1.5kHz", timer = "TIMER1A" }
[[source]]
name = "encoder"
vector = "INT1"
handler = "120 cycles"
max_work = 1
rate = { expected = "2kHz", tolerated = "4kHz", worst = "50kHz" }
limit = { policy = "strict", rate = "3kHz", timer = "TIMER1B" }
[[source]]
name = "uart"
vector = "USART0_RX"
handler = "90 cycles"
max_work = 1
rate = { expected = "1kHz", worst = "serial" }
deadline = "170us"
"#;

#[test]
fn a_stated_burst_is_lowered_only_as_far_as_it_has_to_be() {
    let case = Case::new(CAN_NODE);
    let found = json(&case.tune(&["--json"]));
    assert_eq!(found["feasible"], true);
    let burst = found["sources"][0]["burst"].as_u64().unwrap();
    assert_eq!(
        found["lowered"],
        serde_json::json!([{ "name": "can", "stated": 4, "burst": burst }])
    );
    let printed = case.tune(&["--write"]);
    let note = format!("note: the burst of can is lowered from 4 to {burst}");
    assert!(printed.out.contains(&note), "{}", printed.out);
    assert_eq!(check_file(&case.path("system.toml"), &[]).code, Some(0));
    // With a burst larger by one, not even the least demanded rate keeps the deadlines.
    let more = CAN_NODE.replace(
        "burst = 4, rate = \"1.5kHz\"",
        &format!("burst = {}, rate = \"801Hz\"", burst + 1),
    );
    std::fs::write(case.path("system.toml"), more).unwrap();
    assert_eq!(check_file(&case.path("system.toml"), &[]).code, Some(1));
}

/// The processor's file states the costs of one limiter, but not all of them.
#[test]
fn costs_that_are_missing_are_named() {
    let text = r#"schema = 1
[cpu]
clock = "72MHz"
interrupts = "grouped"
longest_instruction = "12 cycles"
costs = { off = { request_served = "24 cycles" }, strict = { lazy = { request_served = "60 cycles" } } }
[[source]]
name = "can"
vector = { name = "CAN1_RX0", group = 3, order = 20 }
handler = "300 cycles"
max_work = 3
rate = { expected = "1kHz", tolerated = "4kHz", worst = "can" }
[[timer]]
name = "TIM2"
width = 32
group = 3
order = 28
[[receiver]]
name = "control"
urgency = 5
period = "1ms"
wcet = "300us"
deadline = "1ms"
"#;
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let case = Case::new(text);
    let printed = case.tune(&[]);
    assert_eq!(printed.code, Some(2), "{}", printed.out);
    let told = words(&printed.err.replace('│', ""));
    for part in [
        "does not state what limiters cost",
        "[cpu.costs.strict.lazy]: request_refused",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    // With all costs of a limiter, it is tried. A note names the others.
    let complete = text.replace(
        "request_served = \"60 cycles\"",
        "request_served = \"60 cycles\", request_refused = \"50 cycles\", expiry_served = \"70 cycles\", expiry_empty = \"60 cycles\"",
    );
    let printed = Case::new(&complete).tune(&[]);
    assert_eq!(printed.code, Some(0), "{}", printed.err);
    assert!(
        words(&printed.out).contains("some limiters were not tried"),
        "{}",
        printed.out
    );
}

#[test]
fn advice_says_how_far_to_go() {
    let text = NODE
        .replace("deadline = \"20ms\"", "deadline = \"9ms\"")
        .replace("324Hz", "6kHz");
    let printed = Case::new(&text).tune(&[]);
    let told = printed.out.split_whitespace().collect::<Vec<_>>().join(" ");
    let rate = told
        .split_once("expect only ")
        .and_then(|(_, rest)| rest.split_once(" of first"))
        .map(|(rate, _)| rate.replace(' ', ""))
        .unwrap_or_else(|| panic!("{told}"));
    let eased = Case::new(&text.replace("6kHz", &rate)).tune(&[]);
    assert_eq!(eased.code, Some(0), "{rate}: {}", eased.out);
}

#[test]
fn the_front_is_drawn() {
    let case = Case::new(NODE);
    let plot = case.path("front.svg");
    assert_eq!(case.tune(&["--plot", plot.to_str().unwrap()]).code, Some(0));
    let svg = std::fs::read_to_string(plot).unwrap();
    assert!(svg.contains("<svg") && svg.contains("chosen"));
}

#[test]
fn what_cannot_hold_together_is_told() {
    let text = NODE
        .replace("deadline = \"20ms\"", "deadline = \"7ms\"")
        .replace("324Hz", "6kHz");
    let case = Case::new(&text);
    let printed = case.tune(&["--write"]);
    assert_eq!(printed.code, Some(1), "{}", printed.err);
    assert_eq!(case.text(), text);
    is_narrow(&printed);
    let told = printed.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        told.contains("the deadline of work (7 ms) cannot hold together with the expected rate of first (6 kHz)"),
        "{told}"
    );
    let found = json(&case.tune(&["--json"]));
    assert_eq!(found["feasible"], false);
    assert_eq!(found["conflict"][0]["deadline"], "work");
}

#[test]
fn a_line_that_the_flavour_cannot_limit_beside_others_is_named() {
    let why = "no timer can limit third: it stays as it is; the flavour limits one source, or some \
               that share a timer, and flavour = \"c\" limits more";
    let note = &format!("note: {why}");
    let fast = |rate: &str| {
        let text = NODE
            .replace("\"atmega128\"", "\"atmega128\"\nflavour = \"fast\"")
            .replace("\"INT2\"", "\"INT7\"")
            .replace("expected = \"754Hz\"", rate);
        let case = Case::new(&text);
        let printed = case.tune(&[]);
        is_narrow(&printed);
        let told = printed.out.split_whitespace().collect::<Vec<_>>();
        let found = json(&case.tune(&["--json"]));
        let key = if printed.code == Some(0) {
            "not_reached"
        } else {
            "told"
        };
        let in_json = found[key].as_str().unwrap_or_default();
        assert!(in_json.contains(why), "{found}");
        (printed.code, told.join(" "))
    };
    let (code, told) = fast("expected = \"754Hz\", worst = \"1kHz\"");
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains(note), "{told}");
    let (code, told) = fast("expected = \"754Hz\", worst = \"20kHz\"");
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains(note), "{told}");
    assert!(told.contains("write flavour = \"c\" in [cpu]"), "{told}");
}

/// Returns the example `network-node` with a rate and a deadline for the packets of one flow.
fn with_packets(hertz: &str, deadline: &str) -> Case {
    let text = std::fs::read_to_string(example("network-node")).unwrap();
    let flow = "name = \"modbus\"\n";
    assert_eq!(text.matches(flow).count(), 1);
    let stated = format!("{flow}rate = \"{hertz}\"\ndeadline = \"{deadline}\"\n");
    Case::new(&text.replace(flow, &stated))
}

#[test]
fn deadlines_of_packets_hold_as_check_says() {
    // The limit in the file admits 8 kHz of packets, which `weir check` rejects.
    for (hertz, deadline) in [("2kHz", "5ms"), ("12kHz", "8ms")] {
        let case = with_packets(hertz, deadline);
        let before = check_file(&case.path("system.toml"), &[]);
        assert_ne!(before.code, Some(0), "{}", before.out);
        let printed = case.tune(&["--write"]);
        assert_eq!(printed.code, Some(0), "{}{}", printed.out, printed.err);
        let checked = check_file(&case.path("system.toml"), &[]);
        assert_eq!(checked.code, Some(0), "{}{}", checked.out, checked.err);
    }
    let printed = with_packets("2kHz", "3ms").tune(&[]);
    assert_eq!(printed.code, Some(1), "{}", printed.err);
    let told = printed.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        told.contains("the deadline of modbus (3 ms) cannot hold"),
        "{told}"
    );
    assert!(
        told.contains("allow the packets of modbus a deadline of"),
        "{told}"
    );
    assert!(
        told.contains("bring 2 kHz of packets to eth-commands, which takes 8"),
        "{told}"
    );
    let printed = with_packets("40kHz", "20ms").tune(&[]);
    assert_eq!(printed.code, Some(2), "{}", printed.out);
    let told = printed.err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        told.contains("more than the 32kHz that `eth-commands` tolerates"),
        "{told}"
    );
}

/// Returns the example `linux-node` with a line beside the network card. The line has a limit.
fn line_beside_linux() -> Case {
    let text = std::fs::read_to_string(example("linux-node")).unwrap();
    let costs = (
        "costs = { off = { request_served = \"2us\" } }",
        r#"[cpu.costs]
off = { request_served = "2us" }
strict.lazy = { request_served = "3us", request_refused = "3us", expiry_served = "3us", expiry_empty = "3us" }
[[timer]]
name = "gap"
width = 32
order = 3"#,
    );
    let line = (
        "[[receiver]]\nname = \"control\"",
        r#"[[source]]
name = "line"
vector = { name = "gpio", order = 2 }
handler = "20us"
max_work = 1
rate = { expected = "1kHz", tolerated = "20kHz" }
limit = { policy = "strict", rate = "2kHz", timer = "gap" }

[[receiver]]
name = "control""#,
    );
    let text = [costs, line].iter().fold(text, |text, (from, to)| {
        assert_eq!(text.matches(from).count(), 1, "{from}");
        text.replace(from, to)
    });
    Case::new(&text)
}

/// The threads of Linux also take time from a task. For this reason the whole tolerated rate is too
/// much here.
#[test]
fn deadlines_beside_linux_hold_as_check_says() {
    let case = line_beside_linux();
    let file = case.path("system.toml");
    assert_eq!(check_file(&file, &[]).code, Some(1));
    let printed = case.tune(&["--write"]);
    assert_eq!(printed.code, Some(0), "{}{}", printed.out, printed.err);
    let checked = check_file(&file, &[]);
    assert_eq!(checked.code, Some(0), "{}{}", checked.out, checked.err);
    // Without a bound for the deadline, both commands give the same reason.
    let flow = "name = \"requests\"\n";
    let with_deadline = format!("{flow}deadline = \"9ms\"\n");
    let text = case.text().replace(flow, &with_deadline);
    std::fs::write(&file, text).unwrap();
    let (checked, printed) = (check_file(&file, &[]), case.tune(&[]));
    assert_eq!(
        (checked.code, printed.code),
        (Some(2), Some(2)),
        "{}",
        printed.out
    );
    assert_eq!(checked.err, printed.err);
}

/// Line breaks depend on the terminal and are not part of the data.
#[test]
fn no_text_of_the_json_is_broken_into_lines() {
    fn texts(value: &Value) -> Vec<&str> {
        match value {
            Value::String(text) => vec![text],
            Value::Array(all) => all.iter().flat_map(texts).collect(),
            Value::Object(all) => all.values().flat_map(texts).collect(),
            _ => Vec::new(),
        }
    }
    let impossible = NODE
        .replace("deadline = \"20ms\"", "deadline = \"7ms\"")
        .replace("324Hz", "6kHz");
    for (text, code) in [(NODE, 0), (&impossible, 1)] {
        let printed = Case::new(text).tune(&["--json"]);
        assert_eq!(printed.code, Some(code), "{}", printed.err);
        let answer = json(&printed);
        let all = texts(&answer);
        assert!(all.len() > 3, "{all:?}");
        for text in all {
            assert!(!text.contains('\n'), "{text:?}");
        }
    }
}

#[test]
fn a_timer_rate_that_gives_too_much_is_told() {
    let printed = Case::new(NODE).tune(&["--timer-rate", "10kHz"]);
    assert_eq!(printed.code, Some(1), "{}", printed.err);
    let told = printed.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        told.contains("the expected rate of third (754 Hz) cannot be had"),
        "{told}"
    );
    assert!(told.contains("a shared timer of 10kHz"), "{told}");
    is_narrow(&printed);
}

#[test]
fn a_timer_rate_without_a_timer_is_refused() {
    let strict = |number: u32| {
        format!(
            "limit = {{ policy = \"strict\", rate = \"1kHz\", timer = \"TIMER1{}\" }}\nmax_work = 1",
            ["A", "B", "C"][number as usize]
        )
    };
    let mut text = NODE.to_owned();
    for number in 0..3 {
        text = text.replacen(
            "handler = \"250 cycles\"\nmax_work = 1",
            &format!("handler = \"250  cycles\"\n{}", strict(number)),
            1,
        );
    }
    let printed = Case::new(&text).tune(&["--timer-rate", "110Hz"]);
    assert_eq!(printed.code, Some(2), "{}", printed.out);
    assert!(
        printed.err.contains("no source may share"),
        "{}",
        printed.err
    );
}

#[test]
fn sources_without_max_work_are_tuned_but_nothing_is_proven() {
    let case = Case::new(&NODE.replacen("max_work = 1\n", "", 1));
    let printed = case.tune(&[]);
    assert_eq!(printed.code, Some(0));
    assert!(printed.out.contains("nothing is proven"), "{}", printed.out);
}

#[test]
fn bad_input_is_answered() {
    let no_bands = NODE
        .lines()
        .filter(|line| !line.starts_with("rate"))
        .collect::<Vec<_>>()
        .join("\n");
    for (text, arguments, says) in [
        (no_bands.as_str(), &[][..], "nothing is to be tuned"),
        ("schema = 2\n", &[], "schema"),
        ("\u{1}", &[], "system.toml"),
        (NODE, &["--over-admission", "-1%"], "0% to 1000%"),
        (NODE, &["--over-admission", "NaN"], "0% to 1000%"),
        (NODE, &["--timer-rate", "110"], "Hz"),
        (NODE, &["--longest-delay", "0ms"], "more than zero"),
        (NODE, &["--plot", "/"], "it names a folder"),
    ] {
        let case = Case::new(text);
        let printed = case.tune(arguments);
        assert_eq!(printed.code, Some(2), "{arguments:?}: {}", printed.out);
        assert!(printed.err.contains(says), "{arguments:?}: {}", printed.err);
        assert_eq!(case.text(), text);
    }
}
