// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests the text that tuning writes. It can be read and keeps the deadlines, tuning it again does
//! not change it, and all other text stays the same.

use std::path::Path;

use proptest::prelude::*;
use weir_analysis::analyse;
use weir_analysis::tune::{Demand, Options, Outcome, Session, SessionError, write_back};
use weir_model::{Expiry, Policy, Rate, System, parse};

fn tune(text: &str, options: Options) -> Option<Outcome> {
    let session = Session::new("test.toml", text, options).unwrap();
    session.tune(&|_, _| ())
}

/// Tunes `text`. Checks that the result keeps the deadlines, that tuning it again does not change
/// it, and that a file can state every choice that it was compared with.
fn tuned(text: &str) -> Outcome {
    let outcome = tune(text, Options::default()).expect("there are limits");
    let session = Session::new("test.toml", text, Options::default()).unwrap();
    for other in &outcome.alternatives {
        let (system, platform) = (session.system(), session.platform());
        let written = write_back(text, system, platform, &other.plan).unwrap();
        let read = parse("test.toml", &written).unwrap();
        assert!(analyse(&read).holds(), "{written}");
    }
    let read = parse("test.toml", &outcome.text).unwrap();
    assert_eq!(read, outcome.system);
    assert!(analyse(&read).holds());
    let again = tune(&outcome.text, Options::default()).expect("there are limits still");
    assert_eq!(again.text, outcome.text);
    // Keys that are added or removed leave no space before a comma, and take none from a brace.
    for odd in [" ,", "\"}", "1}"] {
        let count = |text: &str| text.matches(odd).count();
        assert!(count(&outcome.text) <= count(text), "{}", outcome.text);
    }
    outcome
}

fn limit_of<'a>(system: &'a System, name: &str) -> &'a weir_model::Limit {
    &system
        .sources
        .iter()
        .find(|source| source.name == name)
        .unwrap()
        .limit
}

/// The lines of `text` without the keys that tuning may change, which are those of limits and
/// timers.
fn rest(text: &str) -> Vec<String> {
    let keys = [
        "limit",
        "policy",
        "timing",
        "burst",
        "rate =",
        "interval",
        "period",
        "timer =",
        "prescaler",
    ];
    text.lines()
        .filter(|line| {
            let line = line.trim_start();
            let is_band = line.starts_with("rate = {");
            is_band || !keys.iter().any(|key| line.starts_with(key))
        })
        .map(str::to_owned)
        .collect()
}

/// Whether `lines` occur in `text` in the same order.
fn follow(lines: &[String], text: &[String]) -> bool {
    let mut text = text.iter();
    lines.iter().all(|line| text.any(|of| of == line))
}

fn comments(text: &str) -> Vec<String> {
    let mut found: Vec<String> = text
        .lines()
        .filter_map(|line| line.split_once('#'))
        .map(|(_, comment)| comment.trim().to_owned())
        .collect();
    found.sort();
    found
}

const NODE: &str = r#"# The node of regehr2005 §3.5.
schema = 1

[cpu]   # as in §6.1
board = "atmega128"
clock = "4MHz"

[[source]]
name = "first"   # the first
vector = "INT0"
handler = "250 cycles"
max_work = 1
rate = { expected = "324Hz" }

[[source]]
# What follows is out of the usual order.
rate = { expected = "200Hz" }
max_work = 1
name = "second"
vector = "INT1"
handler = "250 cycles"

[[source]]
name = "third"
vector = "INT2"
handler = "250 cycles"
max_work = 1
[source.rate]
expected = "754Hz"   # at most

[[receiver]]
name = "work"
urgency = 1
period = "20ms"
deadline = "20ms"
wcet = "6ms"
# The end.
"#;

