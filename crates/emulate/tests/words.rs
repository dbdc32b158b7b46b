// SPDX-License-Identifier: GPL-3.0-or-later
//! Tests every keyword of a limit on every board: it is rejected at its line when the file is read,
//! or code is generated for it and compiles. The keywords come from the model's enums, so that new
//! ones are tested automatically.

use std::collections::BTreeMap;

use miette::Diagnostic;
use rayon::prelude::*;
use weir_analysis::tune::{Options, Session};
use weir_boards::{Board, Flavour, Port};
use weir_generate::{ChipPlan, SiliconPlan};
use weir_model::{Expiry, Interval, Place, Policy, System, Timing, Trigger, parse};

use crate::cortex::generated::{build, program};
use crate::generated::Generated;

/// An interval in cycles that every timer supports.
const CYCLES: u64 = 800;

/// The keywords of a limit in a file. `None` means that the file leaves the key out.
#[derive(Debug, Clone, Copy)]
struct Words<'a> {
    policy: Policy,
    timing: Option<Timing>,
    place: Option<Place>,
    trigger: Option<Trigger>,
    /// The channel of the board, and whether the limit shares it.
    timer: Option<(&'a str, bool)>,
}

/// Returns each keyword, and `None` for a missing key.
fn or_none<T: Copy>(all: &[T]) -> Vec<Option<T>> {
    let stated = all.iter().copied().map(Some);
    std::iter::once(None).chain(stated).collect()
}

/// Returns all combinations of keywords with these channels.
fn all_words(channels: &[String]) -> Vec<Words<'_>> {
    let mut all = Vec::new();
    let own = channels.iter().map(|name| Some((name.as_str(), false)));
    let shared = channels.iter().map(|name| Some((name.as_str(), true)));
    let timers: Vec<Option<(&str, bool)>> = [None].into_iter().chain(own).chain(shared).collect();
    for policy in Policy::ALL {
        for timing in or_none(&Timing::ALL) {
            for place in or_none(Place::ALL) {
                for trigger in or_none(Trigger::ALL) {
                    all.extend(timers.iter().map(|&timer| Words {
                        policy,
                        timing,
                        place,
                        trigger,
                        timer,
                    }));
                }
            }
        }
    }
    all
}

/// The processor of a file with the channels of its timers.
#[derive(Debug, Clone, Copy)]
struct Processor {
    board: &'static Board,
    flavour: Flavour,
}

impl Processor {
    fn all() -> Vec<Self> {
        let of_board = |board: &'static Board| {
            let flavours = board.flavours().into_iter().filter_map(Flavour::named);
            flavours.map(move |flavour| Self { board, flavour })
        };
        Board::all().iter().flat_map(of_board).collect()
    }

    fn channels(self) -> Vec<String> {
        self.board
            .channels()
            .map(|channel| channel.name())
            .collect()
    }

    /// Returns a prescaler divisor that every flavour supports.
    fn divisor(self, channel: &str) -> u64 {
        let timer = self.board.channel(channel).unwrap().timer;
        *timer.divisors.iter().find(|&&of| of >= 8).unwrap()
    }

    /// Returns a file with these keys of a limit, and with a line without a limit. Every keyword is
    /// on a line of its own.
    fn text(self, limit: &str, timer: &str) -> String {
        let board = self.board;
        let rate = |cycles| board.clock_hz / cycles;
        let priority = if board.priorities.is_some() {
            "priority = 128\n"
        } else {
            ""
        };
        let line = |number: usize| &board.lines[number].name;
        format!(
            "schema = 1\nname = \"words\"\n[cpu]\nboard = \"{}\"\nflavour = \"{}\"\n{timer}\
             [[source]]\nname = \"free\"\nvector = \"{}\"\n{priority}handler = \"20 cycles\"\nmax_work = 1\n\
             limit = {{ policy = \"off\" }}\n\
             [[source]]\nname = \"limited\"\nvector = \"{}\"\n{priority}handler = \"20 cycles\"\nmax_work = 1\n\
             rate = {{ expected = \"{}Hz\", tolerated = \"{}Hz\" }}\n{limit}",
            board.name,
            self.flavour.name(),
            line(1),
            line(0),
            rate(4 * CYCLES),
            rate(CYCLES / 4),
        )
    }

    fn text_of(self, words: Words<'_>) -> String {
        let mut limit = format!("[source.limit]\npolicy = \"{}\"\n", words.policy.name());
        let mut key = |name: &str, word: Option<String>| {
            limit += &word.map_or_else(String::new, |word| format!("{name} = {word}\n"));
        };
        let quoted = |word: &str| Some(format!("\"{word}\""));
        key("timing", words.timing.and_then(|of| quoted(of.name())));
        key("place", words.place.and_then(|of| quoted(of.name())));
        key("trigger", words.trigger.and_then(|of| quoted(of.name())));
        key("burst", words.policy.counts().then(|| "2".to_owned()));
        let mut timer = String::new();
        match words.timer {
            Some((channel, true)) => {
                key("timer", quoted("slow"));
                timer = format!(
                    "[[timer]]\nname = \"slow\"\nchannel = \"{channel}\"\nperiod = \"{CYCLES} cycles\"\n"
                );
            }
            Some((channel, false)) => {
                key("timer", quoted(channel));
                key("interval", quoted(&format!("{CYCLES} cycles")));
                key("prescaler", Some(self.divisor(channel).to_string()));
            }
            None if words.policy != Policy::Off => {
                key("interval", quoted(&format!("{CYCLES} cycles")));
            }
            None => {}
        }
        self.text(&limit, &timer)
    }

    /// Compiles the C files for the system, with all warnings that firmware is likely to enable.
    fn compile(self, system: &System) -> Result<(), String> {
        match self.board.port {
            Port::Avr => Generated::new(system).build().map(drop),
            Port::CortexM => build(system, &program(system), &[]).map(drop),
            Port::Riscv => Ok(()),
        }
        .map_err(|error| error.to_string())
    }
}

