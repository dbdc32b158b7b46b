// SPDX-License-Identifier: MIT OR Apache-2.0
//! The values of single keys, such as names, numbers, rates, times and costs.
use std::fmt::Display;
use std::net::IpAddr;
use std::str::FromStr;

use miette::SourceSpan;
use toml_edit::{Item, Value as Toml};

use super::value::{Form, Shape, Value, expected, printable, section};
use crate::diagnostics::{Problem, Problems, did_you_mean};
use crate::exact::{ExactRate, ExactTime};
use crate::quantity::QuantityError;
use crate::worst_rates::{self, WorstRate};

/// The most characters of a name. It is bounded because generated code makes identifiers of names.
const NAME_MOST: usize = 64;

/// A name to which other keys refer and which generated code uses.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Name(pub String);

impl Value for Name {
    const SHAPE: Shape = Shape {
        name: "name",
        wanted: "a name in quotes, for example \"encoder\"",
        form: Form::Text,
    };

    fn read(item: &Item, at: SourceSpan, problems: &mut Problems<'_>) -> Option<Self> {
        let text = expected::<Self, _>(item.as_str(), item, at, problems)?;
        let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let goes_on = text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        if begins && goes_on && text.len() <= NAME_MOST {
            return Some(Self(text.to_owned()));
        }
        let message = if text.is_empty() {
            "a name may not be empty".to_owned()
        } else {
            format!("`{}` cannot be a name", printable(text))
        };
        problems.refuse(message, at, "not a name", format!(
            "a name begins with a letter and goes on with letters, digits, `-` and `_`, {NAME_MOST} at most: generated code is called by it"
        ))
    }
}

/// Free text on one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Text(pub String);

impl Value for Text {
    const SHAPE: Shape = Shape {
        name: "text",
        wanted: "a text in quotes",
        form: Form::Text,
    };

    fn read(item: &Item, at: SourceSpan, problems: &mut Problems<'_>) -> Option<Self> {
        let text = expected::<Self, _>(item.as_str(), item, at, problems)?;
        if text.trim().is_empty() || text.chars().any(char::is_control) {
            return problems.refuse(
                format!("`{}` is no text that can be shown", printable(text)),
                at,
                "empty, or with control characters",
                "write at least one letter, and no line breaks or other control characters",
            );
        }
        Some(Self(text.to_owned()))
    }
}

/// A whole number from MIN to MAX.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Whole<const MIN: u64, const MAX: u64>(pub u64);

impl<const MIN: u64, const MAX: u64> Value for Whole<MIN, MAX> {
    const SHAPE: Shape = Shape {
        name: "whole number",
        wanted: "a whole number",
        form: Form::Whole(MIN, MAX),
    };

    fn read(item: &Item, at: SourceSpan, problems: &mut Problems<'_>) -> Option<Self> {
        let number = expected::<Self, _>(item.as_integer(), item, at, problems)?;
        if let Some(good) = u64::try_from(number)
            .ok()
            .filter(|number| (MIN..=MAX).contains(number))
        {
            return Some(Self(good));
        }
        problems.refuse_with(
            out_of_range(number, at).help(format!("write a whole number from {MIN} to {MAX}")),
        )
    }
}

fn out_of_range(number: i64, at: SourceSpan) -> Problem {
    let message = format!("{number} is out of range");
    Problem::new(message, at, "too small or too large")
}

/// The urgency of a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UrgencyNumber(pub u8);

impl Value for UrgencyNumber {
    const SHAPE: Shape = Whole::<0, 255>::SHAPE;

    fn read(item: &Item, at: SourceSpan, problems: &mut Problems<'_>) -> Option<Self> {
        let number = expected::<Self, _>(item.as_integer(), item, at, problems)?;
        if let Ok(good) = u8::try_from(number) {
            return Some(Self(good));
        }
        problems.refuse_with(out_of_range(number, at).help(
            "write a whole number from 0 to 255; for `weir linux` one from 0 to 99, the priorities of SCHED_FIFO",
        ))
    }
}

