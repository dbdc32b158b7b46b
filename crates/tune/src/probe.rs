// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds out what a file's processor offers by asking the reader of system files: a channel offers a limiter iff a file that uses it so can be read. So no rule of
//! ports or timers is written down a second time.

use rayon::prelude::*;
use toml_edit::{ArrayOfTables, DocumentMut, InlineTable, Item, Table, Value};
use weir_model::{EventCosts, Expiry, Policy, System};

use crate::plan::Way;
use crate::platform::{Channel, Counter, Offer, Platform, Range, SharedOffer};
use crate::task::ways;

/// Ticks of which any limiter on any timer can do some, where it works at all.
const SOME_TICKS: [u64; 5] = [250, 60, 16, 4, 1_000];
/// No timer counts further.
const MOST_TICKS: u64 = 1 << 40;
/// What things are called in the files that are asked about.
const PROBE: &str = "probe";

/// What a file's processor offers.
#[derive(Debug, Default)]
pub struct Answers {
    /// Its counters and channels.
    pub platform: Platform,
    /// The sources, as indices in [`System::sources`], that no timer can limit: their interrupts are none that the port limits.
    pub out_of_reach: Vec<usize>,
}

/// What the processor of the file `text`, whose system is `system`, offers of the ways in which its sources may be limited.
///
/// Nothing if the text is not TOML: it is that of a system that could be read.
#[must_use]
pub fn ask(text: &str, system: &System) -> Answers {
    let Ok(document) = text.parse::<DocumentMut>() else {
        return Answers::default();
    };
    let candidates = match &system.cpu.board {
        Some(board) => of_board(board),
        None => of_file(&document),
    };
    let sources = tables(&document, "source");
    let askers: Vec<Asker> = sources
        .iter()
        .map(|source| Asker::new(&document, source))
        .collect();
    let mut answers = Answers::default();
    let mut wanted: Vec<Way> = Vec::new();
    for source in &system.sources {
        for way in ways(&source.limit) {
            if way != Way::Hardware && !wanted.contains(&way) {
                wanted.push(way);
            }
        }
    }
    let Some(asker) = askers.iter().find(|asker| {
        let mut all = candidates.iter().flat_map(Candidate::channels);
        all.any(|on| wanted.iter().any(|&way| asker.offers(&on, way)))
    }) else {
        let in_software = |&source: &usize| {
            let of = system.sources.get(source);
            of.is_none_or(|of| !ways(&of.limit).contains(&Way::Hardware))
        };
        answers.out_of_reach = (0..system.sources.len()).filter(in_software).collect();
        return answers;
    };
    for (counter, candidate) in candidates.iter().enumerate() {
        answers.platform.counters.push(Counter {
            name: candidate.name.clone(),
            kind: counter,
        });
        let channels = answers_of(asker, &askers, candidate, counter, &wanted);
        answers.platform.channels.extend(channels);
    }
    answers.platform.tell_kinds();
    answers.out_of_reach = system
        .sources
        .par_iter()
        .zip(&askers)
        .enumerate()
        .filter(|(_, (source, asker))| {
            let ways = ways(&source.limit);
            !ways.contains(&Way::Hardware)
                && !candidates
                    .iter()
                    .flat_map(Candidate::channels)
                    .any(|on| ways.iter().any(|&way| asker.offers(&on, way)))
        })
        .map(|(index, _)| index)
        .collect();
    answers
}

/// What the channels of a counter offer: `asker` is of a source that can be limited, `askers` are those of all.
fn answers_of(
    asker: &Asker,
    askers: &[Asker],
    candidate: &Candidate,
    counter: usize,
    ways: &[Way],
) -> Vec<Channel> {
    // The channels of a counter have the same ranges.
    let ranges: Vec<Vec<Range>> = ways
        .par_iter()
        .map(|&way| {
            let mut channels = candidate.channels();
            let first = channels.find(|on| asker.offers(on, way));
            first.map_or_else(Vec::new, |on| asker.ranges(&on, way, &candidate.divisors))
        })
        .collect();
    let mut channels = Vec::new();
    for on in candidate.channels() {
        let mut channel = None;
        for (&way, ranges) in ways.iter().zip(&ranges) {
            let ask = |asker: &Asker| {
                let range = ranges.first()?;
                asker.ask(&on, way, range.divisor, range.most)
            };
            if let Some(answer) = ask(asker) {
                let costs: Vec<EventCosts> = askers
                    .par_iter()
                    .map(|asker| {
                        let answer = ask(asker);
                        let source = answer.as_ref().and_then(|of| of.sources.first());
                        source.map_or_else(EventCosts::default, |source| source.limit.costs)
                    })
                    .collect();
                add(&mut channel, counter, &answer, way, (ranges, costs), &on);
            }
        }
        channels.extend(channel);
    }
    channels
}

