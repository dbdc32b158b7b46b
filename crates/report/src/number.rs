// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers as a reader wants them.

/// Four significant digits, without trailing zeros, never in exponential form: `4.1`, `99.97`, `1488000`, `0`.
pub(crate) fn short(value: f64) -> String {
    if !value.is_finite() {
        return value.to_string();
    }
    let magnitude = if value == 0.0 {
        0
    } else {
        // At most about 308, so the conversion is exact.
        #[allow(clippy::cast_possible_truncation)]
        let exponent = value.abs().log10().floor() as i32;
        exponent
    };
    let decimals = usize::try_from((3 - magnitude).clamp(0, 6)).unwrap_or(0);
    let text = format!("{value:.decimals$}");
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    };
    if text == "-0" { "0".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::short;

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
}
