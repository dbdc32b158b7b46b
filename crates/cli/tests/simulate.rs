// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of `weir simulate`: verdicts, exit codes, output, written files and rejected input.

use std::path::{Path, PathBuf};

use crate::common::{Printed, run, weir};
use crate::is_long;
use serde_json::Value;
use tempfile::TempDir;

const GATEWAY: &str = include_str!("data/gateway.toml");
const EXAMPLES: [&str; 3] = ["shared-timer", "flight-controller", "motor-controller"];

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../examples/{name}/system.toml"))
}

fn simulate_file(path: &Path, arguments: &[&str]) -> Printed {
    run(weir().arg("simulate").arg(path).args(arguments))
}

/// Runs `weir simulate` with `arguments` on a file with this content.
fn simulate(content: &str, arguments: &[&str]) -> Printed {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("system.toml");
    std::fs::write(&path, content).unwrap();
    simulate_file(&path, arguments)
}

fn json(printed: &Printed) -> Value {
    serde_json::from_str(&printed.out)
        .unwrap_or_else(|error| panic!("{error}: {}\n{}", printed.out, printed.err))
}

/// Returns the verdict on one line.
fn verdict(printed: &Printed) -> String {
    let paragraph = printed.out.split("\n\n").next().unwrap();
    paragraph.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the error message on one line, without the frame around it.
fn refused(printed: &Printed) -> String {
    assert_eq!(printed.code, Some(2), "{}\n{}", printed.out, printed.err);
    assert_eq!(printed.out, "");
    let words = printed.err.split_whitespace();
    let words = words.filter(|word| !["│", "×", "╰─▶"].contains(word));
    words.collect::<Vec<_>>().join(" ")
}

fn one<'a>(list: &'a Value, name: &str) -> &'a Value {
    let mut all = list.as_array().unwrap().iter();
    all.find(|item| item["name"] == name)
        .unwrap_or_else(|| panic!("{name} in {list}"))
}

fn is_narrow_and_plain(printed: &Printed) {
    for line in printed.out.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    assert!(!printed.out.contains('\u{1b}'), "{}", printed.out);
}

#[test]
fn the_examples_keep_their_deadlines_when_nothing_misbehaves() {
    for name in EXAMPLES {
        let printed = simulate_file(&example(name), &[]);
        assert_eq!(printed.code, Some(0), "{}", printed.err);
        assert_eq!(
            verdict(&printed),
            "no deadline is missed, with limits or without",
            "{name}"
        );
        is_narrow_and_plain(&printed);
        assert_eq!(printed.err, "");
    }
}

#[test]
fn a_flood_starves_every_task_without_limits_and_none_with_them() {
    let printed = simulate_file(&example("flight-controller"), &["--flood", "ignition"]);
    assert_eq!(
        verdict(&printed),
        "attitude misses 11,111 of 11,112 deadlines without its limits, none with them; 5 more miss deadlines, too"
    );
    assert_eq!(printed.code, Some(0));
    is_narrow_and_plain(&printed);
    assert!(printed.out.contains("flooded: ignition at 100kHz"));
}

#[test]
fn the_documentation_shows_what_is_printed() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(repository.join("docs/simulate.md")).unwrap();
    let (_, rest) = page.split_once("\n$ weir ").unwrap();
    let (shown, _) = rest.split_once("\n```").unwrap();
    let (command, shown) = shown.split_once('\n').unwrap();
    let arguments = command.split(' ');
    let printed = run(weir().args(arguments).current_dir(repository));
    assert_eq!(printed.out.trim_end(), shown);
}

