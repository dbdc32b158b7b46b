// SPDX-License-Identifier: GPL-3.0-or-later
//! The tone that a node plays on a pin, computed from the times of the pin's edges.
use std::f64::consts::PI;

use rustfft::FftPlannerScalar;
use rustfft::num_complex::Complex;
use serde_json::{Value, json};

use crate::experiment::series::Values;
use crate::experiment::series::formula::number;

/// The address of the register that sets the pin (LED 0 of the board), and the pin's bit in it.
const REGISTER: u32 = 0x4002_8000;
const BIT: u8 = 0;
/// The number of sound samples per second.
pub(super) const RATE: u32 = 8000;
/// The names of the values of a tone.
pub(super) const VALUES: [&str; 4] = ["hz", "jitter", "pitch", "distortion"];
/// The relative distance up to which a line of the spectrum counts as a harmonic of the tone.
const APART: f64 = 0.01;
/// The cutoff frequency, in Hz, of a loudspeaker behind a capacitor.
const LEAST_HZ: f64 = 20.0;
const SECOND_NS: u64 = 1_000_000_000;

/// The entry `outputs` of the peer's plan, which makes the peer record the pin's edges.
pub(super) fn output() -> Value {
    json!([{ "name": "tone", "address": REGISTER, "bit": BIT }])
}

/// The level of the pin during a run's windows.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tone {
    /// The times of the edges in nanoseconds, counted from the beginning of the first window.
    edges: Vec<u64>,
    /// Whether the pin is high at that time.
    begins_high: bool,
    /// The length of all windows in nanoseconds.
    length: u64,
}

impl Tone {
    /// Reads the edges in the peer's report that lie within `seconds` seconds from the time
    /// `begin`.
    pub fn of(peer: &Value, begin: u64, seconds: u32) -> Result<Self, String> {
        let edges = peer["outputs"][0]["edges_ns"].as_array();
        let edges = edges.ok_or("the peer has noted no pin")?;
        let times: Option<Vec<u64>> = edges.iter().map(Value::as_u64).collect();
        let times = times.ok_or("the time of an edge is no number")?;
        let length = u64::from(seconds) * SECOND_NS;
        let before = times.partition_point(|at| *at < begin);
        let within = times[before..].iter().map(|at| at - begin);
        Ok(Self {
            edges: within.take_while(|at| *at < length).collect(),
            begins_high: before % 2 == 1,
            length,
        })
    }

    /// The values of the tone, where `hz` is the intended frequency: the frequency by the number of
    /// edges, in Hz; the largest deviation of a distance between two edges, in ms, where silence
    /// counts as a distance; the strongest line of the spectrum in Hz, or 0 if there is none; and
    /// the share of the power that is not on a harmonic of the intended tone, in percent.
    pub fn values(&self, hz: f64) -> Values {
        let seconds = float(self.length) / float(SECOND_NS);
        let frequency = float(self.edges.len() as u64) / (2.0 * seconds);
        let (pitch, distortion) = self.spectrum(hz);
        let all = [frequency, self.jitter(hz), pitch, distortion];
        let named = VALUES.into_iter().zip(all);
        named
            .map(|(name, value)| (format!("tone.{name}"), number(value)))
            .collect()
    }

    fn jitter(&self, hz: f64) -> f64 {
        let half = float(SECOND_NS) / (2.0 * hz);
        // The time before the first edge and the time after the last edge count as distances only
        // if they are too long.
        let first = self.edges.first().copied().unwrap_or(self.length);
        let silence = self.edges.last().map_or(0, |last| self.length - last);
        let late = float(first.max(silence)) - half;
        let distances = self.edges.windows(2).map(|pair| float(pair[1] - pair[0]));
        let most = distances.fold(late, |most, distance| most.max((distance - half).abs()));
        most.max(0.0) / 1e6
    }

    fn spectrum(&self, hz: f64) -> (f64, f64) {
        let samples = self.samples();
        let count = samples.len();
        let powers = powers(samples.into_iter());
        let step = f64::from(RATE) / float(count as u64);
        // Skip the first power, which is that of the constant component.
        let lines = || (1..=count / 2).map(|at| (float(at as u64) * step, powers[at]));
        let all: f64 = lines().map(|(_, power)| power).sum();
        if self.edges.is_empty() || all <= 0.0 {
            return (0.0, 100.0);
        }
        let is_of_tone = |of: f64| {
            // A square wave has odd harmonics only.
            let multiple = 2.0 * ((of / hz - 1.0) / 2.0).round() + 1.0;
            (of / hz - multiple).abs() <= APART * multiple.min(1.0)
        };
        let tone: f64 = lines()
            .filter(|(of, _)| is_of_tone(*of))
            .map(|(_, power)| power)
            .sum();
        let strongest = lines().fold(
            (0.0, 0.0),
            |most, line| {
                if line.1 > most.1 { line } else { most }
            },
        );
        (strongest.0, 100.0 * (1.0 - tone / all))
    }