/// A counter that may exist.
struct Candidate {
    name: String,
    divisors: Vec<u64>,
    channels: Vec<String>,
    /// The `[[timer]]` that it is.
    timer: Option<Table>,
}

impl Candidate {
    fn channels(&self) -> impl Iterator<Item = On<'_>> {
        self.channels.iter().map(|name| On {
            name,
            timer: self.timer.as_ref(),
            divisors: &self.divisors,
        })
    }
}

fn of_board(board: &str) -> Vec<Candidate> {
    let Some(board) = weir_target::Board::named(board) else {
        return Vec::new();
    };
    let channels = |index| {
        board
            .channels()
            .filter(move |channel| channel.index == index)
    };
    let candidate = |(index, timer): (usize, &weir_target::TimerFacts)| Candidate {
        name: timer.name.clone(),
        divisors: timer.divisors.clone(),
        channels: channels(index).map(|channel| channel.name()).collect(),
        timer: None,
    };
    board.timers.iter().enumerate().map(candidate).collect()
}

/// Without a board every `[[timer]]` is a counter with one channel.
fn of_file(document: &DocumentMut) -> Vec<Candidate> {
    tables(document, "timer")
        .into_iter()
        .filter_map(|mut timer| {
            let name = timer.get("name")?.as_str()?.to_owned();
            let divisors: Option<Vec<u64>> =
                timer.get("divisors").and_then(Item::as_array).map(|of| {
                    of.iter()
                        .filter_map(|divisor| u64::try_from(divisor.as_integer()?).ok())
                        .collect()
                });
            for key in ["rate", "period", "prescaler"] {
                timer.remove(key);
            }
            let mut divisors = divisors.unwrap_or_else(|| vec![1]);
            divisors.sort_unstable();
            Some(Candidate {
                channels: vec![name.clone()],
                name,
                divisors,
                timer: Some(timer),
            })
        })
        .collect()
}

/// The tables of a section, however they are written.
fn tables(document: &DocumentMut, section: &str) -> Vec<Table> {
    match document.get(section) {
        Some(Item::ArrayOfTables(tables)) => tables.iter().cloned().collect(),
        Some(Item::Value(Value::Array(array))) => array
            .iter()
            .filter_map(Value::as_inline_table)
            .map(|table| table.clone().into_table())
            .collect(),
        _ => Vec::new(),
    }
}

/// What a question is about.
struct On<'a> {
    name: &'a str,
    timer: Option<&'a Table>,
    divisors: &'a [u64],
}

/// Asks the reader of system files.
struct Asker {
    /// The file's processor, and nothing else.
    base: DocumentMut,
    /// What the file says of the source itself: its interrupt, and what decides what that costs.
    source: Table,
}

impl Asker {
    fn new(document: &DocumentMut, source: &Table) -> Self {
        let mut base = document.clone();
        for section in ["timer", "source", "receiver", "flow"] {
            base.remove(section);
        }
        let mut source = source.clone();
        for key in ["limit", "rate", "deadline", "moderation"] {
            source.remove(key);
        }
        Self { base, source }
    }