#[test]
fn json_says_it_with_numbers() {
    let arguments = ["--flood", "ignition", "--duration", "1s", "--json"];
    let printed = simulate_file(&example("flight-controller"), &arguments);
    let answer = json(&printed);
    assert_eq!(answer["simulate"], 1);
    assert_eq!(answer["options"]["duration_cycles"], 16_000_000);
    assert_eq!(answer["without"], serde_json::json!(["limits"]));
    let (with, without) = (&answer["runs"]["as_described"], &answer["runs"]["without"]);
    for run in [with, without] {
        let stages = run["stages"].as_array().unwrap();
        let cycles: u64 = stages.iter().map(|of| of["cycles"].as_u64().unwrap()).sum();
        assert_eq!(cycles, 16_000_000, "all time goes somewhere");
    }
    let ignition = one(&with["sources"], "ignition");
    assert_eq!(ignition["arrived"], 100_000);
    // The rate is 800 Hz, and one more request comes at the beginning.
    let served = ignition["served"].as_u64().unwrap();
    assert!((800..=801).contains(&served), "{served}");
    assert_eq!(one(&with["tasks"], "attitude")["missed"], 0);
    let starved = one(&without["tasks"], "attitude");
    assert_eq!(starved["ended"], 0);
    assert_eq!(starved["responses"], Value::Null);
}

#[test]
fn no_task_takes_longer_than_check_says_as_long_as_its_assumptions_are_kept() {
    for (name, sources) in [
        (
            "shared-timer",
            &["first=4kHz", "second=4kHz", "third=1kHz"][..],
        ),
        ("flight-controller", &["ignition", "gyro", "radio", "gps"]),
        ("motor-controller", &["encoder", "button", "uart"]),
    ] {
        for costs in ["worst", "uniform:20%"] {
            let duration = if is_long() { "10s" } else { "2s" };
            let mut arguments = vec!["--json", "--costs", costs, "--duration", duration];
            arguments.extend(sources.iter().flat_map(|source| ["--flood", source]));
            let printed = simulate_file(&example(name), &arguments);
            let answer = json(&printed);
            let bounds = &answer["bounds"];
            assert_eq!(bounds["not_for_this_run"], serde_json::json!([]), "{name}");
            for task in bounds["tasks"].as_array().unwrap() {
                let bound = task["bound_cycles"].as_u64().unwrap();
                let seen = task["seen_cycles"].as_u64().unwrap();
                assert!(seen <= bound, "{name}, {costs}: {task}");
            }
            assert_eq!(printed.code, Some(0));
        }
    }
}

#[test]
fn a_flood_beyond_the_worst_rate_voids_the_bounds() {
    let printed = simulate_file(
        &example("flight-controller"),
        &["--flood", "gps=2kHz", "--duration", "1s"],
    );
    let said = printed.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("did not keep to what they rest on: gps came faster than its worst rate."),
        "{said}"
    );
}

#[test]
fn missed_as_described_is_exit_code_1() {
    let printed = simulate(GATEWAY, &["--flood", "frames=60kHz", "--duration", "1s"]);
    let said = verdict(&printed);
    assert!(
        said.starts_with("video misses 24 of 25 deadlines with its deferral, 24 without it"),
        "{said}"
    );
    assert_eq!(printed.code, Some(1));
    is_narrow_and_plain(&printed);
}

#[test]
fn deferral_lets_the_urgent_task_through() {
    let flood = ["--flood", "frames=poisson:20kHz", "--json"];
    let answer = json(&simulate(GATEWAY, &flood));
    let longest = |run: &str| {
        let tasks = &answer["runs"][run]["tasks"];
        one(tasks, "control")["responses"]["max"].as_u64().unwrap()
    };
    assert!(longest("as_described") < longest("without"));
}

#[test]
fn with_nothing_to_leave_out_there_is_one_run() {
    let arguments = ["--defer", "immediate", "--duration", "100ms"];
    let printed = simulate(GATEWAY, &arguments);
    assert_eq!(verdict(&printed), "no deadline is missed");
    assert!(!printed.out.contains("without"), "{}", printed.out);
    let answer = json(&simulate(GATEWAY, &[&arguments[..], &["--json"]].concat()));
    assert_eq!(answer["runs"]["without"], Value::Null);
}

#[test]
fn the_run_without_can_be_made_alone() {
    let arguments = ["--flood", "ignition", "--without", "--duration", "1s"];
    let printed = simulate_file(&example("flight-controller"), &arguments);
    assert_eq!(
        verdict(&printed),
        "attitude misses 1,111 of 1,112 deadlines without limits; 5 more miss deadlines, too"
    );
    assert_eq!(printed.code, Some(1));
}