    /// The mean level of the pin during each sample, from -1 to 1.
    pub fn samples(&self) -> Vec<f64> {
        let period = SECOND_NS / u64::from(RATE);
        let mut samples = Vec::new();
        let mut edges = self.edges.iter().copied().peekable();
        let mut level = if self.begins_high { 1 } else { -1 };
        let mut at = 0;
        while at < self.length {
            let end = at + period;
            let mut sum = 0.0;
            while let Some(edge) = edges.next_if(|edge| *edge < end) {
                sum += f64::from(level) * float(edge - at);
                (at, level) = (edge, -level);
            }
            sum += f64::from(level) * float(end - at);
            samples.push(sum / float(period));
            at = end;
        }
        samples
    }
}

/// The signal that a loudspeaker behind a capacitor plays: the samples behind a high-pass filter.
pub(super) fn heard(samples: &[f64]) -> Vec<f64> {
    let kept = (-2.0 * PI * LEAST_HZ / f64::from(RATE)).exp();
    let (mut before, mut out) = (samples.first().copied().unwrap_or(0.0), 0.0);
    let step = |sample: &f64| {
        out = kept * (out + sample - before);
        before = *sample;
        out
    };
    samples.iter().map(step).collect()
}

/// The power of each frequency from 0 to half of the sampling rate, in equal steps.
pub(super) fn powers(samples: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut buffer: Vec<Complex<f64>> = samples.map(Complex::from).collect();
    let count = buffer.len();
    FftPlannerScalar::new()
        .plan_fft_forward(count)
        .process(&mut buffer);
    let power = |line: &Complex<f64>| line.norm_sqr();
    buffer[..=count / 2].iter().map(power).collect()
}

#[expect(
    clippy::cast_precision_loss,
    reason = "nanoseconds of some minutes, and numbers of samples"
)]
fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn tone(edges: impl Iterator<Item = u64>) -> Tone {
        let edges: Vec<u64> = edges.collect();
        let peer = json!({ "outputs": [{ "edges_ns": edges }] });
        Tone::of(&peer, SECOND_NS, 2).unwrap()
    }

    fn values(of: &Tone) -> [f64; 4] {
        let values = of.values(250.0);
        VALUES.map(|name| values[&format!("tone.{name}")].as_number().unwrap())
    }

    #[test]
    fn a_clean_tone_is_one_line_and_its_multiples() {
        let clean = tone((1..2000).map(|edge| edge * 2 * MS));
        let [hz, jitter, pitch, distortion] = values(&clean);
        assert_eq!((hz, jitter, pitch), (250.0, 0.0, 250.0));
        assert!(distortion < 1e-6, "{distortion}");
        assert!(clean.begins_high && clean.edges[0] == 0);
    }

    #[test]
    fn what_is_late_is_jitter_and_what_is_irregular_is_distorted() {
        let late = |edge: u64| if edge % 7 == 0 { MS / 2 } else { 0 };
        let [hz, jitter, pitch, distortion] =
            values(&tone((1..2000).map(|edge| edge * 2 * MS + late(edge))));
        assert!((hz - 250.0).abs() < 1.0 && (pitch - 250.0).abs() < 1.0);
        assert!(
            (jitter - 0.5).abs() < 1e-9 && distortion > 5.0,
            "{distortion}"
        );
    }

    #[test]
    fn silence_has_no_pitch_and_counts_as_jitter() {
        assert_eq!(values(&tone(std::iter::empty())), [0.0, 1998.0, 0.0, 100.0]);
        // The last edge comes half a second before the end.
        let stops = tone((1..=1250).map(|edge| edge * 2 * MS));
        assert_eq!(values(&stops)[1], 498.0);
        assert!(Tone::of(&json!({}), 0, 1).unwrap_err().contains("no pin"));
    }

    #[test]
    fn samples_are_means_and_a_level_is_not_heard() {
        let period = SECOND_NS / u64::from(RATE);
        let one = tone(std::iter::once(SECOND_NS + period / 4));
        let samples = one.samples();
        assert_eq!(samples.len(), 16_000);
        assert!((samples[0] - 0.5).abs() < 1e-12 && (samples[1] - 1.0).abs() < 1e-12);
        assert!(heard(&samples)[15_999].abs() < 1e-6);
    }
}
