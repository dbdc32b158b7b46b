// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests the tuner's advice if no limits are feasible: other priorities, timers and flavours, and
//! limits in hardware. Each advice is sufficient if it is followed, and no insufficient advice is
//! given.
use weir_analysis::tune::{Options, Remedy, Session};

fn session(text: &str) -> Session {
    Session::new("test.toml", text, Options::default()).unwrap()
}

/// Sources on a board with one timer, which can limit sources of one priority.
const ONE_TIMER: &str = r#"schema = 1
name = "sys"
[cpu]
board = "mps2-an385"
critical_section = "80 cycles"
context_switch = "160 cycles"
[[source]]
name = "meter"
vector = "IRQ20"
priority = 64
handler = "90 cycles"
max_work = 1
rate = { expected = "1200Hz", tolerated = "5kHz" }
[[source]]
name = "switch"
vector = "IRQ22"
priority = 128
handler = "70 cycles"
max_work = 1
rate = { expected = "2Hz", tolerated = "100Hz", worst = "loose-wire" }
[[receiver]]
name = "loop"
urgency = 40
period = "1ms"
deadline = "600us"
wcet = "400us"
"#;

#[test]
fn sources_that_share_a_timer_are_advised_to_have_one_priority() {
    let session = session(ONE_TIMER);
    assert!(session.tune(&|_, _| ()).is_none());
    let remedies = session.explain().remedies;
    assert_eq!(
        remedies.first(),
        Some(&Remedy::PriorityOf(0)),
        "{remedies:?}"
    );
    let session = self::session(&ONE_TIMER.replace("priority = 128", "priority = 64"));
    assert!(session.tune(&|_, _| ()).is_some());
}

/// Two limits on one counter. The slow one needs a prescaler of 64, whose ticks are too coarse for
/// the other. The file states both timers.
const ONE_COUNTER: &str = r#"schema = 1
name = "two"
[cpu]
board = "atmega128"
clock = "4MHz"
critical_section = "100 cycles"
context_switch = "180 cycles"
[[source]]
name = "fast"
vector = "INT7"
handler = "56 cycles"
max_work = 3
rate = { expected = "3870Hz", tolerated = "4664Hz", worst = "107272Hz" }
deadline = "13547 cycles"
limit = { policy = "paced", rate = "3950Hz", timer = "TIMER3C" }
[[source]]
name = "slow"
vector = "INT0"
handler = "368 cycles"
max_work = 1
rate = { expected = "6Hz", tolerated = "8Hz", worst = "loose-wire" }
deadline = "2150 cycles"
limit = { policy = "strict", timing = "eager", rate = "7Hz", timer = "TIMER3B" }
[[receiver]]
name = "long"
urgency = 3
period = "391822 cycles"
deadline = "391822 cycles"
wcet = "262079 cycles"
[[receiver]]
name = "short"
urgency = 24
period = "86766 cycles"
deadline = "109638 cycles"
wcet = "6416 cycles"
"#;

#[test]
fn a_limit_whose_stated_timer_does_not_do_is_advised_to_have_another() {
    let session = session(ONE_COUNTER);
    assert!(session.tune(&|_, _| ()).is_none());
    let remedies = session.explain().remedies;
    let moved = remedies.iter().filter_map(|remedy| match *remedy {
        Remedy::OtherTimer(source, channel) => Some((source, channel)),
        _ => None,
    });
    let mut tried = 0;
    for (source, channel) in moved {
        let channel = &session.task().platform.channels[channel].name;
        let stated = ["TIMER3C", "TIMER3B"][source];
        assert!(channel.starts_with("TIMER1"), "{channel}");
        let session = self::session(&ONE_COUNTER.replace(stated, channel));
        assert!(session.tune(&|_, _| ()).is_some(), "{stated} {channel}");
        tried += 1;
    }
    assert!(tried > 0, "{remedies:?}");
}

/// A source that no timer can limit, on a board whose timers belong to hardware.
const NO_TIMER: &str = r#"schema = 1
name = "sys"
[cpu]
board = "soc"
clock = "4MHz"
context_switch = "84 cycles"
critical_section = "32 cycles"
[[source]]
name = "s0"
vector = "INT0"
handler = "94 cycles"
max_work = 1
rate = { expected = "1250Hz" }
LIMIT
[[source]]
name = "s1"
vector = "INT1"
handler = "289 cycles"
max_work = 1
rate = { expected = "62Hz", tolerated = "124Hz" }
limit = { policy = "strict", place = "hardware", rate = "124Hz" }
[[receiver]]
name = "r"
urgency = 11
period = "1ms"
wcet = "258us"
deadline = "1ms"
"#;