#[test]
fn who_brings_nothing_is_named() {
    let printed = simulate(GATEWAY, &["--duration", "10ms"]);
    assert!(
        printed
            .out
            .contains("silent, since the file does not say how much they bring: frames"),
        "{}",
        printed.out
    );
}

#[test]
fn a_flood_for_nobody_costs_but_delivers_nothing() {
    let arguments = ["--flood", "nobody.eth=5kHz", "--duration", "1s", "--json"];
    let answer = json(&simulate(GATEWAY, &arguments));
    let run = &answer["runs"]["as_described"];
    let lost = &one(&run["sources"], "eth")["lost"][0];
    assert_eq!(lost["why"], "orphan");
    assert_eq!(lost["count"], 5000);
    assert!(run["orphans_cycles"].as_u64().unwrap() > 0);
    assert_eq!(one(&run["flows"], "commands")["delivered"], 500);
}

/// Returns a capture of two packets on this link type, to this UDP port.
fn capture(link: u32, port: u16) -> Vec<u8> {
    let mut frame = vec![0; 12];
    frame.extend([0x08, 0x00]);
    frame.extend([
        0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
    ]);
    frame.extend(1024_u16.to_be_bytes());
    frame.extend(port.to_be_bytes());
    frame.extend([0, 8, 0, 0]);
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65535, link] {
        file.extend(word.to_le_bytes());
    }
    for micros in [0_u32, 500] {
        let length = u32::try_from(frame.len()).unwrap();
        for word in [0, micros, length, length] {
            file.extend(word.to_le_bytes());
        }
        file.extend(&frame);
    }
    file
}

#[test]
fn a_capture_goes_to_the_flows_whose_ports_it_has() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("eth0.pcap");
    std::fs::write(&path, capture(1, 6000)).unwrap();
    let flood = format!("eth=trace:{}", path.display());
    let arguments = ["--flood", &flood, "--duration", "10ms", "--json"];
    let answer = json(&simulate(GATEWAY, &arguments));
    let flows = &answer["runs"]["as_described"]["flows"];
    assert_eq!(one(flows, "frames")["delivered"], 2);
    assert_eq!(one(flows, "commands")["arrived"], 0);
}

#[test]
fn bad_recordings_are_refused() {
    let folder = TempDir::new().unwrap();
    let whole = capture(1, 6000);
    for (name, content, says) in [
        (
            "order.csv",
            b"time_us\n10\n5\n".to_vec(),
            "line 3: 5 comes after 10",
        ),
        ("cut.pcap", whole[..whole.len() - 3].to_vec(), "cut"),
        ("cooked.pcap", capture(113, 6000), "Ethernet"),
        ("none.csv", b"time_us\n".to_vec(), "there are no"),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        let flood = format!("eth=trace:{}", path.display());
        let said = refused(&simulate(GATEWAY, &["--flood", &flood]));
        // The path alone is as long as a line, so the message is compared without spaces.
        let said = said.replace(' ', "");
        assert!(said.contains(&says.replace(' ', "")), "{name}: {said}");
        assert!(said.starts_with("inthefloodof`eth`:"), "{said}");
    }
}

#[test]
fn floods_of_what_does_not_exist_are_refused() {
    for (flood, says) in [
        (
            "eht",
            "nothing that could be flooded is called `eht` help: did you mean `eth`?",
        ),
        (
            "source.frames",
            "nothing that could be flooded is called `source.frames`",
        ),
        ("nobody.frames=1kHz", "nothing that could be flooded"),
        (
            "eth=1kHz",
            "the source `eth` has 2 flows: a flood of it has to say which flow its packets belong to",
        ),
        (
            "frames",
            "the system does not say how fast `frames` can be at worst",
        ),
        (
            "frames=level:low=1ms:high=1ms",
            "`frames` is a source of packets and cannot be flooded with a level",
        ),
        ("frames=1", "in the flood of `frames`: `1` has no unit"),
        (
            "frames=often",
            "in the flood of `frames`: there is no pattern `often`",
        ),
    ] {
        let said = refused(&simulate(GATEWAY, &["--flood", flood]));
        assert!(said.contains(says), "{flood}: {said}");
    }
}

