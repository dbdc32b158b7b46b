// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whatever becomes of a good file, it is either refused, with an error that points into it, or a
//! system that keeps its promises. Nothing panics.

use crate::common::{example_path, invariants, shown};
use proptest::prelude::*;
use proptest::sample::{Index, select};

const OWN: &str = include_str!("data/own-cpu.toml");

/// What numbers and words become.
const WORDS: &[&str] = &[
    "0",
    "-1",
    "1",
    "2",
    "7",
    "255",
    "256",
    "65535",
    "65536",
    "4294967296",
    "9223372036854775807",
    "1e308",
    "nan",
    "-inf",
    "true",
    "\"\"",
    "\"0\"",
    "\"-1Hz\"",
    "\"1e300s\"",
    "\"0 cycles\"",
    "\"1cycle\"",
    "\"4611686018427387904cycles\"",
    "\"1e-300Hz\"",
    "\"1000000MHz\"",
    "\"1e9s\"",
    "\"1ns\"",
    "\"é\"",
    "[]",
    "{}",
    "[[]]",
    "1979-05-27",
    "\"TIMER0\"",
    "\"TIMER1A\"",
    "\"TIMER3C\"",
    "\"INT0\"",
    "\"a\"",
    "\"off\"",
    "\"strict\"",
    "\"bursty\"",
    "\"bucket\"",
    "\"poll\"",
    "\"eager\"",
    "\"one_shot\"",
    "\"hardware\"",
    "\"memory\"",
    "\"level\"",
    "\"fast\"",
    "\"usb\"",
    "\"cooperative\"",
    "\"grouped\"",
];
const PIECES: &[&str] = &[
    "\"",
    "'",
    "[",
    "]",
    "[[",
    "{",
    "}",
    "=",
    ".",
    ",",
    "#",
    "\n",
    "\r",
    "\u{0}",
    "\u{1b}",
    "\u{feff}",
    "é",
    "𝄞",
    "e",
    "-",
    "0",
    "9",
    "schema = 2",
    "[cpu]",
    "[[source]]\n",
    "[[timer]]\n",
    "[[flow]]\n",
    "width = 8\n",
    "prescaler = 1024\n",
];
const UNITS: &[&str] = &["Hz", "kHz", "MHz", "cycles", "ns", "us", "ms", "s", ""];