#[test]
fn sources_without_limits_get_a_timer_that_they_share() {
    let outcome = tuned(NODE);
    assert_eq!(outcome.system.timers.len(), 1);
    for name in ["first", "second", "third"] {
        let limit = limit_of(&outcome.system, name);
        assert_eq!(limit.policy, Policy::Bursty);
        assert_eq!(limit.expiry, Some(Expiry::Shared(0)));
    }
    assert_eq!(comments(&outcome.text), comments(NODE));
    let (before, after) = (rest(NODE), rest(&outcome.text));
    // Only the section of the timer was added.
    let added: Vec<&String> = after.iter().filter(|line| !before.contains(line)).collect();
    assert_eq!(
        added,
        ["[[timer]]", "name = \"shared\"", "channel = \"TIMER1A\""]
    );
    assert!(follow(&before, &after), "{}", outcome.text);
}

#[test]
fn a_pinned_timer_gives_the_bursts_of_the_paper() {
    let options = Options {
        timer_rate: Some("110Hz".parse::<Rate>().unwrap()),
        ..Options::default()
    };
    let outcome = tune(NODE, options).unwrap();
    let bursts: Vec<u32> = outcome
        .system
        .sources
        .iter()
        .map(|of| of.limit.burst)
        .collect();
    assert_eq!(bursts, [3, 2, 7]);
    assert!(
        outcome.text.contains("rate = \"110Hz\"") || outcome.text.contains("rate = \"109.9"),
        "{}",
        outcome.text
    );
}

#[test]
fn comments_beside_what_changes_stay() {
    let text = NODE
        .replace(
            "max_work = 1\nrate = { expected = \"324Hz\" }",
            "max_work = 1\nrate = { expected = \"324Hz\" }\n[source.limit]   # the first's\n# how\npolicy = \"bursty\"\n# how many\nburst = 3   # three\n# how often\nrate = \"330Hz\"   # a bit more\n# by what\ntimer = \"TIMER3A\"  # free\n",
        );
    let outcome = tuned(&text);
    assert_ne!(outcome.text, text);
    assert_eq!(comments(&outcome.text), comments(&text), "{}", outcome.text);
}

#[test]
fn the_examples_are_tuned_and_stay_so() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    for name in [
        "shared-timer",
        "flight-controller",
        "motor-controller",
        "valve-controller",
    ] {
        let text = std::fs::read_to_string(examples.join(name).join("system.toml")).unwrap();
        let outcome = tuned(&text);
        assert_eq!(comments(&outcome.text), comments(&text), "{}", outcome.text);
        assert!(
            follow(&rest(&text), &rest(&outcome.text)),
            "{}",
            outcome.text
        );
    }
}

#[test]
fn the_ends_of_lines_stay() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let text = std::fs::read_to_string(examples.join("motor-controller/system.toml")).unwrap();
    let plain = tuned(&text).text;
    let of_other_editors = |text: &str| format!("\u{feff}{}", text.replace('\n', "\r\n"));
    let outcome = tuned(&of_other_editors(&text));
    assert_eq!(outcome.text, of_other_editors(&plain));
    // If the line ends differ, each line keeps its own.
    let (before, after) = text.split_once("[[receiver]]\n").unwrap();
    let mixed = format!("{}[[receiver]]\n{after}", before.replace('\n', "\r\n"));
    let (_, rest) = mixed.split_once("[[receiver]]").unwrap();
    let outcome = tuned(&mixed);
    assert!(outcome.text.ends_with(rest), "{:?}", outcome.text);
    assert_eq!(outcome.text.replace("\r\n", "\n"), plain);
}

