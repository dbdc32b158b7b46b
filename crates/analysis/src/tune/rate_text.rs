// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the shortest text of a rate that the reader of the file rounds to the wanted number of
//! ticks.

use std::fmt::Write;

/// The most decimals. With more, a rate is no easier to read than a number of cycles.
const MOST_DECIMALS: u32 = 4;

/// The rate with the fewest decimals, for example `324.1Hz`, for which the interval of `burst`
/// requests, rounded up, is `ticks` ticks of `divisor` cycles at a clock of `clock_hz`. `None` if
/// it would need too many decimals.
#[must_use]
pub fn rate_text(burst: u32, ticks: u64, divisor: u64, clock_hz: u64) -> Option<String> {
    let events = u128::from(burst).checked_mul(u128::from(clock_hz))?;
    let tick = u128::from(divisor);
    let longest = tick.checked_mul(u128::from(ticks))?;
    let too_short = tick.checked_mul(u128::from(ticks.checked_sub(1)?))?;
    (0..=MOST_DECIMALS).find_map(|decimals| {
        let scale = 10_u128.pow(decimals);
        let scaled = events.checked_mul(scale)?;
        // The rate is a number r with ticks - 1 < events / (r * divisor) <= ticks.
        let number = scaled.div_ceil(longest);
        (number > 0 && number.checked_mul(too_short)? < scaled).then(|| text(number, decimals))
    })
}

fn text(number: u128, decimals: u32) -> String {
    let (decimals, unit) = if decimals == 0 && number >= 1_000 {
        (3, "kHz")
    } else {
        (decimals, "Hz")
    };
    let scale = 10_u128.pow(decimals);
    let (whole, part) = (number / scale, number % scale);
    let mut text = whole.to_string();
    if part > 0 {
        let width = usize::try_from(decimals).unwrap_or(0);
        // Writing to a String cannot fail.
        let _ = write!(text, ".{part:0width$}");
        text.truncate(text.trim_end_matches('0').len());
    }
    text + unit
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weir_model::Rate;

    #[test]
    fn rates_are_as_short_as_can_be() {
        assert_eq!(rate_text(1, 36_364, 1, 4_000_000).unwrap(), "110Hz");
        assert_eq!(rate_text(1, 12_345, 1, 4_000_000).unwrap(), "324.02Hz");
        assert_eq!(rate_text(1, 320, 1, 4_000_000).unwrap(), "12.5kHz");
        assert_eq!(rate_text(4, 2_000, 8, 16_000_000).unwrap(), "4kHz");
    }

    proptest! {
        #[test]
        fn what_is_written_is_rounded_to_what_was_meant(burst in 1..255_u32, ticks in 1..65_536_u64, divisor in prop::sample::select(vec![1_u64, 8, 64, 1024]), clock in 1_000_000..200_000_000_u64) {
            if let Some(text) = rate_text(burst, ticks, divisor, clock) {
                let hertz = text.parse::<Rate>().unwrap().hertz();
                let exact = f64::from(burst) * clock as f64 / (hertz * divisor as f64);
                prop_assert_eq!((exact * (1.0 - 1e-13)).ceil() as u64, ticks, "{}", text);
            }
        }
    }
}