/// One thing that can happen to a text.
#[derive(Debug, Clone)]
enum TextChange {
    Truncate(Index),
    Cut(Index, usize),
    Insert(Index, &'static str),
    Byte(Index, u8),
    Value(Index, &'static str),
    Unit(Index, &'static str),
    Digit(Index, char),
    DuplicateLine(Index, Index),
    DropLine(Index),
    SwapLines(Index, Index),
}

fn text_change() -> impl Strategy<Value = TextChange> {
    use TextChange::*;
    prop_oneof![
        1 => any::<Index>().prop_map(Truncate),
        2 => (any::<Index>(), 1..40_usize).prop_map(|(at, length)| Cut(at, length)),
        2 => (any::<Index>(), select(PIECES)).prop_map(|(at, piece)| Insert(at, piece)),
        2 => (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Byte(at, byte)),
        8 => (any::<Index>(), select(WORDS)).prop_map(|(at, word)| Value(at, word)),
        4 => (any::<Index>(), select(UNITS)).prop_map(|(at, unit)| Unit(at, unit)),
        6 => (any::<Index>(), prop::char::range('0', '9')).prop_map(|(at, digit)| Digit(at, digit)),
        3 => (any::<Index>(), any::<Index>()).prop_map(|(from, to)| DuplicateLine(from, to)),
        3 => any::<Index>().prop_map(DropLine),
        2 => (any::<Index>(), any::<Index>()).prop_map(|(one, other)| SwapLines(one, other)),
    ]
}

/// Where `found` is true in the text.
fn places(text: &str, found: impl Fn(&str, char) -> bool) -> Vec<usize> {
    let all = text.char_indices();
    all.filter(|&(at, c)| found(&text[at..], c))
        .map(|(at, _)| at)
        .collect()
}

fn apply(text: String, text_change: &TextChange) -> String {
    let boundaries: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    let lines: Vec<&str> = text.lines().collect();
    if boundaries.is_empty() || lines.is_empty() {
        return text;
    }
    let place = |at: &Index| *at.get(&boundaries);
    let join = |lines: Vec<&str>| lines.join("\n");
    match text_change {
        TextChange::Truncate(at) => text[..place(at)].to_owned(),
        TextChange::Cut(at, length) => {
            let rest: String = text[place(at)..].chars().skip(*length).collect();
            format!("{}{rest}", &text[..place(at)])
        }
        TextChange::Insert(at, piece) => {
            format!("{}{piece}{}", &text[..place(at)], &text[place(at)..])
        }
        TextChange::Byte(at, byte) => {
            let mut bytes = text.clone().into_bytes();
            bytes[place(at)] = *byte;
            String::from_utf8_lossy(&bytes).into_owned()
        }
        TextChange::Value(at, word) => {
            let all = places(&text, |rest, _| rest.starts_with("= "));
            let Some(&begin) = (!all.is_empty()).then(|| at.get(&all)) else {
                return text;
            };
            let begin = begin + 2;
            let end = text[begin..]
                .find([',', '\n', '}'])
                .map_or(text.len(), |end| begin + end);
            format!("{}{word}{}", &text[..begin], &text[end..])
        }
        TextChange::Unit(at, unit) => {
            let all = places(&text, |rest, c| {
                c.is_ascii_digit() && rest[1..].starts_with(|c: char| c.is_ascii_alphabetic())
            });
            let Some(&begin) = (!all.is_empty()).then(|| at.get(&all)) else {
                return text;
            };
            let begin = begin + 1;
            let end = text[begin..]
                .find(|c: char| !c.is_ascii_alphabetic())
                .map_or(text.len(), |end| begin + end);
            format!("{}{unit}{}", &text[..begin], &text[end..])
        }
        TextChange::Digit(at, digit) => {
            let all = places(&text, |_, c| c.is_ascii_digit());
            let Some(&begin) = (!all.is_empty()).then(|| at.get(&all)) else {
                return text;
            };
            format!("{}{digit}{}", &text[..begin], &text[begin + 1..])
        }
        TextChange::DuplicateLine(from, to) => {
            let mut all = lines.clone();
            all.insert(to.index(lines.len()), lines[from.index(lines.len())]);
            join(all)
        }
        TextChange::DropLine(at) => {
            let mut all = lines.clone();
            all.remove(at.index(lines.len()));
            join(all)
        }
        TextChange::SwapLines(one, other) => {
            let mut all = lines.clone();
            all.swap(one.index(lines.len()), other.index(lines.len()));
            join(all)
        }
    }
}

/// Refused with an error that can be shown, or a system.
fn judge(text: &str) -> bool {
    match weir_model::parse("fuzzed.toml", text) {
        Ok(system) => {
            invariants::hold(&system);
            true
        }
        Err(error) => {
            assert!(
                !error.problems().is_empty(),
                "refused without a reason:\n{text}"
            );
            for problem in error.problems() {
                let span = problem.spans().next().expect("a label");
                let range = span.offset()..span.offset() + span.len();
                assert!(
                    text.get(range.clone()).is_some(),
                    "{range:?} is not in\n{text}"
                );
                let message = format!("{problem}{}", problem.advice().unwrap_or_default());
                assert!(
                    !message.chars().any(|c| c.is_control() && c != '\n'),
                    "{message:?}"
                );
            }
            let _ = shown(&error);
            false
        }
    }
}

fn good_files() -> Vec<String> {
    let mut files: Vec<String> = ["motor-controller", "shared-timer", "flight-controller"]
        .into_iter()
        .map(|name| std::fs::read_to_string(example_path(name)).unwrap())
        .collect();
    files.push(OWN.to_owned());
    files
}

#[test]
fn the_files_that_are_changed_are_good() {
    for text in good_files() {
        assert!(judge(&text));
    }
}

proptest! {
    #![proptest_config(crate::cases(300, 2000))]

    #[test]
    fn a_changed_file_is_refused_or_a_system(
        file in select(good_files()),
        text_changes in prop::collection::vec(text_change(), 1..4),
    ) {
        let text = text_changes.iter().fold(file, apply);
        judge(&text);
    }

    #[test]
    fn any_text_is_refused_or_a_system(text in "(schema = 1\n)?\\PC{0,200}") {
        judge(&text);
    }

    #[test]
    fn any_bytes_are_refused_or_a_system(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        judge(&String::from_utf8_lossy(&bytes));
    }
}

/// Every end that a file can have, every byte that can be missing: what no random choice should
/// leave to chance. In the short form it is every fifth.
#[test]
fn a_file_that_ends_anywhere_is_refused_or_a_system() {
    let mut systems = 0;
    for text in good_files() {
        for (end, _) in text
            .char_indices()
            .step_by(if crate::is_long() { 1 } else { 5 })
        {
            systems += usize::from(judge(&text[..end]));
        }
    }
    assert!(
        systems > if crate::is_long() { 100 } else { 20 },
        "{systems}: hardly any was a system, so hardly any was looked at"
    );
}