/// Reads a quantity in quotes. For a bare number, the message shows it with the unit and the quotes
/// that are missing.
fn quantity<T: Value, Q>(item: &Item, at: SourceSpan, problems: &mut Problems<'_>) -> Option<Q>
where
    Q: FromStr<Err = QuantityError>,
{
    let text = match item {
        Item::Value(Toml::String(text)) => text.value(),
        Item::Value(Toml::Integer(_) | Toml::Float(_)) => {
            let number = match item {
                Item::Value(Toml::Integer(number)) => number.value().to_string(),
                Item::Value(Toml::Float(number)) => number.value().to_string(),
                _ => String::new(),
            };
            return problems.refuse(
                format!("{number} has no unit"),
                at,
                "a bare number",
                format!("write {}, in quotes", T::SHAPE.wanted),
            );
        }
        _ => return expected::<T, _>(None, item, at, problems),
    };
    match text.parse() {
        Ok(quantity) => Some(quantity),
        Err(error) => {
            refuse_quantity::<T>(text, &error, at, problems);
            None
        }
    }
}

fn refuse_quantity<T: Value>(
    text: &str,
    error: &dyn Display,
    at: SourceSpan,
    problems: &mut Problems<'_>,
) {
    // The error's message contains the text, which may have any characters.
    let message = error.to_string().replace(text, &printable(text));
    problems.report(
        printable_message(&message),
        at,
        format!("a {} is wanted here", T::SHAPE.name),
        format!("write {}", T::SHAPE.wanted),
    );
}

fn printable_message(message: &str) -> String {
    message.chars().filter(|c| !c.is_control()).collect()
}

impl Value for ExactRate {
    const SHAPE: Shape = Shape {
        name: "rate",
        wanted: "a rate with its unit (Hz, kHz, MHz), for example \"20kHz\"",
        form: Form::Text,
    };

    fn read(item: &Item, at: SourceSpan, problems: &mut Problems<'_>) -> Option<Self> {
        quantity::<Self, Self>(item, at, problems)
    }
}

impl Value for ExactTime {
    const SHAPE: Shape = Shape {
        name: "time",
        wanted: "a time with its unit (cycles, ns, us, ms, s), for example \"2ms\"",
        form: Form::Text,
    };

    fn read(item: &Item, at: SourceSpan, problems: &mut Problems<'_>) -> Option<Self> {
        quantity::<Self, Self>(item, at, problems)
    }
}

/// A time that may be zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Amount {
    Zero,
    Time(ExactTime),
}

impl FromStr for Amount {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = match text.parse() {
            Ok(time) => return Ok(Self::Time(time)),
            Err(error) => error,
        };
        // Zero is not a valid time, but it may be a cost.
        let (number, unit) = crate::quantity::number_and_unit(text);
        let nothing = !number.starts_with('-')
            && number.parse::<f64>() == Ok(0.0)
            && format!("1{unit}").parse::<ExactTime>().is_ok();
        if nothing { Ok(Self::Zero) } else { Err(error) }
    }
}

impl Value for Amount {
    const SHAPE: Shape = Shape {
        name: "amount of time",
        wanted: "a time with its unit (cycles, ns, us, ms, s), for example \"120 cycles\" or \"30us\"",
        form: Form::Text,
    };

    fn read(item: &Item, at: SourceSpan, problems: &mut Problems<'_>) -> Option<Self> {
        quantity::<Self, Self>(item, at, problems)
    }
}

section! {
    /// A cost with what is known of it.
    MeasuredCost "cost" {
        /// The most that the work takes.
        required worst: Amount, default "", example "\"120 cycles\"";
        /// Was it measured? Then the verdict says that it was seen, but not proven.
        optional measured: YesNo, default "false", example "true";
    }
}

/// A cost, and whether it was only measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StatedCost {
    pub worst: Amount,
    pub measured: bool,
}

impl Value for StatedCost {
    const SHAPE: Shape = Shape {
        name: "cost",
        wanted: "a cost, for example \"120 cycles\", \"30us\" or { worst = \"120 cycles\", measured = true }",
        form: Form::Either(&Amount::SHAPE, &MeasuredCost::SHAPE),
    };

    fn read(item: &Item, at: SourceSpan, problems: &mut Problems<'_>) -> Option<Self> {
        if item.is_table_like() {
            let cost = MeasuredCost::read(item, at, problems)?;
            return Some(Self {
                worst: *cost.worst.get()?,
                measured: cost.measured.or(YesNo(false))?.0,
            });
        }
        Some(Self {
            worst: quantity::<Self, Amount>(item, at, problems)?,
            measured: false,
        })
    }
}