#[test]
fn a_source_that_no_timer_can_limit_is_advised_to_be_limited_in_hardware() {
    let session = session(&NO_TIMER.replace("LIMIT", ""));
    assert!(session.tune(&|_, _| ()).is_none());
    assert_eq!(session.explain().remedies, [Remedy::InHardware(0)]);
    let limit = r#"limit = { policy = "strict", place = "hardware", rate = "1250Hz" }"#;
    let session = self::session(&NO_TIMER.replace("LIMIT", limit));
    assert!(session.tune(&|_, _| ()).is_some());
}

/// A limit in hardware is not advised if silicon has no interval for it. The parameters of the
/// silicon count even though no limit of the file is in hardware yet.
#[test]
fn what_does_not_fit_the_silicon_is_not_advised() {
    let first = NO_TIMER.find("limit = { policy").unwrap();
    let end = first + NO_TIMER[first..].find('\n').unwrap();
    let free = format!("{}{}", &NO_TIMER[..first], &NO_TIMER[end..]).replace("LIMIT", "");
    let quiet = free.replace(
        "rate = { expected = \"62Hz\", tolerated = \"124Hz\" }",
        "rate = { worst = \"124Hz\" }",
    );
    for (silicon, remedies) in [
        ("", &[Remedy::InHardware(0)][..]),
        // Intervals from 2,910 to 3,200 cycles would be suitable. 2^16 / 21 is 3,121; 2^14 / 5 is
        // 3,277, and 2^14 / 6 is 2,731.
        ("phase_bits = 16", &[Remedy::InHardware(0)]),
        ("phase_bits = 14", &[]),
        // The interval would be at most 2^8 cycles, or at least 2^16 / 3.
        ("phase_bits = 8", &[]),
        ("phase_bits = 16\nrate_bits = 2", &[]),
    ] {
        let text = quiet.replace(
            "[[receiver]]",
            &format!("[silicon]\n{silicon}\n[[receiver]]"),
        );
        let session = session(&text);
        assert!(session.tune(&|_, _| ()).is_none());
        let advised = session.explain().remedies;
        let advised: Vec<Remedy> = advised
            .into_iter()
            .filter(|of| matches!(of, Remedy::InHardware(_)))
            .collect();
        assert_eq!(advised, remedies, "{text}");
    }
}

/// Two sources on a flavour that limits one source, or four lines that share a timer. The second
/// source is not one of these lines.
const ONE_LIMIT: &str = r#"schema = 1
name = "fast"
[cpu]
board = "atmega128"
flavour = "fast"
clock = "1MHz"
critical_section = "0 cycles"
context_switch = "100 cycles"
[[source]]
name = "near"
vector = "INT1"
handler = "342 cycles"
max_work = 1
rate = { expected = "42Hz", tolerated = "142Hz" }
[[source]]
name = "far"
vector = "INT7"
handler = "366 cycles"
max_work = 1
rate = { expected = "8Hz", tolerated = "33Hz", worst = "5kHz" }
[[receiver]]
name = "job"
urgency = 13
period = "119790 cycles"
deadline = "119790 cycles"
wcet = "22454 cycles"
"#;

#[test]
fn a_flavour_with_one_limit_gives_way_to_one_with_more() {
    let fast = session(ONE_LIMIT);
    assert!(fast.only_shared());
    assert_eq!(fast.out_of_reach().collect::<Vec<_>>(), [1]);
    assert!(fast.tune(&|_, _| ()).is_none());
    assert_eq!(
        fast.explain().remedies,
        [
            Remedy::OtherFlavour,
            Remedy::InHardware(0),
            Remedy::InHardware(1)
        ]
    );
    let c = ONE_LIMIT.replace("\"fast\"\nclock", "\"c\"\nclock");
    assert!(session(&c).tune(&|_, _| ()).is_some());
    // If it is the only source, the line that cannot share has the timer for itself.
    let band = "rate = { expected = \"42Hz\", tolerated = \"142Hz\" }";
    let alone = ONE_LIMIT.replace(
        band,
        "limit = { policy = \"off\" }\nrate = { worst = \"10Hz\" }",
    );
    let alone = session(&alone);
    assert!(!alone.only_shared());
    assert!(alone.tune(&|_, _| ()).is_some());
    // If the source interrupts rarely enough, it needs no limit.
    let rare = session(&ONE_LIMIT.replace("5kHz", "50Hz"));
    assert!(rare.tune(&|_, _| ()).is_some());
}
