// SPDX-License-Identifier: GPL-3.0-or-later
//! Random numbers for searches.
use rand::Rng;
use rand_chacha::ChaCha12Rng;

/// A random number from `least` to `most`, log-uniform: every order of magnitude is equally likely.
pub(super) fn log_uniform(random: &mut ChaCha12Rng, least: u64, most: u64) -> u64 {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the bounds are small and positive, and the value lies between them"
    )]
    let value = {
        let (least, most) = (least as f64, most as f64);
        (least * (most / least).powf(random.random::<f64>())).round() as u64
    };
    value.clamp(least, most)
}