/// Asserts that every error is shown at a keyword that `words` can contain.
fn assert_shown_at_a_word(text: &str, error: &weir_model::Diagnostics) {
    let known = [
        "policy",
        "timing",
        "place",
        "trigger",
        "burst",
        "timer",
        "interval",
        "prescaler",
        "channel",
        "[source.limit]",
        "[[timer]]",
    ];
    assert!(!error.problems().is_empty());
    for problem in error.problems() {
        let label = problem.labels().into_iter().flatten().next().unwrap();
        let before = &text[..label.offset()];
        let line = &text[before.rfind('\n').map_or(0, |at| at + 1)..];
        assert!(
            known.iter().any(|word| line.starts_with(word)),
            "{problem} at {line}"
        );
    }
}

/// Asserts that the generated limit is what the file states.
fn assert_generated(processor: Processor, words: Words<'_>, system: &System) {
    weir_generate::check(system).unwrap_or_else(|refused| panic!("{words:?}: {refused:?}"));
    if words.policy == Policy::Off {
        return;
    }
    if words.place == Some(Place::Hardware) {
        let plan = SiliconPlan::new(system).unwrap();
        assert_eq!(plan.sources[0].name, "limited", "{words:?}");
        return;
    }
    let plan = ChipPlan::new(system, processor.board).unwrap();
    let limit = plan.sources[1].limit.as_ref().unwrap();
    assert_eq!(limit.policy, words.policy, "{words:?}");
    assert!(words.timing.is_none_or(|timing| timing == limit.timing));
}

/// A limit as far as the compiler sees it. Each such limit is compiled once.
type Kind = (
    String,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    bool,
);

fn kind(processor: Processor, words: Words<'_>, system: &System) -> Kind {
    let limit = &system.sources[1].limit;
    (
        processor.board.name.clone(),
        processor.flavour.name(),
        limit.policy.name(),
        limit.timing.name(),
        limit.place.name(),
        words.timer.is_some_and(|timer| timer.1),
    )
}

