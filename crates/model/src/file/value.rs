// SPDX-License-Identifier: MIT OR Apache-2.0
//! Turns the TOML of a system file into Rust values, each with its place in the text.
//!
//! The reader walks the syntax tree itself and does not use serde. Serde stops at the first error,
//! loses the place of tables that only a dotted key mentions, and knows neither defaults nor
//! examples. A [`section!`] defines a struct once; the definition reads the struct, checks it for
//! unknown keys and describes it in the reference.
use miette::SourceSpan;
use toml_edit::{Item, TableLike, Value as Toml};

use crate::diagnostics::{Problem, Problems, UNKNOWN_KEY, did_you_mean};

/// The form of a value, for error messages and the reference.
#[derive(Debug)]
pub(crate) struct Shape {
    /// The name of the form in the reference, for example `rate`, `cost` or `[[source]]`.
    pub name: &'static str,
    /// What is expected, as a phrase that follows the word "expected": "a rate with its unit, for
    /// example `20kHz`".
    pub wanted: &'static str,
    /// How the value is written in TOML.
    pub form: Form,
}

/// How a value is written in TOML.
#[derive(Debug)]
pub(crate) enum Form {
    /// A string.
    Text,
    /// true or false.
    YesNo,
    /// A whole number within these bounds.
    Whole(u64, u64),
    /// One of these words.
    Choice(&'static [Word]),
    /// A table, with the text that describes it, and its keys.
    Section(&'static [&'static str], &'static [KeySpec]),
    /// An array.
    List(&'static Shape),
    /// One of two forms.
    Either(&'static Shape, &'static Shape),
}

impl Form {
    /// The help of a message about a mismatch; `None` if the expected form needs no explanation.
    fn help(&self) -> Option<String> {
        match self {
            Self::YesNo => Some("write true or false, without quotes".to_owned()),
            Self::Whole(least, most) if *most > 1 << 40 => Some(format!(
                "write a whole number of {least} or more, without quotes"
            )),
            Self::Whole(least, most) => Some(format!(
                "write a whole number from {least} to {most}, without quotes"
            )),
            Self::Choice(words) => {
                let words: Vec<String> =
                    words.iter().map(|of| format!("\"{}\"", of.word)).collect();
                Some(format!("write one of {}", words.join(", ")))
            }
            Self::Text | Self::Section(..) | Self::List(_) | Self::Either(..) => None,
        }
    }
}

/// A word of a choice.
#[derive(Debug)]
pub(crate) struct Word {
    /// The word as it is written in the file.
    pub word: &'static str,
    /// The lines that explain the word.
    pub docs: &'static [&'static str],
}

/// A key of a section.
#[derive(Debug)]
pub(crate) struct KeySpec {
    /// The key as it is written in the file.
    pub key: &'static str,
    /// The form of the key's value.
    pub shape: &'static Shape,
    /// Whether the key must be stated.
    pub required: bool,
    /// The text that describes the default.
    pub default: &'static str,
    /// An example, in TOML.
    pub example: &'static str,
    /// The lines that explain the key.
    pub docs: &'static [&'static str],
}

/// A value that can be read from a system file.
pub(crate) trait Value: Sized {
    /// The form of the value.
    const SHAPE: Shape;

    /// Reads the value from `item`, which stands at `at`. Returns `None`, and reports at least one
    /// problem, if `item` is not such a value.
    fn read(item: &Item, at: SourceSpan, problems: &mut Problems<'_>) -> Option<Self>;
}

/// The value of a key.
#[derive(Debug)]
pub(crate) struct KeyValue<T> {
    /// The place of the value; the place of the section if the key is left out.
    pub at: SourceSpan,
    state: ValueState<T>,
}

#[derive(Debug)]
enum ValueState<T> {
    Absent,
    /// The value is wrong, and the problem has been reported.
    Bad,
    Read(T),
}

impl<T> KeyValue<T> {
    /// The value; `None` if it is wrong or left out.
    pub fn get(&self) -> Option<&T> {
        match &self.state {
            ValueState::Read(value) => Some(value),
            ValueState::Absent | ValueState::Bad => None,
        }
    }

