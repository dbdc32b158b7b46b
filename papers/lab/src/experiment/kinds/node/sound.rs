// SPDX-License-Identifier: GPL-3.0-or-later
//! Sounds of a node's tone: a WAV file with one second for each point of an axis in turn, and a
//! picture of the spectrograms of all sounds.
use std::io::Cursor;

use hound::{SampleFormat, WavSpec, WavWriter};
use weir_report::PICTURE_MARK;

use super::spec::Node;
use super::tone::{RATE, Tone, heard, powers};
use crate::experiment::error::ExperimentError;
use crate::experiment::findings::ExtraName;
use crate::experiment::spectrogram::{SpectralPanel, Spectrogram};

/// The bytes that mark a WAV file as written by Weir: the ISFT chunk, which names the program.
const MARK: &str = "ISFT\u{4}\0\0\0weir";
/// The number of bytes of a WAV file before its first optional chunk.
const HEADER: usize = 36;
/// The largest sample value, of at most 127.
const LOUDEST: f64 = 60.0;
/// The number of samples of a spectrum, which is a sixteenth of a second.
const SPECTRUM: usize = RATE as usize / 16;
/// The number of spectra that are averaged for a column.
const SPECTRA: usize = 2;
/// The highest frequency that is drawn, in Hz.
const HIGHEST_HZ: f64 = 2000.0;

/// The names of the files that an experiment's sounds produce.
pub(super) fn names(node: &Node) -> Vec<ExtraName> {
    if node.sounds.is_empty() {
        return Vec::new();
    }
    let sounds = node.sounds.iter().map(|sound| ExtraName {
        ending: format!("{}.wav", sound.id),
        mark: MARK,
    });
    let spectra = ExtraName {
        ending: "spectra.svg".to_owned(),
        mark: PICTURE_MARK,
    };
    sounds.chain(std::iter::once(spectra)).collect()
}

/// Checks that each sound names a variant that exists, and that the experiment has a tone.
pub(super) fn check(node: &Node) -> Result<(), ExperimentError> {
    let is_there = |id: &str| node.tone.is_some() && node.variant.iter().any(|of| of.id == id);
    match node.sounds.iter().find(|sound| !is_there(&sound.variant)) {
        None => Ok(()),
        Some(sound) => Err(ExperimentError::Evaluation(format!(
            "the sound `{}`: no variant `{}` plays a tone; `tone` says that all variants do, and at which frequency",
            sound.id, sound.variant
        ))),
    }
}

/// The contents of the files of [`names`]. `tones` gives the tones that a variant played, one per
/// point.
pub(super) fn extras<'a>(
    node: &Node,
    tones: impl Fn(&str) -> Vec<&'a Tone>,
) -> Result<Vec<Vec<u8>>, ExperimentError> {
    if node.sounds.is_empty() {
        return Ok(Vec::new());
    }
    let mut contents = Vec::new();
    let mut panels = Vec::new();
    for sound in &node.sounds {
        let second = |tone: &&Tone| tone.samples().into_iter().take(RATE as usize);
        let samples: Vec<f64> = tones(&sound.variant).iter().flat_map(second).collect();
        let samples = heard(&samples);
        let wav = wav(&samples).map_err(|error| ExperimentError::Evaluation(error.to_string()))?;
        contents.push(wav);
        panels.push(SpectralPanel {
            title: sound.title.clone(),
            columns: samples.chunks(SPECTRA * SPECTRUM).map(column).collect(),
        });
    }
    let spectrogram = Spectrogram {
        title: node
            .tone
            .as_ref()
            .map_or_else(String::new, |tone| tone.title.clone()),
        x: node.x.title.clone(),
        points: node.x.values.clone(),
        highest_hz: HIGHEST_HZ,
        panels,
    };
    contents.push(spectrogram.to_svg().into_bytes());
    Ok(contents)
}

/// The mean power of each drawn frequency, relative to the power of a full-scale wave.
fn column(samples: &[f64]) -> Vec<f64> {
    let mut spectra = samples.chunks(SPECTRUM).map(spectrum);
    let mut mean = spectra.next().unwrap_or_default();
    for spectrum in spectra {
        for (sum, power) in mean.iter_mut().zip(spectrum) {
            *sum += power;
        }
    }
    mean.iter().map(|sum| sum / SPECTRA as f64).collect()
}

