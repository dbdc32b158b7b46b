// SPDX-License-Identifier: MIT OR Apache-2.0
//! Resolves `[silicon]`, the parameters of the limiter in silicon, and reports limits that do not
//! fit them.
use miette::SourceSpan;
use toml_edit::{Item, Table};

use super::band::Near;
use super::units::{CycleClock, Digits};
use crate::diagnostics::{Problem, Problems};
use crate::file::leaf::{Whole, YesNo};
use crate::file::sections::{self as raw, Limit, Root};
use crate::file::value::{KeyValue, Value};
use crate::file::words::Output;
use crate::system::{Place, Policy};
use crate::{Misfit, SILICON_SOURCES_MOST, Silicon, SiliconForm, SiliconReset};

/// The default width of a phase in bits.
const PHASE_BITS: u64 = 24;
/// The default width of the count of held requests in bits.
const HELD_BITS: u64 = 8;
/// The most sources whose state is kept in registers, if the file does not state the form.
const IN_REGISTERS_MOST: u32 = 32;
/// The size of the limiter's registers in bytes. Their base address is a multiple of it.
const REGISTER_BYTES: u32 = 1 << 16;

/// The limiter in silicon, if the system has one, and the place where the file describes it.
#[derive(Debug)]
pub(crate) struct Block {
    pub of: Option<Silicon>,
    /// The place of `[silicon]`, or the place where it would be.
    at: SourceSpan,
    is_stated: bool,
}

/// Resolves the limiter in silicon of `root`. Returns `None`, and reports at least one problem, if
/// it is wrong.
pub(crate) fn resolve(root: &Root, problems: &mut Problems<'_>) -> Option<Block> {
    let limits = || {
        let limits = root.source.elements().iter();
        limits.filter_map(|source| source.limit.get().filter(|limit| is_in_hardware(limit)))
    };
    let is_stated = root.silicon.is_stated();
    let at = root.silicon.at;
    let sources = u32::try_from(limits().count()).unwrap_or(u32::MAX);
    if sources > SILICON_SOURCES_MOST {
        let (at, more) = limits()
            .nth(SILICON_SOURCES_MOST as usize)
            .map_or((at, 0), |limit| (limit.place.at, sources));
        return problems.refuse(format!("{more} limits are in hardware, and a limiter in silicon has up to {SILICON_SOURCES_MOST} sources"), at, "one too many", "limit the others in software");
    }
    let nothing = Item::Table(Table::new());
    let defaults = raw::Silicon::read(&nothing, at, problems)?;
    let stated = if is_stated {
        root.silicon.get()?
    } else {
        &defaults
    };
    let largest = limits().map(|limit| limit.burst.or(Whole(1)).map_or(1, |burst| burst.0));
    let shape = shape(stated, sources, largest.fold(1, u64::max), problems)?;
    Some(Block {
        of: (sources > 0).then_some(shape),
        at,
        is_stated,
    })
}

fn is_in_hardware(limit: &Limit) -> bool {
    limit.place.get() == Some(&Place::Hardware) && limit.policy.get() != Some(&Policy::Off)
}

fn shape(
    stated: &raw::Silicon,
    sources: u32,
    largest_burst: u64,
    problems: &mut Problems<'_>,
) -> Option<Silicon> {
    let bits = |bits: u64| u32::try_from(bits).ok();
    let truth = |key: &KeyValue<YesNo>, default| Some(key.or(YesNo(default))?.0);
    let phase_bits = stated.phase_bits.or(Whole(PHASE_BITS))?.0;
    let rate_bits = stated.rate_bits.optional()?.map(|bits| bits.0);
    if let Some(rate_bits) = rate_bits.filter(|&bits| bits > phase_bits) {
        return problems.refuse(
            format!("a rate of {rate_bits} bits overflows a phase of {phase_bits}"),
            stated.rate_bits.at,
            "more than the phase has",
            format!("write rate_bits = {phase_bits}, or more phase_bits"),
        );
    }
    let Whole(synchroniser) = stated.synchroniser.or(Whole(2))?;
    if synchroniser == 1 {
        return problems.refuse(
            "a synchroniser needs two stages: a single register may hang between 0 and 1",
            stated.synchroniser.at,
            "too few",
            "write 2 or 3; or 0 if the lines come from registers of the same clock",
        );
    }
    let base = stated.base.optional()?.map(|base| base.0);
    if base.is_some_and(|base| base % u64::from(REGISTER_BYTES) != 0) {
        return problems.refuse(
            format!("the registers take {REGISTER_BYTES} bytes and begin at a multiple of that"),
            stated.base.at,
            "no multiple",
            "write an address that ends with 0000 in hexadecimal, for example 0x11000000",
        );
    }
    // A bucket of one token is the same as a strict limit.
    let needed = if largest_burst > 1 {
        u64::from(u64::BITS - largest_burst.leading_zeros())
    } else {
        0
    };
    let form = match stated.form.optional()? {
        Some(form) => form,
        None if sources <= IN_REGISTERS_MOST => SiliconForm::Registers,
        None => SiliconForm::Memory,
    };
    Some(Silicon {
        sources,
        form,
        phase_bits: bits(phase_bits)?,
        rate_bits: bits(rate_bits.unwrap_or(phase_bits))?,
        burst_bits: bits(stated.burst_bits.or(Whole(needed))?.0)?,
        held_bits: bits(stated.held_bits.or(Whole(HELD_BITS))?.0)?,
        synchroniser: bits(synchroniser)?,
        reset: stated.reset.or(SiliconReset::Synchronous)?,
        pulses: stated.output.or(Output::Held)? == Output::Pulse,
        readback: truth(&stated.readback, true)?,
        enables: truth(&stated.enables, true)?,
        overload: truth(&stated.overload, true)?,
        lock: truth(&stated.lock, true)?,
        messages: truth(&stated.messages, false)?,
        bypass: truth(&stated.bypass, true)?,
        base: match base {
            None => None,
            Some(base) => Some(bits(base)?),
        },
    })
}