    /// The system of a file in which one source is limited this way; none if that cannot be.
    fn ask(&self, on: &On, way: Way, divisor: u64, ticks: u64) -> Option<System> {
        let interval = format!("{} cycles", ticks.checked_mul(divisor)?);
        let divisor = i64::try_from(divisor).ok()?;
        let mut limit = InlineTable::new();
        let mut timer = on.timer.cloned();
        match way {
            Way::Shared => {
                let mut shared = timer.take().unwrap_or_else(|| {
                    let mut table = Table::new();
                    table.insert("name", text(PROBE));
                    table.insert("channel", text(on.name));
                    table
                });
                shared.insert("period", text(&interval));
                shared.insert("prescaler", Item::Value(divisor.into()));
                let name = shared.get("name")?.as_str()?.to_owned();
                timer = Some(shared);
                limit.insert("policy", "bursty".into());
                limit.insert("burst", 2.into());
                limit.insert("timer", name.into());
            }
            Way::Own(policy, timing, burst) => {
                limit.insert("policy", policy.name().into());
                if policy != Policy::Poll {
                    limit.insert("timing", timing.name().into());
                }
                if matches!(policy, Policy::Bursty | Policy::Bucket) {
                    limit.insert("burst", i64::from(burst).into());
                }
                limit.insert("interval", interval.into());
                limit.insert("prescaler", divisor.into());
                limit.insert("timer", on.name.into());
            }
            Way::Hardware => return None,
        }
        let mut source = self.source.clone();
        source.insert("limit", Item::Value(Value::InlineTable(limit)));
        let mut document = self.base.clone();
        document.insert("timer", section(timer));
        document.insert("source", section(Some(source)));
        weir_model::parse(PROBE, &document.to_string()).ok()
    }

    /// Can the source be limited like this?
    fn offers(&self, on: &On, way: Way) -> bool {
        // The coarsest divisors are those that all limiters can do with.
        on.divisors.iter().rev().any(|&divisor| {
            SOME_TICKS
                .iter()
                .any(|&ticks| self.ask(on, way, divisor, ticks).is_some())
        })
    }

    /// What the limiter can count.
    fn ranges(&self, on: &On, way: Way, divisors: &[u64]) -> Vec<Range> {
        let range = |&divisor: &u64| {
            let works = |ticks: u64| self.ask(on, way, divisor, ticks).is_some();
            let some = SOME_TICKS.into_iter().find(|&ticks| works(ticks))?;
            Some(Range {
                divisor,
                least: some - last(some - 1, |less| works(some - less)),
                most: some + last(MOST_TICKS, |more| works(some + more)),
            })
        };
        divisors.iter().filter_map(range).collect()
    }
}

/// The last of `0..=most` for which `works`, if it works for 0 and for all up to that one.
fn last(most: u64, works: impl Fn(u64) -> bool) -> u64 {
    let (mut held, mut fails) = (0, 1);
    while fails <= most && works(fails) {
        (held, fails) = (fails, fails * 2);
    }
    fails = fails.min(most + 1);
    while fails - held > 1 {
        let middle = held + (fails - held) / 2;
        if works(middle) {
            held = middle;
        } else {
            fails = middle;
        }
    }
    held
}

/// Adds what an answer says to the channel.
fn add(
    channel: &mut Option<Channel>,
    counter: usize,
    answer: &System,
    way: Way,
    (ranges, costs): (&[Range], Vec<EventCosts>),
    on: &On,
) {
    let Some(source) = answer.sources.first() else {
        return;
    };
    let found = match (&source.limit.expiry, answer.timers.first()) {
        (Some(Expiry::Own { channel, level }), _) => (channel, level),
        (Some(Expiry::Shared(_)), Some(timer)) => (&timer.channel, &timer.level),
        _ => return,
    };
    let channel = channel.get_or_insert_with(|| Channel {
        name: found.0.clone(),
        timer: on.timer.map(|_| on.name.to_owned()),
        counter,
        level: found.1.clone(),
        own: Vec::new(),
        shared: None,
    });
    match way {
        Way::Shared => {
            channel.shared = Some(SharedOffer {
                costs,
                base: answer.timers.first().map_or(0, |timer| timer.base),
                bits: source.limit.bits,
                ranges: ranges.to_vec(),
            });
        }
        Way::Own(policy, timing, _) => channel.own.push(Offer {
            policy,
            timing,
            costs,
            lag: source.limit.lag,
            bits: source.limit.bits,
            ranges: ranges.to_vec(),
        }),
        Way::Hardware => {}
    }
}

fn section(table: Option<Table>) -> Item {
    let mut tables = ArrayOfTables::new();
    tables.extend(table);
    Item::ArrayOfTables(tables)
}

fn text(text: &str) -> Item {
    Item::Value(text.into())
}