fn spectrum(samples: &[f64]) -> Vec<f64> {
    let count = samples.len() as f64;
    let window = |(at, sample): (usize, &f64)| {
        let turn = 2.0 * std::f64::consts::PI * (at as f64 + 0.5) / count;
        sample * (1.0 - turn.cos())
    };
    let powers = powers(samples.iter().enumerate().map(window));
    let drawn = HIGHEST_HZ / f64::from(RATE) * count;
    let beside = |power: &f64| power / (count * count / 4.0);
    powers.iter().take(drawn as usize).map(beside).collect()
}

/// Encodes the samples as a WAV file with 8 bits per sample.
fn wav(samples: &[f64]) -> Result<Vec<u8>, hound::Error> {
    let mut file = Cursor::new(Vec::new());
    let spec = WavSpec {
        channels: 1,
        sample_rate: RATE,
        bits_per_sample: 8,
        sample_format: SampleFormat::Int,
    };
    let mut writer = WavWriter::new(&mut file, spec)?;
    for sample in samples {
        #[expect(clippy::cast_possible_truncation, reason = "it is within a byte")]
        let sample = (LOUDEST * sample).round().clamp(-127.0, 127.0) as i8;
        writer.write_sample(sample)?;
    }
    writer.finalize()?;
    let mut bytes = file.into_inner();
    // hound writes no optional chunks, so the mark is inserted as a chunk before the samples.
    let mut part = b"LIST".to_vec();
    let length = u32::try_from(4 + MARK.len()).unwrap_or(0);
    part.extend(length.to_le_bytes());
    part.extend(b"INFO");
    part.extend(MARK.bytes());
    let whole = u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]) + length + 8;
    bytes.splice(HEADER..HEADER, part);
    bytes[4..8].copy_from_slice(&whole.to_le_bytes());
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sound_is_read_as_it_was_made() {
        let bytes = wav(&[0.0, 1.0, -1.0, 9.0]).unwrap();
        let mut reader = hound::WavReader::new(Cursor::new(&bytes)).unwrap();
        let samples: Result<Vec<i8>, _> = reader.samples().collect();
        assert_eq!(samples.unwrap(), [0, 60, -60, 127]);
        assert_eq!(reader.spec().sample_rate, RATE);
        assert!(String::from_utf8_lossy(&bytes[..256.min(bytes.len())]).contains(MARK));
        let size = u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
        assert_eq!(size as usize, bytes.len() - 8);
    }

    #[test]
    fn a_sound_is_of_a_variant_that_plays() {
        let node = |of_all: &str| {
            let text = format!(
                r#"windows = 1
                seeds = [1]
                x = {{ title = "x", values = [1] }}
                sound = [{{ id = "with", variant = "one", title = "" }}]
                {of_all}
                series = []
                variant = [{{ id = "one", packets = "simulated", pattern = "1kHz", label = "", colour = "black" }}]"#
            );
            toml::from_str::<Node>(&text).unwrap()
        };
        let with = node("tone = { hz = 250 }");
        assert!(check(&with).is_ok());
        let endings: Vec<String> = names(&with).into_iter().map(|name| name.ending).collect();
        assert_eq!(endings, ["with.wav", "spectra.svg"]);
        let error = check(&node("")).unwrap_err().to_string();
        assert!(
            error.contains("the sound `with`: no variant `one`"),
            "{error}"
        );
    }

    #[test]
    fn a_column_has_the_line_of_its_tone() {
        let wave = |at: usize| (2.0 * std::f64::consts::PI * 0.1 * at as f64).sin();
        let samples: Vec<f64> = (0..SPECTRA * SPECTRUM).map(wave).collect();
        let column = column(&samples);
        // The tone of 800 Hz is in the row 800 Hz / 16 Hz.
        let strongest = (0..column.len()).max_by(|a, b| column[*a].total_cmp(&column[*b]));
        assert_eq!((column.len(), strongest), (125, Some(50)));
        assert!((column[50] - 1.0).abs() < 1e-6, "{}", column[50]);
    }
}