#[test]
fn cortex_m_and_avr_words_are_refused_at_their_line_or_generated_and_compiled() {
    if !crate::cortex::can_run() {
        return;
    }
    let mut kinds: BTreeMap<Kind, (Processor, String, System)> = BTreeMap::new();
    for processor in Processor::all() {
        let channels = processor.channels();
        for words in all_words(&channels) {
            let text = processor.text_of(words);
            let session = Session::new("system.toml", &text, Options::default());
            match parse("system.toml", &text) {
                Err(error) => {
                    assert_shown_at_a_word(&text, &error);
                    assert_eq!(session.unwrap_err().to_string(), error.to_string());
                }
                Ok(system) => {
                    assert!(session.is_ok(), "{words:?}");
                    assert_generated(processor, words, &system);
                    kinds
                        .entry(kind(processor, words, &system))
                        .or_insert((processor, text, system));
                }
            }
        }
        let text = processor.text("", "");
        let system = parse("system.toml", &text).unwrap();
        let none = Words {
            policy: Policy::Off,
            timing: None,
            place: None,
            trigger: None,
            timer: None,
        };
        let (board, flavour, ..) = kind(processor, none, &system);
        let kind = (board, flavour, "to be chosen", "", "", false);
        kinds.insert(kind, (processor, text, system));
    }
    // All limits that the ports' rules offer, the shared timers, no limit, and the limits in
    // hardware.
    let of = |board: &str, flavour: &str| {
        let kinds = kinds.keys();
        kinds
            .filter(|of| of.0 == board && of.1 == flavour && of.4 == "software")
            .count()
    };
    assert_eq!(of("atmega128", "c"), 9 + 1 + 1);
    assert_eq!(of("atmega128", "fast"), 4 + 1 + 1);
    assert_eq!(of("mps2-an385", "c"), 9 + 1);
    assert_eq!(of("soc", "c"), 1);
    assert!(kinds.keys().all(|of| of.2 != "poll"), "{:?}", kinds.keys());

    kinds
        .par_iter()
        .for_each(|(kind, (processor, text, system))| {
            let built = processor.compile(system);
            assert!(built.is_ok(), "{kind:?}: {built:?}");
            let session = Session::new("system.toml", text, Options::default()).unwrap();
            if session.idleness().is_some() {
                return;
            }
            let outcome = session.tune(&|_, _| ());
            let outcome = outcome.unwrap_or_else(|| panic!("{kind:?} has no limits\n{text}"));
            let tuned = parse("system.toml", &outcome.text)
                .unwrap_or_else(|error| panic!("{error:?}\n{}", outcome.text));
            weir_generate::check(&tuned).unwrap_or_else(|refused| panic!("{kind:?}: {refused:?}"));
            let built = processor.compile(&tuned);
            assert!(
                built.is_ok(),
                "{kind:?}, tuned: {built:?}\n{}",
                outcome.text
            );
        });
}

/// The reader accepts every limit that the generator supports. Limits that a file cannot express
/// are tried on the generator directly.
#[test]
fn the_reader_and_the_generator_refuse_the_same_limits() {
    for processor in Processor::all() {
        let channels = processor.channels();
        let words = |policy, timing, channel| Words {
            policy,
            timing: Some(timing),
            place: None,
            trigger: None,
            timer: Some((channel, false)),
        };
        // This limit is accepted by both. Its keywords are replaced.
        let mut lazy = channels.iter().filter_map(|channel| {
            let text = processor.text_of(words(Policy::Strict, Timing::Lazy, channel));
            parse("system.toml", &text).ok()
        });
        let Some(right) = lazy.next() else {
            assert!(channels.is_empty());
            continue;
        };
        for channel in &channels {
            for policy in Policy::ALL.into_iter().filter(|&of| of != Policy::Off) {
                for timing in Timing::ALL {
                    let text = processor.text_of(words(policy, timing, channel));
                    let mut system = right.clone();
                    let limit = &mut system.sources[1].limit;
                    let of_board = processor.board.channel(channel).unwrap();
                    let tick = processor.divisor(channel) * of_board.timer.clock_cycles;
                    (limit.policy, limit.timing) = (policy, timing);
                    limit.burst = if policy.counts() { 2 } else { 1 };
                    limit.interval = Interval {
                        ticks: CYCLES / tick,
                        tick,
                    };
                    if let Some(Expiry::Own { channel: of, .. }) = &mut limit.expiry {
                        of.clone_from(channel);
                    }
                    assert_eq!(
                        parse("system.toml", &text).is_ok(),
                        ChipPlan::new(&system, processor.board).is_ok(),
                        "{processor:?} {policy:?} {timing:?} {channel}"
                    );
                }
            }
        }
    }
}