#[test]
fn a_priority_that_no_limit_can_have_is_refused_before_a_search() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/valve-controller");
    let example = std::fs::read_to_string(example.join("system.toml")).unwrap();
    let bare = example
        .lines()
        .filter(|line| !line.starts_with("limit ="))
        .fold(String::new(), |text, line| text + line + "\n");
    let urgent = bare.replace("priority = 128", "priority = 0");
    let off = |text: &str| {
        let name = "name = \"limit-switch\"";
        text.replace(name, &format!("{name}\nlimit = {{ policy = \"off\" }}"))
    };
    let new = |text: &str| Session::new("test.toml", text, Options::default());
    // `pressure` states no rate that would need a limit.
    for (text, wrong) in [(urgent.clone(), 2), (off(&urgent), 1)] {
        let refused = new(&text).unwrap_err();
        let SessionError::File(refused) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(refused.problems().len(), wrong, "{refused:?}");
        for problem in refused.problems() {
            let what = "no priority 0, which BASEPRI cannot hold back";
            assert!(problem.message().contains(what), "{refused:?}");
            let at = problem.spans().next().unwrap().offset();
            assert!(text[..at].ends_with("priority = "), "{refused:?}");
            assert!(problem.advice().unwrap().contains("write 2 or more"));
        }
    }
    assert!(new(&bare.replace("priority = 32", "priority = 0")).is_ok());
}

#[test]
fn what_is_off_or_out_of_reach_stays_without_a_limit() {
    let text = NODE
        .replace("vector = \"INT0\"", "vector = \"USART0_RX\"")
        .replace(
            "name = \"second\"",
            "name = \"second\"\nlimit = { policy = \"off\" }",
        );
    let text = text
        .replace(
            "expected = \"324Hz\"",
            "expected = \"324Hz\", worst = \"1kHz\"",
        )
        .replace(
            "expected = \"200Hz\"",
            "expected = \"200Hz\", worst = \"1kHz\"",
        );
    let session = Session::new("test.toml", &text, Options::default()).unwrap();
    assert_eq!(session.task().tuned.len(), 1);
    assert_eq!(session.out_of_reach().collect::<Vec<_>>(), [0]);
    let outcome = tuned(&text);
    assert_eq!(limit_of(&outcome.system, "first").policy, Policy::Off);
    assert_eq!(limit_of(&outcome.system, "second").policy, Policy::Off);
}

#[test]
fn hardware_is_tuned_without_a_timer() {
    let text = NODE.replace(
        "name = \"second\"",
        "name = \"second\"\nlimit = { policy = \"strict\", place = \"hardware\", rate = \"201Hz\" }",
    );
    let outcome = tuned(&text);
    let limit = limit_of(&outcome.system, "second");
    assert_eq!(
        (limit.policy, &limit.expiry, limit.interval.cycles()),
        // 20 000 cycles would be as slow as the expected rate, but no rate of 24 bits gives that
        // interval.
        (Policy::Strict, &None, 19_997)
    );
}

#[test]
fn limits_in_silicon_are_tuned_where_there_is_no_timer_at_all() {
    let text = r#"
schema = 1
[cpu]
clock = "4MHz"
interrupts = "flat"
longest_instruction = "4 cycles"
costs.off.request_served = "50 cycles"
[silicon]
phase_bits = 20
[[source]]
name = "bursts"
vector = "A"
order = 0
handler = "100 cycles"
max_work = 1
rate = { expected = "1kHz" }
limit = { policy = "bursty", place = "hardware", burst = 4, rate = "2kHz" }
[[source]]
name = "bucket"
vector = "B"
order = 1
handler = "100 cycles"
max_work = 1
rate = { expected = "1kHz" }
limit = { policy = "bucket", place = "hardware", burst = 2, rate = "2kHz" }
[[receiver]]
name = "task"
urgency = 1
period = "10ms"
deadline = "10ms"
wcet = "5ms"
"#;
    let outcome = tuned(text);
    for (name, policy, burst, interval) in [
        // These are the longest intervals of a rate that does not limit a healthy source.
        ("bursts", Policy::Bursty, 4, 15_888),
        ("bucket", Policy::Bucket, 2, 3_987),
    ] {
        let limit = limit_of(&outcome.system, name);
        assert_eq!(
            (limit.policy, limit.burst, limit.interval.cycles()),
            (policy, burst, interval)
        );
    }
}

