// SPDX-License-Identifier: GPL-3.0-or-later
//! Generates the packets of a flood in the format that boards/linux/packets.c reads.
use weir_arrivals::Pattern;
use weir_model::Duration;

use super::spec::{Ip, Linux};
use crate::experiment::setup::Quantity;

/// The frequency of the guest's clock, in Hz: a cycle is a nanosecond.
pub(super) const CLOCK_HZ: u64 = 1_000_000_000;
/// The number of flows that are configured in the guest's network.
const FLOWS: u16 = 16;
/// The largest number of packets of a flood.
const PACKETS: usize = 10_000_000;

/// Generates the flood of a point with a seed. If `searched` is given, that pattern replaces the
/// pattern of the feed that depends on x.
pub(super) fn flood(
    spec: &Linux,
    ip: Ip,
    (x, searched): (f64, Option<&str>),
    seed: u64,
) -> Result<Vec<u8>, String> {
    let cycles =
        |time: Quantity<Duration>| time.0.cycles(CLOCK_HZ).map_err(|error| error.to_string());
    let end = cycles(spec.feed_for)?;
    let mut packets: Vec<(u64, u16, u16)> = Vec::new();
    for feed in &spec.feed {
        if feed.flow >= FLOWS {
            return Err(format!(
                "there is no flow {}: they are 0 to {}",
                feed.flow,
                FLOWS - 1
            ));
        }
        let searched = searched.filter(|_| feed.pattern.depends_on_x());
        let pattern = match searched {
            Some(searched) => {
                let pattern = Pattern::parse(searched, CLOCK_HZ);
                Some(pattern.map_err(|error| error.to_string())?)
            }
            None => feed.pattern.pattern(x, CLOCK_HZ)?,
        };
        let Some(pattern) = pattern else {
            continue;
        };
        // Give each flow a seed of its own, so that packets of two flows with the same pattern do
        // not coincide.
        let own = seed.wrapping_add(u64::from(feed.flow) << 32);
        let arrivals = pattern
            .start(CLOCK_HZ, own)
            .map_err(|error| error.to_string())?;
        let from = feed.from.map_or(Ok(0), cycles)?;
        let due = arrivals
            .map(|arrival| arrival.at.saturating_add(from))
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
        .flat_map(|&(at, flow, bytes)| [at, flow.into(), ip.version().into(), bytes.into()]);
    let count = packets.len() as u64;
    Ok(std::iter::once(count)
        .chain(words)
        .flat_map(u64::to_le_bytes)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_searched_pattern_replaces_that_which_depends_on_x() {
        let spec: Linux = toml::from_str(
            r#"
            kernel = "6.1"
            seeds = [1]
            feed = [
                { flow = 0, bytes = 64, pattern = "{x}Hz" },
                { flow = 1, bytes = 64, pattern = "1kHz" },
            ]
            feed-for = "1ms"
            process = []
            x = { title = "x", values = [0] }
            series = []
            variant = []
        "#,
        )
        .unwrap();
        let of = |searched| {
            let flood = flood(&spec, Ip::default(), (0.0, searched), 1)?;
            let words = flood.chunks_exact(8).skip(1);
            let words: Vec<u64> = words
                .map(|word| u64::from_le_bytes(word.try_into().unwrap()))
                .collect();
            let packets = words.chunks_exact(4);
            Ok(packets.map(|packet| (packet[0], packet[1])).collect())
        };
        let searched: Result<Vec<(u64, u64)>, String> = of(Some("4kHz:phase=100us"));
        let expected = [
            (0, 1),
            (100_000, 0),
            (350_000, 0),
            (600_000, 0),
            (850_000, 0),
        ];
        assert_eq!(searched.unwrap(), expected);
        assert_eq!(of(None).unwrap(), [(0, 1)]);
        assert!(of(Some("4kHz:phase")).is_err());
    }

    #[test]
    fn packets_come_from_the_begin_of_their_pattern_to_the_end_of_all() {
        let spec: Linux = toml::from_str(
            r#"
            kernel = "6.1"
            seeds = [1]
            feed = [{ flow = 2, bytes = 64, pattern = "1kHz", from = "5ms" }]
            feed-for = "8ms"
            process = []
            x = { title = "x", values = [1] }
            series = []
            variant = []
        "#,
        )
        .unwrap();
        let words: Vec<u64> = flood(&spec, Ip::try_from(6).unwrap(), (1.0, None), 1)
            .unwrap()
            .chunks_exact(8)
            .map(|word| u64::from_le_bytes(word.try_into().unwrap()))
            .collect();
        assert_eq!(words[0], 3);
        let packets: Vec<&[u64]> = words[1..].chunks_exact(4).collect();
        assert_eq!(
            packets,
            [
                [5_000_000, 2, 6, 64],
                [6_000_000, 2, 6, 64],
                [7_000_000, 2, 6, 64]
            ]
        );
    }
}
