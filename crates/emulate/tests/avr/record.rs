// SPDX-License-Identifier: GPL-3.0-or-later
//! Compares the record of a limited source, and the hooks of its overloads, with the board's trace.

use std::sync::Arc;

use crate::port::history::{Episode, History, Kind, channel, history};
use crate::port::{CLOCK, Elf, Flavour, Limit, build, mark};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha12Rng;
use rayon::prelude::*;
use weir_core_sys::{LimitPolicy, LimitTiming};
use weir_emulate::board::EmulatedBoard;
use weir_emulate::line::Line;
use weir_emulate::run::{EventKind, LineStimulus, RunResult, Stimulus, run};

/// The duration of a run: 0.5 s of the board's time, in cycles.
const CYCLES: u64 = 2_000_000;

/// The address of OCR2, to which the firmware writes its marks.
const MARK: u16 = 0x43;

/// The most cycles of a decision, without the handler.
const WANDER: u64 = 400;

/// The cycles until main has started everything.
const STARTED: u64 = 3000;

/// Returns floods of up to 80 requests with pauses of every length. The last fifth of the run is
/// silent.
fn storm(interval: u64, seed: u64) -> LineStimulus {
    let mut random = ChaCha12Rng::seed_from_u64(seed);
    let mut times = Vec::new();
    let mut now = STARTED;
    while now < CYCLES * 4 / 5 {
        let gap = random.random_range(90..interval * 3 / 2);
        for _ in 0..random.random_range(1..80) {
            times.push(now);
            now += random.random_range(gap / 2 + 40..gap + 40);
        }
        now += random.random_range(interval..interval * 8);
    }
    times.retain(|&at| at < CYCLES * 4 / 5);
    LineStimulus {
        line: Line::INT0,
        stimulus: Stimulus::Trace {
            name: "storm".to_owned(),
            times: Arc::from(times),
        },
    }
}

/// The last record that ports/avr/tests/recorded.c copied, with the field names of
/// weir_limit_record_t.
#[derive(Debug, Default, PartialEq, Eq)]
struct Record {
    taken: u64,
    served: u64,
    masked_intervals: u64,
    overloads: u64,
    longest_masked: u64,
    longest_handler: u64,
    first_overload: u64,
    last_overload: u64,
}

/// The address of OCR0, to which ports/avr/tests/recorded.c writes the bytes of its record.
const RECORD_BYTES: u16 = 0x51;

impl Record {
    /// Returns the last complete copy, in the order of weir_limit_record_t with 16-bit ticks.
    fn seen(result: &RunResult) -> Self {
        let written = result.events.iter().filter_map(|event| match event.kind {
            EventKind::IoWritten {
                address: RECORD_BYTES,
                value,
            } => Some(value),
            _ => None,
        });
        let bytes: Vec<u8> = written.collect();
        let last = bytes.chunks_exact(22).next_back().unwrap();
        let number = |from: usize, size: usize| {
            let digits = last[from..from + size].iter().rev();
            digits.fold(0, |high, &low| high << 8 | u64::from(low))
        };
        Self {
            taken: number(0, 4),
            served: number(4, 4),
            masked_intervals: number(8, 4),
            overloads: number(12, 2),
            longest_masked: number(14, 2),
            longest_handler: number(16, 2),
            first_overload: number(18, 2),
            last_overload: number(20, 2),
        }
    }

    /// Computes the record from the trace. Its times are counter values that the port read, the
    /// first and the last one of an interrupt.
    fn of(history: &History) -> Self {
        let mut record = Self::default();
        // The start of the masked time, as last read from the counter, and the ticks until then.
        let mut masked: Option<(u16, u64)> = None;
        let mut overloaded = false;
        for episode in &history.episodes {
            if matches!(episode.kind, Kind::Call(_)) {
                continue;
            }
            let now = read_first(episode);
            let served = episode.served.len() as u64;
            let request = episode.kind == Kind::Request;
            record.taken += u64::from(request || episode.acked);
            record.served += served;
            if served > 0 {
                let ran = u64::from(read_last(episode).wrapping_sub(now));
                record.longest_handler = record.longest_handler.max(ran);
            }
            if let Some((since, length)) = masked {
                let length = (length + u64::from(now.wrapping_sub(since))).min(HALF);
                record.longest_masked = record.longest_masked.max(length);
                masked = Some((now, length)).filter(|_| !episode.enabled);
                // At an expiry that serves a request, that request was refused earlier.
                let refused = served > 0;
                record.overload(&mut overloaded, refused, now);
            } else if request {
                record.overload(&mut overloaded, served == 0, now);
                if !episode.enabled {
                    record.masked_intervals += 1;
                    masked = Some((now, 0));
                }
            }
        }
        record
    }

    /// Records at `now` whether a request was refused. If none was, the overload has ended.
    fn overload(&mut self, overloaded: &mut bool, refused: bool, now: u16) {
        if refused && !*overloaded {
            if self.overloads == 0 {
                self.first_overload = u64::from(now);
            }
            self.last_overload = u64::from(now);
            self.overloads += 1;
        }
        *overloaded = refused;
    }
}

/// Half a wrap of the ticks, at which times saturate.
const HALF: u64 = 1 << 15;

