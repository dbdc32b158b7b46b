// SPDX-License-Identifier: MIT OR Apache-2.0
//! The values of a parameter in the form of the command line: `1kHz,2kHz`, `1kHz..20kHz:1kHz`,
//! `poisson:{1kHz..20kHz:1kHz}`.

/// The most values of a parameter. A larger number is probably a typing error.
const MOST: f64 = 1e6;

/// The values of a parameter. The values of a range are computed on demand: there can be a million
/// of them, and a part of a sweep needs only a few.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Values {
    text: String,
    items: Vec<Item>,
}

/// A single value, or several values that differ in a number.
#[derive(Debug, Clone, PartialEq)]
enum Item {
    One(String),
    Range {
        before: String,
        range: ValueRange,
        after: String,
    },
}

impl Item {
    fn count(&self) -> u64 {
        match self {
            Self::One(_) => 1,
            Self::Range { range, .. } => range.count.into(),
        }
    }
}

impl Values {
    /// Parses a list of values.
    ///
    /// # Errors
    /// The error says what is wrong and what would be right.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut all = Vec::new();
        for item in items(text) {
            let item = item.trim();
            if item.is_empty() {
                return Err(format!(
                    "`{text}` has an empty value: write for example 1kHz,2kHz"
                ));
            }
            if item.contains(char::is_control) {
                return Err(format!("`{}` is more than a line", item.escape_debug()));
            }
            all.push(expand(item)?);
        }
        Ok(Self {
            text: text.to_owned(),
            items: all,
        })
    }

    /// Returns the text of the list.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the number of values.
    pub fn count(&self) -> u64 {
        self.items.iter().map(Item::count).sum()
    }

    /// Returns the value of this index. `None` if there are fewer values.
    pub fn get(&self, index: u64) -> Option<String> {
        let mut left = index;
        for item in &self.items {
            if left < item.count() {
                return Some(match item {
                    Item::One(value) => value.clone(),
                    Item::Range {
                        before,
                        range,
                        after,
                    } => format!("{before}{}{after}", range.value(u32::try_from(left).ok()?)),
                });
            }
            left -= item.count();
        }
        None
    }
}

/// Splits `text` at commas that are outside brackets and quotes.
fn items(text: &str) -> Vec<&str> {
    let (mut items, mut begin, mut depth, mut quote) = (Vec::new(), 0, 0_usize, None);
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(open), _) if open == letter => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(letter),
            (None, '{' | '[') => depth += 1,
            (None, '}' | ']') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                items.push(&text[begin..at]);
                begin = at + 1;
            }
            (None, _) => {}
        }
    }
    items.push(&text[begin..]);
    items
}

/// Parses an item: a range, a text with a range in braces, or a value.
fn expand(item: &str) -> Result<Item, String> {
    let of = |before: &str, range, after: &str| Item::Range {
        before: before.to_owned(),
        range,
        after: after.to_owned(),
    };
    if let Some(range) = ValueRange::read(item)? {
        return Ok(of("", range, ""));
    }
    let braced = item.split_once('{').and_then(|(before, rest)| {
        let (inside, after) = rest.split_once('}')?;
        Some((before, inside, after))
    });
    if let Some((before, inside, after)) = braced {
        if let Some(range) = ValueRange::read(inside)? {
            return Ok(of(before, range, after));
        }
    }
    Ok(Item::One(item.to_owned()))
}

/// A range of numbers with a common unit and a constant step.
#[derive(Debug, Clone, PartialEq)]
struct ValueRange {
    first: f64,
    count: u32,
    step: f64,
    unit: String,
}

impl ValueRange {
    /// Parses a range. `None` if the text is not a range.
    fn read(text: &str) -> Result<Option<Self>, String> {
        let is_number = text
            .trim_start()
            .starts_with(|c: char| c.is_ascii_digit() || c == '.');
        let Some((first, rest)) = text.split_once("..").filter(|_| is_number) else {
            return Ok(None);
        };
        let wrong = |what: &str| {
            format!("the range `{text}` {what}: write for example 1kHz..20kHz:1kHz, or 1..5")
        };
        let (last, step) = match rest.split_once(':') {
            Some((last, step)) => (last, step),
            None => (rest, "1"),
        };
        let number = |text: &str| {
            number_and_unit(text).ok_or_else(|| wrong(&format!("has `{text}`, which is no number")))
        };
        let parts = [number(first)?, number(last)?, number(step)?];
        let units = parts.each_ref().map(|(_, unit)| unit.as_str());
        let Some((unit, scales)) = smallest(units) else {
            return Err(wrong("has units that do not go together"));
        };
        let [first, last, step] = [0, 1, 2].map(|part| parts[part].0 * scales[part]);
        let steps = (last - first) / step;
        if !(step > 0.0 && steps >= 0.0) {
            return Err(wrong("has no values"));
        }
        if steps > MOST {
            return Err(wrong("has more than a million values"));
        }
        // Rounding may have moved the last value slightly beyond the end. It still belongs to the
        // range.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "from 0 to a million"
        )]
        let count = (steps + 1e-9).floor() as u32 + 1;
        Ok(Some(Self {
            first,
            count,
            step,
            unit: unit.to_owned(),
        }))
    }

    fn value(&self, index: u32) -> String {
        let value = self.first + f64::from(index) * self.step;
        // The value is rounded to twelve digits, so that ten times a tenth is one.
        let rounded = format!("{value:.11e}").parse().unwrap_or(value);
        format!("{rounded}{}", self.unit)
    }
}