impl Block {
    /// The rate for an interval of at least `cycles`. `at` is the place that asks for it.
    pub fn rate(
        &self,
        cycles: u64,
        at: SourceSpan,
        clock: CycleClock,
        problems: &mut Problems<'_>,
    ) -> Option<u32> {
        let silicon = self.of?;
        let misfit = match silicon.rate(cycles) {
            Ok(rate) => return Some(rate),
            Err(misfit) => misfit,
        };
        let (longest, shortest) = silicon.range();
        let problem = match misfit {
            Misfit::TooLong { phase_bits } => {
                let reach = clock.time_text(longest, Digits::Down);
                let problem = Problem::new(
                    format!(
                        "an interval of {} does not fit {} phase bits, which reach {reach}",
                        clock.time_text(cycles, Digits::Nearest),
                        silicon.phase_bits
                    ),
                    at,
                    "too slow for the silicon",
                );
                problem.help(match phase_bits {
                    Some(bits) => format!("write phase_bits = {bits} in [silicon], or ask for an interval of at most {reach}"),
                    None => format!("ask for an interval of at most {reach}, or limit it in software"),
                })
            }
            Misfit::TooShort { rate_bits } => {
                let reach = clock.time_text(shortest, Digits::Up);
                let problem = Problem::new(
                    format!(
                        "an interval of {} does not fit {} rate bits: the shortest is {reach}",
                        clock.time_text(cycles, Digits::Nearest),
                        silicon.rate_bits
                    ),
                    at,
                    "too fast for the silicon",
                );
                problem.help(match rate_bits {
                    Some(bits) => format!("write rate_bits = {bits} in [silicon], or ask for an interval of at least {reach}"),
                    None => format!("ask for an interval of at least {reach}"),
                })
            }
        };
        problems.refuse_with(self.described(problem))
    }

    /// Reports a burst that is too large for the burst bits.
    pub fn holds(
        &self,
        burst: u32,
        limit: &KeyValue<Limit>,
        problems: &mut Problems<'_>,
    ) -> Option<()> {
        let silicon = self.of?;
        let most = (1_u32 << silicon.burst_bits).saturating_sub(1).max(1);
        if burst <= most {
            return Some(());
        }
        let problem = Problem::new(
            format!(
                "a burst of {burst} does not fit {} burst bits, which hold {most}",
                silicon.burst_bits
            ),
            limit.get()?.burst.at,
            "too large for the silicon",
        )
        .help(format!(
            "write burst_bits = {} in [silicon], or a burst of at most {most}",
            u32::BITS - burst.leading_zeros()
        ));
        problems.refuse_with(self.described(problem))
    }

    /// The intervals adjacent to that of `rate`.
    pub fn near(&self, rate: u32) -> Near {
        let interval = |rate: Option<u32>| {
            let rate = rate.filter(|&rate| rate > 0)?;
            Some(self.of?.interval(rate).cycles())
        };
        Near {
            shorter: interval(rate.checked_add(1)),
            longer: interval(rate.checked_sub(1)),
            with: self.of.map_or_else(String::new, |silicon| {
                format!("{} phase bits", silicon.phase_bits)
            }),
        }
    }

    fn described(&self, problem: Problem) -> Problem {
        if self.is_stated {
            problem.and_at(self.at, "the silicon")
        } else {
            problem
        }
    }
}
