// SPDX-License-Identifier: MIT OR Apache-2.0
//! The times at which requests and packets arrive. The simulator and the emulated boards share this
//! language for floods.
//!
//! A pattern has a text form, which the command line takes and [`Pattern`]'s `Display` writes.
//! Rates and times are written as in [`weir_model::quantity`].
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
//! A random pattern may end in `:seed=N` to set its own seed. Otherwise it uses the seed given to
//! [`Pattern::start`]. The same seed gives the same arrivals on every machine: the generator is
//! ChaCha with 8 rounds, and no function of the C library is used.
//!
//! A recording in CSV has a header. The first column is `time_us` or `cycle`, counted from the
//! start of the run. The columns `port` (the destination port) and `flow` (a name) are optional.
//! The times of a packet capture count from its first packet, and its destination ports are read,
//! too.
mod arrivals;
mod pattern;
mod steps;
mod text;
mod trace;

pub use arrivals::{Arrival, Arrivals, LATEST, Packet, Protocol, What};
pub use pattern::Pattern;
pub use text::PatternError;
pub use trace::{Recording, TraceError};
