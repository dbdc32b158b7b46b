// SPDX-License-Identifier: GPL-3.0-or-later
//! What arrives, as boards/linux/packets.c reads it.
use weir_arrivals::Pattern;

use super::spec::LinuxSpec;

/// A nanosecond is a cycle.
const CLOCK_HZ: u64 = 1_000_000_000;
/// Flows that the guest's network knows.
const FLOWS: u16 = 16;
/// Packets of a flood.
const PACKETS: usize = 10_000_000;

/// The flood of a point with a seed.
pub(super) fn flood(spec: &LinuxSpec, x: f64, seed: u64) -> Result<Vec<u8>, String> {
    let end = spec
        .feed_for
        .0
        .cycles(CLOCK_HZ)
        .map_err(|error| error.to_string())?;
    let mut packets: Vec<(u64, u16, u16)> = Vec::new();
    for feed in &spec.feed {
        if feed.flow >= FLOWS {
            return Err(format!(
                "there is no flow {}: they are 0 to {}",
                feed.flow,
                FLOWS - 1
            ));
        }
        if x == 0.0 && feed.pattern.depends_on_x() {
            continue;
        }
        // Two flows of one pattern do not come at the same times.
        let own = seed.wrapping_add(u64::from(feed.flow) << 32);
        let pattern =
            Pattern::parse(&feed.pattern.at(x)?, CLOCK_HZ).map_err(|error| error.to_string())?;
        let arrivals = pattern
            .start(CLOCK_HZ, own)
            .map_err(|error| error.to_string())?;
        let due = arrivals
            .map(|arrival| arrival.at)
            .take_while(|&at| at < end);
        packets.extend(
            due.take(PACKETS + 1 - packets.len())
                .map(|at| (at, feed.flow, feed.bytes)),
        );
        if packets.len() > PACKETS {
            return Err(format!(
                "more than {PACKETS} packets: make the rate lower or the time shorter"
            ));
        }
    }
    packets.sort();
    let words = packets
        .iter()
        .flat_map(|&(at, flow, bytes)| [at, flow.into(), bytes.into()]);
    let count = packets.len() as u64;
    Ok(std::iter::once(count)
        .chain(words)
        .flat_map(u64::to_le_bytes)
        .collect())
}