    /// Whether the file leaves the key out.
    pub fn is_absent(&self) -> bool {
        matches!(self.state, ValueState::Absent)
    }

    /// Whether the file has the key, even with a wrong value.
    pub fn is_stated(&self) -> bool {
        !self.is_absent()
    }
}

impl<T: Clone> KeyValue<T> {
    /// The value, or `default` if the file does not state it; `None` if the value is wrong.
    pub fn or(&self, default: T) -> Option<T> {
        match &self.state {
            ValueState::Absent => Some(default),
            ValueState::Bad => None,
            ValueState::Read(value) => Some(value.clone()),
        }
    }

    /// The value; `Some(None)` if the file does not state it, and `None` if the value is wrong.
    pub fn optional(&self) -> Option<Option<T>> {
        match &self.state {
            ValueState::Absent => Some(None),
            ValueState::Bad => None,
            ValueState::Read(value) => Some(Some(value.clone())),
        }
    }
}

impl<T: Value> KeyValue<T> {
    /// Reads the key described by `entry` from its section, which stands at `section`.
    pub fn read(
        table: &dyn TableLike,
        entry: &KeySpec,
        section: SourceSpan,
        problems: &mut Problems<'_>,
    ) -> Self {
        let Some((key, item)) = table
            .get_key_value(entry.key)
            .filter(|(_, item)| !item.is_none())
        else {
            if entry.required {
                problems.report(
                    format!("the key `{}` is missing", entry.key),
                    section,
                    "in this section",
                    format!(
                        "add it: {}. {}",
                        assignment(entry),
                        first_sentence(entry.docs)
                    ),
                );
            }
            return Self {
                at: section,
                state: if entry.required {
                    ValueState::Bad
                } else {
                    ValueState::Absent
                },
            };
        };
        let at = place(item)
            .or_else(|| key.span().map(SourceSpan::from))
            .unwrap_or(section);
        let state = T::read(item, at, problems).map_or(ValueState::Bad, ValueState::Read);
        Self { at, state }
    }
}

/// The place of an item; `None` for a table that only dotted keys mention.
fn place(item: &Item) -> Option<SourceSpan> {
    item.span().map(SourceSpan::from)
}

/// A list: `[[source]]` tables or an array.
#[derive(Debug)]
pub(crate) struct List<T>(Vec<T>);

impl<T> KeyValue<List<T>> {
    /// The elements that could be read.
    pub fn elements(&self) -> &[T] {
        self.get().map_or(&[], |list| &list.0)
    }
}

impl<T: Value> Value for List<T> {
    const SHAPE: Shape = Shape {
        name: T::SHAPE.name,
        wanted: T::SHAPE.wanted,
        form: Form::List(&T::SHAPE),
    };