fn read_first(episode: &Episode) -> u16 {
    episode.counts[0].1
}

fn read_last(episode: &Episode) -> u16 {
    episode.counts[episode.counts.len() - 1].1
}

/// The longest work of the handler in ports/avr/tests/recorded.c, in cycles.
const LONG_WORK: u64 = 600;

fn recorded_limits() -> Vec<Limit> {
    vec![
        Limit::new(
            LimitPolicy::Strict,
            LimitTiming::Eager,
            3000,
            1,
            "TIMER1A",
            1,
        ),
        Limit::new(
            LimitPolicy::Strict,
            LimitTiming::Lazy,
            3000,
            1,
            "TIMER1A",
            1,
        ),
        Limit::new(LimitPolicy::Strict, LimitTiming::Lazy, 400, 1, "TIMER3B", 8),
        Limit::new(
            LimitPolicy::Paced,
            LimitTiming::Eager,
            3000,
            1,
            "TIMER1A",
            1,
        ),
        Limit::new(LimitPolicy::Paced, LimitTiming::Lazy, 3000, 1, "TIMER1A", 1),
        Limit::new(
            LimitPolicy::Bucket,
            LimitTiming::Eager,
            2000,
            3,
            "TIMER1A",
            1,
        ),
        Limit::new(
            LimitPolicy::Bucket,
            LimitTiming::Lazy,
            2000,
            3,
            "TIMER1A",
            1,
        ),
        Limit::new(
            LimitPolicy::Bursty,
            LimitTiming::Eager,
            6000,
            3,
            "TIMER1A",
            1,
        ),
        Limit::new(
            LimitPolicy::Bursty,
            LimitTiming::Lazy,
            6000,
            3,
            "TIMER1A",
            1,
        ),
        Limit::new(
            LimitPolicy::Bursty,
            LimitTiming::OneShot,
            6000,
            3,
            "TIMER1A",
            1,
        ),
    ]
}

fn watch_recorded(limit: &Limit, elf: &Elf, seed: u64) -> (RunResult, History) {
    let mut spec = EmulatedBoard::ATMEGA128.spec(&elf.path, CLOCK, CYCLES);
    spec.floods = vec![storm(limit.interval_cycles(), seed)];
    spec.trace = true;
    let result = run(&spec).unwrap_or_else(|error| panic!("{error}"));
    let history = history(&result.events, 0, channel(limit.channel), MARK);
    (result, history)
}

fn recorded(limit: &Limit) -> Elf {
    let mut defines = limit.defines();
    defines.push("WEIR_LIMIT_RECORD=1".to_owned());
    defines.push(format!("TEST_WORK={LONG_WORK}"));
    build(&["recorded.c"], Flavour::C, &defines)
}

/// LIMIT-RECORD-1 and -3: the record is exactly what the trace shows, in ticks as read by the port.
#[test]
fn the_record_tells_what_the_trace_shows() {
    recorded_limits().into_par_iter().for_each(|limit| {
        let elf = recorded(&limit);
        for seed in 0..3 {
            let (result, history) = watch_recorded(&limit, &elf, seed);
            let (seen, shown) = (Record::seen(&result), Record::of(&history));
            assert!(shown.masked_intervals > 20, "{shown:?}");
            let shown = if limit.config.policy == LimitPolicy::Bursty {
                // Only core/ can tell when a period has passed without excess requests. So the
                // instants are not compared. The test checks only that overloads end and begin
                // again, and that each is reported once.
                assert!(seen.overloads > 1, "{limit:?} seed {seed}: {seen:?}");
                Record {
                    overloads: seen.overloads,
                    first_overload: seen.first_overload,
                    last_overload: seen.last_overload,
                    ..shown
                }
            } else {
                assert!(shown.overloads > 5, "{shown:?}");
                shown
            };
            assert_eq!(seen, shown, "{limit:?} seed {seed}");
            // The time from the counter reading at the entry to the one after the handler, which
            // includes the decision.
            let ran = shown.longest_handler * limit.prescaler;
            assert!(
                ran + limit.prescaler > LONG_WORK && ran < LONG_WORK + WANDER,
                "the longest handler ran {ran} cycles: {limit:?}"
            );
            judge_hooks(&history, seen.overloads, &format!("{limit:?} seed {seed}"));
            let ended = history.episodes.iter().flat_map(|one| &one.marks);
            let ended = ended.filter(|&&mark| mark == mark::OVERLOAD_ENDS).count() as u64;
            assert!(
                ended == seen.overloads,
                "{ended} of {} have ended in silence: {limit:?}",
                seen.overloads
            );
        }
    });
}

/// Checks LIMIT-RECORD-3: each overload begins once and ends once. Only the last one may not have
/// ended.
fn judge_hooks(history: &History, overloads: u64, what: &str) {
    let marks: Vec<u8> = history
        .episodes
        .iter()
        .flat_map(|one| one.marks.clone())
        .collect();
    let once = [mark::OVERLOAD_BEGINS, mark::OVERLOAD_ENDS];
    assert_eq!(
        marks.len().div_ceil(2) as u64,
        overloads,
        "{marks:02x?}: {what}"
    );
    assert!(
        marks.iter().eq(once.iter().cycle().take(marks.len())),
        "{marks:02x?}: {what}"
    );
}