#[test]
fn a_name_of_a_source_and_of_a_flow_says_which() {
    let both = GATEWAY.replace("name = \"frames\"", "name = \"eth\"");
    let said = refused(&simulate(&both, &["--flood", "eth=1kHz"]));
    assert!(
        said.contains("`eth` is a source and a flow help: write source.eth or flow.eth"),
        "{said}"
    );
    let arguments = ["--flood", "flow.eth=1kHz", "--duration", "10ms"];
    assert_eq!(simulate(&both, &arguments).code, Some(0));
}

#[test]
fn other_options_that_cannot_be_used_are_refused() {
    for (arguments, says) in [
        (&["--duration", "0s"][..], "`0s` is not more than zero"),
        (
            &["--duration", "1000000000s", "--tick", "1000000000s"],
            "more than 2^62 cycles",
        ),
        (&["--costs", "gauss:1%"], "there is no distribution `gauss`"),
        (
            &["--costs-of", "task=worst"],
            "there are no costs of `task`",
        ),
        (&["--closed-loop", "vidoe=1ms"], "did you mean `video`?"),
        (&["--compensation", "counted"], "--tick"),
        (&["--tick", "10"], "`10` has no unit"),
        (&["--seed", "-1"], "-1"),
    ] {
        let faster = GATEWAY.replace("100MHz", "100000MHz");
        let said = refused(&simulate(&faster, arguments));
        assert!(said.contains(says), "{arguments:?}: {said}");
    }
}