    fn read(item: &Item, at: SourceSpan, problems: &mut Problems<'_>) -> Option<Self> {
        let mut elements = Vec::new();
        // Elements that cannot be read are reported. The others are still read, so that their
        // problems are reported too.
        let mut all = |item: &Item| {
            elements.extend(T::read(item, place(item).unwrap_or(at), problems));
        };
        match item {
            Item::ArrayOfTables(tables) => {
                for table in tables {
                    all(&Item::Table(table.clone()));
                }
            }
            Item::Value(Toml::Array(array)) => {
                for value in array {
                    all(&Item::Value(value.clone()));
                }
            }
            _ => return expected::<Self, _>(None, item, at, problems),
        }
        Some(Self(elements))
    }
}

/// Returns `read`, which is the value of `item` if it has the form of a `T`. If `read` is `None`,
/// reports that `item` does not have this form.
pub(crate) fn expected<T: Value, R>(
    read: Option<R>,
    item: &Item,
    at: SourceSpan,
    problems: &mut Problems<'_>,
) -> Option<R> {
    if read.is_some() {
        return read;
    }
    let problem = Problem::new(
        format!("expected {}, found {}", T::SHAPE.wanted, described(item)),
        at,
        "this is another kind of value",
    );
    problems.refuse_with(match T::SHAPE.form.help() {
        Some(help) => problem.help(help),
        None => problem,
    })
}

fn described(item: &Item) -> String {
    match item {
        Item::Value(Toml::Integer(number)) => format!("the number {}", number.value()),
        Item::Value(Toml::Float(number)) => format!("the number {:?}", number.value()),
        Item::Value(Toml::Boolean(value)) => format!("{}", value.value()),
        Item::Value(Toml::String(text)) => format!("the text `{}`", printable(text.value())),
        Item::Value(Toml::Datetime(_)) => "a date".to_owned(),
        Item::Value(Toml::Array(_)) => "an array".to_owned(),
        Item::Value(Toml::InlineTable(_)) | Item::Table(_) => "a single table".to_owned(),
        Item::ArrayOfTables(_) => "an array of tables".to_owned(),
        Item::None => "nothing".to_owned(),
    }
}

/// A piece of the file in a form that can be shown: without control characters and not too long.
pub(crate) fn printable(text: &str) -> String {
    const MOST: usize = 60;
    let mut shown: String = text
        .chars()
        .take(MOST)
        .flat_map(|c| {
            if c.is_control() {
                c.escape_default().collect::<Vec<_>>()
            } else {
                vec![c]
            }
        })
        .collect();
    if text.chars().nth(MOST).is_some() {
        shown.push('…');
    }
    shown
}

/// Reports the keys of a table that its section does not have. The help only suggests keys for
/// which `fits` is true, because they go together with the table's other keys.
pub(crate) fn refuse_unknown(
    table: &dyn TableLike,
    shape: &Shape,
    entries: &[KeySpec],
    fits: impl Fn(&dyn TableLike, &str) -> bool,
    section: SourceSpan,
    problems: &mut Problems<'_>,
) {
    for (name, item) in table.iter() {
        if entries.iter().any(|entry| entry.key == name) {
            continue;
        }
        let at = table
            .key(name)
            .and_then(toml_edit::Key::span)
            .map(SourceSpan::from)
            .or_else(|| place(item))
            .unwrap_or(section);
        let known = entries.iter().map(|entry| entry.key);
        let known: Vec<&str> = known.filter(|key| fits(table, key)).collect();
        problems.report(
            format!("{} has no key `{}`", shape.name, printable(name)),
            at,
            UNKNOWN_KEY,
            did_you_mean(name, &format!("keys of {}", shape.name), &known),
        );
    }
}

/// The text `key = example`, or the header of a section.
pub(crate) fn assignment(entry: &KeySpec) -> String {
    match entry.shape.form {
        Form::List(_) => format!("[[{}]]", entry.key),
        _ => format!("{} = {}", entry.key, entry.example),
    }
}

/// The lines of a doc comment as one text.
pub(crate) fn text_of(docs: &[&str]) -> String {
    docs.iter()
        .map(|line| line.trim())
        .collect::<Vec<_>>()
        .join(" ")
}

fn first_sentence(docs: &[&str]) -> String {
    let text = text_of(docs);
    match text.find(". ") {
        Some(end) => text[..=end].to_owned(),
        None => text,
    }
}

/// Defines a section as a struct of [`KeyValue`]s. The struct lists its keys, their defaults and
/// examples, and can be read from a table.
macro_rules! section {
    (@required required) => { true };
    (@required optional) => { false };
    (@name $key:ident) => { stringify!($key) };
    (@name $key:ident $name:literal) => { $name };
    (@fits) => { |_, _| true };
    (@fits $fits:path) => { $fits };
    (
        $(#[doc = $about:literal])+
        $section:ident $title:literal $(, offers $fits:path)? {
            $(
                $(#[doc = $docs:literal])+
                $need:ident $key:ident $(as $name:literal)? : $type:ty, default $default:literal, example $example:literal;
            )*
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Debug)]
        #[allow(dead_code, reason = "every section knows its place")]
        pub(crate) struct $section {
            /// The place where the section begins.
            pub at: miette::SourceSpan,
            $( $(#[doc = $docs])+ pub $key: crate::file::value::KeyValue<$type>, )*
        }

        impl $section {
            const ENTRIES: &'static [crate::file::value::KeySpec] = &[
                $( crate::file::value::KeySpec {
                    key: section!(@name $key $($name)?),
                    shape: &<$type as crate::file::value::Value>::SHAPE,
                    required: section!(@required $need),
                    default: $default,
                    example: $example,
                    docs: &[$($docs),+],
                }, )*
            ];
        }

        impl crate::file::value::Value for $section {
            const SHAPE: crate::file::value::Shape = crate::file::value::Shape {
                name: $title,
                wanted: concat!("a table `", $title, "`"),
                form: crate::file::value::Form::Section(&[$($about),+], Self::ENTRIES),
            };

            fn read(
                item: &toml_edit::Item,
                at: miette::SourceSpan,
                problems: &mut crate::diagnostics::Problems<'_>,
            ) -> Option<Self> {
                let table = crate::file::value::expected::<Self, _>(item.as_table_like(), item, at, problems)?;
                crate::file::value::refuse_unknown(table, &Self::SHAPE, Self::ENTRIES, section!(@fits $($fits)?), at, problems);
                let mut entries = Self::ENTRIES.iter();
                // The fields and these entries come from the same list, so their order is the same.
                let mut next = || entries.next();
                Some(Self {
                    at,
                    $( $key: crate::file::value::KeyValue::read(table, next()?, at, problems), )*
                })
            }
        }
    };
}

/// Defines a choice of words: a public enum, and the word in a file for each variant.
macro_rules! choice {
    (
        $(#[doc = $about:literal])+
        $choice:ident $title:literal $(, default $default:ident)? {
            $( $(#[doc = $docs:literal])+ $variant:ident = $word:literal, )+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $choice {
            $( $(#[doc = $docs])+ $variant, )+
        }

        $(impl Default for $choice {
            fn default() -> Self {
                Self::$default
            }
        })?

        impl $choice {
            /// All variants, in the order of the reference.
            pub const ALL: &'static [Self] = &[ $( Self::$variant, )+ ];

            /// The word of this variant in a system file.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $( Self::$variant => $word, )+
                }
            }
        }

        crate::file::value::words! {
            $choice $title { $( $(#[doc = $docs])+ $variant, )+ }
        }
    };
}

/// Makes an enum readable from a file by its words. The enum must have a `name()` and list its
/// variants in `ALL`.
macro_rules! words {
    (
        $choice:ident $title:literal {
            $( $(#[doc = $docs:literal])+ $variant:ident, )+
        }
    ) => {
        impl crate::file::value::Value for $choice {
            const SHAPE: crate::file::value::Shape = crate::file::value::Shape {
                name: $title,
                wanted: concat!("a word in quotes for the ", $title),
                form: crate::file::value::Form::Choice(&[
                    $( crate::file::value::Word { word: $choice::$variant.name(), docs: &[$($docs),+] }, )+
                ]),
            };

            fn read(
                item: &toml_edit::Item,
                at: miette::SourceSpan,
                problems: &mut crate::diagnostics::Problems<'_>,
            ) -> Option<Self> {
                crate::file::value::one_of(item, &$choice::ALL[..], Self::name, at, problems)
            }
        }
    };
}

/// The value of `all` whose word is written. Reports a word that belongs to none of them.
pub(crate) fn one_of<T: Value + Copy>(
    item: &Item,
    all: &[T],
    name: impl Fn(T) -> &'static str,
    at: SourceSpan,
    problems: &mut Problems<'_>,
) -> Option<T> {
    let written = expected::<T, _>(item.as_str(), item, at, problems)?;
    let known = all.iter().copied().find(|&one| name(one) == written);
    if known.is_none() {
        let words: Vec<&str> = all.iter().map(|&one| name(one)).collect();
        no_such_word(written, &T::SHAPE, &words, at, problems);
    }
    known
}

/// Reports a word that a choice does not have.
pub(crate) fn no_such_word(
    written: &str,
    shape: &Shape,
    known: &[&str],
    at: SourceSpan,
    problems: &mut Problems<'_>,
) {
    problems.report(
        format!("there is no {} `{}`", shape.name, printable(written)),
        at,
        "unknown word",
        did_you_mean(written, &format!("words for the {}", shape.name), known),
    );
}

pub(crate) use {choice, section, words};
