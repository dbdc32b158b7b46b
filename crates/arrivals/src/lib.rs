// SPDX-License-Identifier: MIT OR Apache-2.0
//! When requests and packets arrive: the floods of the simulator and of the emulated board, in one language.
//!
//! The text form, as the command line takes it and [`Pattern`]'s `Display` writes it. Rates and times are those of [`weir_model::quantity`].
//!
//! | text | arrivals |
//! |---|---|
//! | `20kHz` | every 50 us; `:phase=10us` delays the first |
//! | `poisson:20kHz` | memoryless, 20 000 a second on average |
//! | `pairs:2ms:gap=10us` | two, 10 us apart, every 2 ms |
//! | `bursts:16:gap=20us:period=25ms` | 16, 20 us apart, every 25 ms |
//! | `uniform:10us..90us` | one after the other by anything from 10 us to 90 us, all equally likely |
//! | `level:low=100us:high=1ms` | none, but the level of a line: low for 100 us, then high for 1 ms |
//! | `trace:file.csv` | those of a recording |
//!
//! What is random ends in `:seed=N` if it wants a seed of its own, and takes the one given to [`Pattern::start`] otherwise. The same seed gives the same
//! arrivals on every machine: the generator is ChaCha with 8 rounds, and nothing comes from the C library.
mod arrivals;
mod pattern;
mod steps;
mod text;
mod trace;

pub use arrivals::{Arrival, Arrivals, LATEST, Packet, Protocol, What};
pub use pattern::Pattern;
pub use text::PatternError;
pub use trace::{TraceError, read_trace};
