// SPDX-License-Identifier: MIT OR Apache-2.0
//! When requests and packets arrive: the floods of the simulator and of the emulated board, in one
//! language.
//!
//! The text form, as the command line takes it and [`Pattern`]'s `Display` writes it. Rates and
//! times are those of [`weir_model::quantity`].
//!
//! | text | arrivals |
//! |---|---|
//! | `20kHz` | every 50 us; `:phase=10us` delays the first |
//! | `poisson:20kHz` | memoryless, 20 000 a second on average |
//! | `pairs:2ms:gap=10us` | two, 10 us apart, every 2 ms |
//! | `bursts:16:gap=20us:period=25ms` | 16, 20 us apart, every 25 ms |
//! | `uniform:10us..90us` | one after the other by anything from 10 us to 90 us, all equally likely |
//! | `level:low=100us:high=1ms` | none, but the level of a line: low for 100 us, then high for 1 ms |
//! | `mmpp:20kHz:burst=5000:gap=100ms` | bursts of 5000 on average, memoryless at 20 kHz within them, with pauses of 100 ms on average; `:idle=10Hz` in the pauses |
//! | `trace:file.csv`, `trace:file.pcap` | those of a recording, csv, pcap or pcapng; `:speed=2` twice as fast, `:repeat` for ever |
//!
//! Random patterns end in `:seed=N` if they want a seed of their own; else they take the seed of
//! [`Pattern::start`]. The same seed gives the same arrivals on every machine: the generator is
//! ChaCha with 8 rounds, and nothing comes from the C library.
//!
//! A recording in CSV has a header: `time_us` or `cycle`, both counted from the start of the run,
//! then if wanted `port` (of the destination) and `flow` (a name). The time of a capture counts
//! from its first packet, and its destination ports come along.
mod arrivals;
mod pattern;
mod steps;
mod text;
mod trace;

pub use arrivals::{Arrival, Arrivals, LATEST, Packet, Protocol, What};
pub use pattern::Pattern;
pub use text::PatternError;
pub use trace::{Recording, TraceError};
