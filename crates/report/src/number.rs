// SPDX-License-Identifier: MIT OR Apache-2.0
//! Formats numbers for readers.

/// Formats `value` with four significant digits, without trailing zeros and never in exponential
/// form: `4.1`, `99.97`, `1488000`, `0`.
#[must_use]
pub fn short(value: f64) -> String {
    significant(value, 4)
}

/// Formats `value` with `digits` significant digits (at least 1), or more if the integer part has
/// more. The result has no trailing zeros, no exponent and at most six decimals.
#[must_use]
pub fn significant(value: f64, digits: u8) -> String {
    if !value.is_finite() {
        return value.to_string();
    }
    let magnitude = if value == 0.0 {
        0
    } else {
        // The exponent is at most about 308, so the conversion is exact.
        #[allow(clippy::cast_possible_truncation)]
        let exponent = value.abs().log10().floor() as i32;
        exponent
    };
    let decimals = (i32::from(digits) - 1).saturating_sub(magnitude);
    let decimals = usize::try_from(decimals.clamp(0, 6)).unwrap_or(0);
    let text = format!("{value:.decimals$}");
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    };
    if text == "-0" { "0".to_owned() } else { text }
}

/// Formats a time in seconds with a suitable unit: `62.5 ns`, `1.23 ms`, `0`.
#[must_use]
pub fn time(seconds: f64, digits: u8) -> String {
    scaled(
        seconds,
        digits,
        &[(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")],
    )
}

/// Formats a rate in hertz with a suitable unit: `110 Hz`, `1.5 kHz`.
#[must_use]
pub fn rate(hertz: f64, digits: u8) -> String {
    scaled(hertz, digits, &[(1e6, "MHz"), (1e3, "kHz"), (1.0, "Hz")])
}

/// Formats a fraction of 1 as a percentage with one decimal: `12.3 %`. From 1000 % on there are no
/// decimals.
#[must_use]
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent >= 1000.0 {
        format!("{percent:.0} %")
    } else {
        format!("{percent:.1} %")
    }
}

/// Formats a count with its digits in groups of three: `1,234,567`.
#[must_use]
pub fn count(of: u64) -> String {
    let digits = of.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a count with its noun: `1 row`, `1,200 rows`.
#[must_use]
pub fn plural(of: u64, what: &str) -> String {
    format!("{} {what}{}", count(of), if of == 1 { "" } else { "s" })
}

/// Formats `value` in the largest of `units` in which it is at least 1, or in the smallest unit if
/// there is none. `units` are sorted from large to small.
fn scaled(value: f64, digits: u8, units: &[(f64, &str)]) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    // A value that would be rounded up to 1 counts as 1: it may be smaller by half a unit of the
    // last digit.
    let nearly = 1.0 - 0.5 * 10_f64.powi(-i32::from(digits));
    let (scale, unit) = units
        .iter()
        .find(|(scale, _)| value.abs() >= scale * nearly)
        .or(units.last())
        .copied()
        .unwrap_or((1.0, ""));
    format!("{} {unit}", significant(value / scale, digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_plain() {
        let cases: [(f64, &str); 10] = [
            (0.0, "0"),
            (-0.0, "0"),
            (4.0, "4"),
            (4.123_456, "4.123"),
            (99.966, "99.97"),
            (14_880.952, "14881"),
            (1_488_095.2, "1488095"),
            (0.012_345, "0.01235"),
            (-1.5, "-1.5"),
            (1e-9, "0"),
        ];
        for (value, text) in cases {
            assert_eq!(short(value), text);
        }
    }

    #[test]
    fn counts_are_grouped_by_three() {
        for (of, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (123_456, "123,456"),
            (u64::MAX, "18,446,744,073,709,551,615"),
        ] {
            assert_eq!(count(of), text);
        }
        assert_eq!(plural(0, "row"), "0 rows");
        assert_eq!(plural(1, "row"), "1 row");
        assert_eq!(plural(1200, "row"), "1,200 rows");
    }

    #[test]
    fn times_and_rates_have_the_unit_that_suits_them() {
        for (seconds, text) in [
            (0.0, "0"),
            (62.5e-9, "62.5 ns"),
            (1e-6, "1 µs"),
            (999.96e-6, "1 ms"),
            (999.4e-6, "999 µs"),
            (1.2345e-3, "1.23 ms"),
            (-0.25, "-250 ms"),
            (3600.0, "3600 s"),
            (1e-12, "0.001 ns"),
        ] {
            assert_eq!(time(seconds, 3), text, "{seconds}");
        }
        assert_eq!(time(0.010_000_4, 6), "10.0004 ms");
        assert_eq!(rate(110.04, 3), "110 Hz");
        assert_eq!(rate(754.0, 3), "754 Hz");
        assert_eq!(rate(1500.0, 3), "1.5 kHz");
        assert_eq!(rate(0.25, 3), "0.25 Hz");
        assert_eq!(percent(0.123_4), "12.3 %");
        assert_eq!(percent(25.0), "2500 %");
    }
}