/// Families of units that can be converted into each other. Each unit has its multiple of the
/// smallest one.
const FAMILIES: [&[(&str, f64)]; 2] = [
    &[("Hz", 1.0), ("kHz", 1e3), ("MHz", 1e6)],
    &[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)],
];

/// Returns the smallest of three units, and each unit as a multiple of it. `None` if they cannot be
/// converted into each other.
fn smallest(units: [&str; 3]) -> Option<(&str, [f64; 3])> {
    if units.iter().all(|unit| *unit == units[0]) {
        return Some((units[0], [1.0; 3]));
    }
    let of = |family: &[(&str, f64)], unit: &str| {
        let found = family.iter().find(|(name, _)| *name == unit);
        found.map(|&(_, scale)| scale)
    };
    FAMILIES.iter().find_map(|family| {
        let [a, b, c] = units.map(|unit| of(family, unit));
        let scales = [a?, b?, c?];
        let least = scales.into_iter().fold(f64::INFINITY, f64::min);
        let (name, _) = family.iter().find(|&&(_, scale)| scale == least)?;
        Some((*name, scales.map(|scale| scale / least)))
    })
}

fn number_and_unit(text: &str) -> Option<(f64, String)> {
    let text = text.trim();
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = match unit.trim() {
        "\u{b5}s" | "\u{3bc}s" => "us",
        unit => unit,
    };
    Some((number.parse().ok()?, unit.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::Values;

    #[test]
    fn lists_and_ranges_are_expanded_in_their_order() {
        for (text, expected) in [
            ("1kHz", &["1kHz"][..]),
            ("3,1,2", &["3", "1", "2"]),
            ("1..4", &["1", "2", "3", "4"]),
            ("1kHz..3kHz:1kHz,9kHz", &["1kHz", "2kHz", "3kHz", "9kHz"]),
            ("0.1..0.3:0.1", &["0.1", "0.2", "0.3"]),
            ("1kHz..1.2kHz:100Hz", &["1000Hz", "1100Hz", "1200Hz"]),
            ("500us..1ms:500us", &["500us", "1000us"]),
            ("500\u{b5}s..1ms:500\u{3bc}s", &["500us", "1000us"]),
            ("1ms..2ms:0.4ms", &["1ms", "1.4ms", "1.8ms"]),
            ("uniform:10us..90us", &["uniform:10us..90us"]),
            (
                "poisson:{1kHz..2kHz:1kHz}",
                &["poisson:1kHz", "poisson:2kHz"],
            ),
            (
                "{ policy = \"strict\", rate = \"1kHz\" },{ policy = \"off\" }",
                &[
                    "{ policy = \"strict\", rate = \"1kHz\" }",
                    "{ policy = \"off\" }",
                ],
            ),
            ("\"a,b\",c", &["\"a,b\"", "c"]),
        ] {
            let values = Values::read(text).unwrap();
            let all: Vec<String> = (0..values.count())
                .filter_map(|of| values.get(of))
                .collect();
            assert_eq!(all, expected, "{text}");
            assert_eq!(values.get(values.count()), None);
        }
    }

    #[test]
    fn what_is_no_list_says_so() {
        for (text, says) in [
            ("", "empty value"),
            ("1,,2", "empty value"),
            ("1\n2", "more than a line"),
            ("1..x", "no number"),
            ("1..", "no number"),
            ("1kHz..2kHz", "units that do not go together"),
            ("1kHz..2kHz:1us", "units that do not go together"),
            ("1%..2ms:1%", "units that do not go together"),
            ("1kHz..2Hz:1kHz", "no values"),
            ("5..1", "no values"),
            ("1..2:0", "no values"),
            ("0..1:0.0000001", "more than a million"),
        ] {
            let error = Values::read(text).unwrap_err();
            assert!(error.contains(says), "{text:?}: {error}");
        }
    }
}