/// The value `true` or `false`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct YesNo(pub bool);

impl Value for YesNo {
    const SHAPE: Shape = Shape {
        name: "true or false",
        wanted: "true or false",
        form: Form::YesNo,
    };

    fn read(item: &Item, at: SourceSpan, problems: &mut Problems<'_>) -> Option<Self> {
        expected::<Self, _>(item.as_bool(), item, at, problems).map(Self)
    }
}

/// The worst rate of a source: a rate, or a source of regehr2005 Table 1.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Worst {
    Rate(ExactRate),
    Named(&'static WorstRate),
}

impl Value for Worst {
    const SHAPE: Shape = Shape {
        name: "worst rate",
        wanted: "a rate with its unit or the name of a common source, for example \"100kHz\" or \"loose-wire\"",
        form: Form::Text,
    };

    fn read(item: &Item, at: SourceSpan, problems: &mut Problems<'_>) -> Option<Self> {
        let named = item
            .as_str()
            .filter(|text| text.starts_with(|c: char| c.is_ascii_alphabetic()));
        let Some(name) = named else {
            return quantity::<Self, ExactRate>(item, at, problems).map(Self::Rate);
        };
        let found = worst_rates::by_name(name);
        if found.is_none() {
            let known: Vec<&str> = worst_rates::all()
                .iter()
                .map(|rate| rate.id.as_str())
                .collect();
            problems.report(
                format!("there is no common source `{}`", printable(name)),
                at,
                "neither a rate nor a source of regehr2005 Table 1",
                did_you_mean(name, "sources", &known),
            );
        }
        found.map(Self::Named)
    }
}

section! {
    /// The interrupt of a chip that Weir has no board for.
    OwnVector "vector" {
        /// What the chip calls the interrupt.
        required name: Name, default "", example "\"IRQ13\"";
        /// The preemption group: a higher one preempts a lower one, if interrupts are grouped.
        optional group: Whole<0, 4_294_967_295>, default "0 if interrupts are flat; else it must be stated", example "2";
        /// The order inside the group: the lowest is served first.
        required order: Whole<0, 4_294_967_295>, default "", example "13";
    }
}

/// The interrupt of a source.
#[derive(Debug)]
pub(crate) enum Vector {
    Named(Name),
    Own(Box<OwnVector>),
}

impl Value for Vector {
    const SHAPE: Shape = Shape {
        name: "vector",
        wanted: "an interrupt, for example \"INT0\" or { name = \"IRQ13\", group = 2, order = 13 }",
        form: Form::Either(&Name::SHAPE, &OwnVector::SHAPE),
    };

    fn read(item: &Item, at: SourceSpan, problems: &mut Problems<'_>) -> Option<Self> {
        if item.is_table_like() {
            return OwnVector::read(item, at, problems)
                .map(Box::new)
                .map(Self::Own);
        }
        expected::<Self, _>(item.as_str(), item, at, problems)?;
        Name::read(item, at, problems).map(Self::Named)
    }
}

/// A port of TCP or UDP.
pub(crate) type PortNumber = Whole<1, 65535>;

/// An IP address, or a network of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    /// An address of the network.
    pub address: IpAddr,
    /// The length of the prefix in bits: 0 to 32 (IPv4) or 0 to 128 (IPv6). With the largest, the
    /// network is a single address.
    pub prefix: u8,
}

impl Value for Network {
    const SHAPE: Shape = Shape {
        name: "address",
        wanted: "an IP address or network, for example \"192.0.2.7\" or \"2001:db8::/32\"",
        form: Form::Text,
    };

    fn read(item: &Item, at: SourceSpan, problems: &mut Problems<'_>) -> Option<Self> {
        let text = expected::<Self, _>(item.as_str(), item, at, problems)?;
        if let Some(network) = network(text) {
            return Some(network);
        }
        problems.refuse(
            format!("`{}` is no address", printable(text)),
            at,
            "neither IPv4 nor IPv6",
            format!("write {}", Self::SHAPE.wanted),
        )
    }
}

/// An address without a prefix is a network of one address.
fn network(text: &str) -> Option<Network> {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let prefix = match bits {
        Some(bits) => bits.parse().ok().filter(|&bits| bits <= most)?,
        None => most,
    };
    Some(Network { address, prefix })
}