#[test]
fn a_system_file_is_refused_as_check_refuses_it() {
    let bad = GATEWAY.replace("urgency = 10", "urgency = 1000");
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("system.toml");
    std::fs::write(&path, bad).unwrap();
    let printed = simulate_file(&path, &[]);
    assert_eq!(printed.code, Some(2));
    assert_eq!(printed.err, crate::common::check_file(&path, &[]).err);
    let missing = folder.path().join("none.toml");
    let printed = simulate_file(&missing, &[]);
    assert_eq!(printed.code, Some(2));
    assert_eq!(printed.err, crate::common::check_file(&missing, &[]).err);
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[test]
fn a_request_that_was_never_served_is_one_of_those_that_should_have_been() {
    let text = r#"schema = 1
[cpu]
board = "atmega128"
clock = "4MHz"
[[source]]
name = "long"
vector = "INT0"
handler = "9ms"
max_work = 1
rate = { expected = "10Hz", worst = "10Hz" }
[[source]]
name = "short"
vector = "INT1"
handler = "9us"
max_work = 1
deadline = "1ms"
rate = { expected = "10Hz", worst = "10Hz" }
"#;
    let said = verdict(&simulate(text, &["--duration", "5ms"]));
    assert!(said.contains("short misses 1 of 1 deadline"), "{said}");
}

#[test]
fn patterns_are_rounded_for_people_and_exact_in_json() {
    let flood = "encoder=mmpp:14.925373134328359kHz:burst=50:gap=100.0001234\u{b5}s";
    let arguments = ["--flood", flood, "--duration", "10ms"];
    let text = simulate_file(&example("motor-controller"), &arguments).out;
    assert!(
        text.contains("encoder at mmpp:14.93kHz:burst=50:gap=100µs"),
        "{text}"
    );
    let exact = json(&simulate_file(
        &example("motor-controller"),
        &[&arguments[..], &["--json"]].concat(),
    ));
    let exact = exact["arrivals"].to_string();
    assert!(
        exact.contains("mmpp:14.925373134328359kHz:burst=50:gap=1600cycles"),
        "{exact}"
    );
}

#[test]
fn pictures_and_timelines_are_written() {
    let folder = TempDir::new().unwrap();
    let (plot, trace) = (
        folder.path().join("out.svg"),
        folder.path().join("out.perfetto"),
    );
    let write = || {
        let printed = run(weir()
            .arg("simulate")
            .arg(example("flight-controller"))
            .args(["--flood", "ignition", "--duration", "100ms"])
            .arg("--plot")
            .arg(&plot)
            .arg("--trace")
            .arg(&trace));
        assert_eq!(printed.code, Some(0), "{}", printed.err);
        (
            std::fs::read_to_string(&plot).unwrap(),
            std::fs::read(&trace).unwrap(),
        )
    };
    let (svg, timeline) = write();
    for text in [
        "attitude",
        "telemetry",
        "bound of weir check",
        "none ended",
        "</svg>",
    ] {
        assert!(svg.contains(text), "{text}");
    }
    assert!(timeline.len() > 10_000);
    // Writing again replaces the old files with the same content.
    assert!(write() == (svg, timeline));
    assert_eq!(names(folder.path()), ["out.perfetto", "out.svg"]);
}

#[test]
fn what_cannot_be_written_is_said_and_leaves_nothing() {
    let folder = TempDir::new().unwrap();
    let blocked = folder.path().join("blocked");
    std::fs::write(&blocked, "a file").unwrap();
    for option in ["--trace", "--plot"] {
        let inside = blocked.join("out");
        for path in [inside.as_path(), folder.path()] {
            let printed = run(weir()
                .arg("simulate")
                .arg(example("flight-controller"))
                .arg(option)
                .arg(path));
            let said = refused(&printed);
            assert!(said.starts_with("cannot write "), "{said}");
        }
    }
    assert_eq!(names(folder.path()), ["blocked"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_device_is_said() {
    for option in ["--trace", "--plot"] {
        let printed = simulate_file(&example("flight-controller"), &[option, "/dev/full"]);
        let said = refused(&printed);
        assert!(
            said.contains("cannot write /dev/full: No space left on device"),
            "{said}"
        );
    }
}

/// A limit on the size of files makes a write fail in the middle, as a full disk does.
#[cfg(unix)]
#[test]
fn a_timeline_that_finds_no_room_leaves_what_was_there() {
    let folder = TempDir::new().unwrap();
    let out = folder.path().join("out.perfetto");
    let before = b"\nweir simulate";
    std::fs::write(&out, before).unwrap();
    let mut command = assert_cmd::Command::new("sh");
    command
        .args(["-c", "trap '' XFSZ; ulimit -f 64; exec \"$@\"", "sh"])
        .arg(assert_cmd::cargo::cargo_bin("weir"))
        .arg("simulate")
        .arg(example("flight-controller"))
        .arg("--trace")
        .arg(&out);
    let said = refused(&run(&mut command));
    assert!(said.starts_with("cannot write "), "{said}");
    assert_eq!(names(folder.path()), ["out.perfetto"]);
    assert_eq!(std::fs::read(&out).unwrap(), before);
}

#[test]
fn the_same_seed_gives_the_same_bytes_on_any_number_of_threads() {
    let of = |seed: &str, threads: &str| {
        let mut command = weir();
        command
            .arg("simulate")
            .arg(example("motor-controller"))
            .args([
                "--flood",
                "encoder=poisson:30kHz",
                "--costs",
                "normal:60%:10%",
            ])
            .args(["--seed", seed, "--duration", "1s", "--json"])
            .env("RAYON_NUM_THREADS", threads);
        run(&mut command).out
    };
    let first = of("7", "1");
    assert_eq!(first, of("7", "1"));
    assert_eq!(first, of("7", "2"));
    assert_ne!(first, of("8", "2"));
}

#[test]
fn slices_that_an_account_shortens_are_not_what_the_bounds_rest_on() {
    let sliced = GATEWAY.replace("[cpu.costs.off]", "time_slice = \"1ms\"\n[cpu.costs.off]");
    let excuses = |arguments: &[&str]| {
        let all = [
            &["--json", "--duration", "100ms", "--tick", "10ms"],
            arguments,
        ]
        .concat();
        json(&simulate(&sliced, &all))["bounds"]["not_for_this_run"].clone()
    };
    let shortened = "the account shortened time slices";
    let says = |of: &Value| of.as_array().unwrap().iter().any(|why| why == shortened);
    assert!(says(&excuses(&["--compensation", "measured"])));
    assert!(!says(&excuses(&[])));
}