const OWN: &str = r#"
schema = 1
[cpu]
clock = "48MHz"
interrupts = "grouped"
longest_instruction = "12 cycles"
[cpu.costs]
off = { request_served = "30 cycles" }
shared = { request_served = "40 cycles", expiry_base = "40 cycles", clear_empty = "10 cycles" }
strict.lazy = { request_served = "50 cycles", request_refused = "45 cycles", expiry_served = "60 cycles", expiry_empty = "50 cycles" }
[[timer]]
name = "tim2"
width = 32
divisors = [1, 4]
group = 1
order = 28
[[timer]]
name = "tim3"
width = 16
divisors = [1, 4, 16]
group = 1
order = 29
[[source]]
name = "a"
vector = "EXTI0"
group = 2
order = 6
handler = "300 cycles"
max_work = 1
rate = { expected = "500Hz", tolerated = "5kHz" }
[[source]]
name = "b"
vector = "EXTI1"
group = 2
order = 7
handler = "300 cycles"
max_work = 1
rate = { expected = "40Hz" }
[[receiver]]
name = "loop"
urgency = 9
period = "1ms"
deadline = "1ms"
wcet = "600us"
"#;

#[test]
fn without_a_board_the_files_timers_are_used() {
    let outcome = tuned(OWN);
    assert!(
        outcome.found.measure.scale_percent > 50,
        "{:?}",
        outcome.found
    );
    for name in ["a", "b"] {
        assert_ne!(limit_of(&outcome.system, name).policy, Policy::Off);
    }
}

#[test]
fn the_fast_flavour_has_its_rules() {
    let text = NODE.replace(
        "board = \"atmega128\"",
        "board = \"atmega128\"\nflavour = \"fast\"",
    );
    let outcome = tuned(&text);
    assert_eq!(outcome.system.timers.len(), 1);
}

#[test]
fn demands_that_fail_together_are_found() {
    let text = NODE
        .replace("deadline = \"20ms\"", "deadline = \"7ms\"")
        .replace("324Hz", "6kHz");
    let session = Session::new("test.toml", &text, Options::default()).unwrap();
    assert!(session.tune(&|_, _| ()).is_none());
    let conflict = session.explain();
    assert_eq!(conflict.demands, [Demand::TaskDeadline(0), Demand::Rate(0)]);
    assert!(!conflict.for_want_of_timers);
}

#[test]
fn an_expected_rate_that_no_timer_gives_is_found() {
    let text = NODE.replace("324Hz", "1.9MHz");
    let session = Session::new("test.toml", &text, Options::default()).unwrap();
    assert!(session.tune(&|_, _| ()).is_none());
    assert!(session.explain().demands.contains(&Demand::Rate(0)));
}

proptest! {
    #![proptest_config(crate::cases(4, 8))]

    #[test]
    fn any_tuned_file_stays_as_it_is(
        rates in prop::collection::vec((50..900_u32, 1..4_u32, 60..500_u32), 1..4),
        wcet in 1..12_u32,
        one_own: bool,
    ) {
        let mut text = "schema = 1\n[cpu]\nboard = \"atmega128\" # board\nclock = \"4MHz\"\n".to_owned();
        for (number, (expected, times, handler)) in rates.iter().enumerate() {
            text += &format!("# source {number}\n[[source]]\nname = \"s{number}\" # name\nvector = \"INT{number}\"\nhandler = \"{handler} cycles\"\nmax_work = 1\nrate = {{ expected = \"{expected}Hz\", tolerated = \"{}Hz\" }} # band\n", expected * times);
            if number == 0 && one_own {
                text += &format!("limit = {{ policy = \"bucket\", burst = 2, rate = \"{expected}.5Hz\", timer = \"TIMER3B\" }} # own\n");
            }
        }
        text += &format!("[[receiver]]\nname = \"r\"\nurgency = 1\nperiod = \"20ms\"\ndeadline = \"20ms\"\nwcet = \"{wcet}ms\"\n");
        let Ok(_) = parse("test.toml", &text) else { return Ok(()); };
        if tune(&text, Options::default()).is_some() {
            let outcome = tuned(&text);
            prop_assert_eq!(comments(&outcome.text), comments(&text));
            prop_assert!(follow(&rest(&text), &rest(&outcome.text)));
        }
    }
}
