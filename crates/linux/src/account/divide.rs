// SPDX-License-Identifier: MIT OR Apache-2.0
//! The division of interrupt time over the packets that caused it. All times are whole ns, and the
//! parts add up exactly.
use std::collections::BTreeMap;

/// Time that was spent at one place between two readings of the counters. A place is a CPU and a
/// host, which is the process or kernel thread in whose time the work ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pool<R> {
    /// Process number of the host. The division ignores it.
    pub host: u32,
    /// Number of the CPU.
    pub cpu: u32,
    /// Time in ns that was spent because of packets.
    pub time: u64,
    /// Time in ns that was spent for timers and for other devices.
    pub apart: u64,
    /// Packets that were taken from devices at this place.
    pub polled: u64,
    /// Packets that sockets received at this place, by receiver.
    pub delivered: BTreeMap<R, u64>,
}

/// Shares of a pool's time, in ns. They add up to the pool's `time` plus `apart`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shares<R> {
    /// Time in ns by receiver.
    pub received: BTreeMap<R, u64>,
    /// Time in ns for packets that no socket received.
    pub orphans: u64,
    /// Time in ns that belongs to no known packet.
    pub unattributed: u64,
    /// Number of packets that no socket received.
    pub orphan_packets: u64,
}

/// Splits `total` in proportion to `weights`. The parts add up to `total`, and each is less than 1
/// away from its exact share. If all weights are 0, all parts are 0.
pub(super) fn apportion(total: u64, weights: impl IntoIterator<Item = u64> + Clone) -> Vec<u64> {
    let sum: u128 = weights.clone().into_iter().map(u128::from).sum();
    // The shift makes the product below fit into 128 bits, however many weights there are.
    let shift = (u128::BITS - sum.leading_zeros()).saturating_sub(u64::BITS);
    let (mut until, mut given) = (0_u128, 0_u64);
    let reach = |until: u128| {
        let product = u128::from(total) * (until >> shift);
        // The quotient is at most `total`, since `until` is at most `sum`.
        product.checked_div(sum >> shift).unwrap_or(0) as u64
    };
    weights
        .into_iter()
        .map(|weight| {
            until += u128::from(weight);
            let before = std::mem::replace(&mut given, reach(until));
            given - before
        })
        .collect()
}

/// Splits `total` over receivers in proportion to their weights.
fn over<R: Copy + Ord>(total: u64, weights: &BTreeMap<R, u64>) -> BTreeMap<R, u64> {
    let parts = apportion(total, weights.values().copied());
    weights.keys().copied().zip(parts).collect()
}

fn add<R: Copy + Ord>(to: &mut BTreeMap<R, u64>, more: impl IntoIterator<Item = (R, u64)>) {
    for (receiver, value) in more {
        let sum = to.entry(receiver).or_default();
        *sum = sum.saturating_add(value);
    }
}

/// Packets by receiver. `nobody` is the number of packets that no socket received.
#[derive(Debug, Clone)]
struct Weights<R> {
    delivered: BTreeMap<R, u64>,
    nobody: u64,
}

impl<R: Copy + Ord> Weights<R> {
    fn sum<'a>(all: impl IntoIterator<Item = &'a Self>) -> Self
    where
        R: 'a,
    {
        let mut sum = Self {
            delivered: BTreeMap::new(),
            nobody: 0,
        };
        for one in all {
            add(
                &mut sum.delivered,
                one.delivered.iter().map(|(to, n)| (*to, *n)),
            );
            sum.nobody = sum.nobody.saturating_add(one.nobody);
        }
        sum
    }

    fn is_empty(&self) -> bool {
        self.nobody == 0 && self.delivered.values().all(|count| *count == 0)
    }
}

/// Divides the time of each pool over the packets that were handled there. The time of a bottom
/// half divided by its packets is the cost of a packet (zhang2006 §3.1).
///
/// A packet may be taken from a device at one place and reach its socket at another: because of
/// RPS, of the threads of mode exact's classes, or of a container's virtual interfaces. So if
/// sockets received more packets at a place than were taken from devices there, other places handed
/// packets on to it. `handed` has the exact numbers where they are known. Only the packets that
/// remain were for nobody.
///
/// Some places have time but no packets, such as a process during which an interrupt only woke a
/// thread. Their time is divided by the packets of their CPU or, if there are none either, by all
/// packets.
pub(super) fn divide<R: Copy + Ord>(
    pools: &[Pool<R>],
    handed: Option<&BTreeMap<R, u64>>,
) -> Vec<Shares<R>> {
    let count = |pool: &Pool<R>| {
        let counts = pool.delivered.values();
        counts.fold(0_u64, |sum, count| sum.saturating_add(*count))
    };
    let missing: Vec<u64> = pools
        .iter()
        .map(|pool| pool.polled.saturating_sub(count(pool)))
        .collect();
    let mut onward = BTreeMap::new();
    for pool in pools {
        let surplus = count(pool).saturating_sub(pool.polled);
        add(&mut onward, over(surplus, &pool.delivered));
    }
    if let Some(handed) = handed {
        onward.clone_from(handed);
    }
    let all_missing = missing.iter().fold(0_u64, |sum, n| sum.saturating_add(*n));
    let all_onward = onward.values().fold(0_u64, |sum, n| sum.saturating_add(*n));
    let nobody = apportion(
        all_missing.saturating_sub(all_onward),
        missing.iter().copied(),
    );
    let weights: Vec<Weights<R>> = pools
        .iter()
        .zip(missing.iter().zip(nobody))
        .map(|(pool, (missing, nobody))| {
            let mut delivered = pool.delivered.clone();
            add(
                &mut delivered,
                over(missing.saturating_sub(nobody), &onward),
            );
            Weights { delivered, nobody }
        })
        .collect();
    let everywhere = Weights::sum(&weights);
    let mut on_cpus: BTreeMap<u32, Vec<&Weights<R>>> = BTreeMap::new();
    for (pool, weights) in pools.iter().zip(&weights) {
        on_cpus.entry(pool.cpu).or_default().push(weights);
    }
    let on_cpus: BTreeMap<u32, Weights<R>> = on_cpus
        .into_iter()
        .map(|(cpu, all)| (cpu, Weights::sum(all)))
        .collect();
    pools
        .iter()
        .zip(&weights)
        .map(|(pool, own)| {
            let on_cpu = on_cpus.get(&pool.cpu);
            let used = [Some(own), on_cpu]
                .into_iter()
                .flatten()
                .find(|weights| !weights.is_empty())
                .unwrap_or(&everywhere);
            share(pool, used, own.nobody)
        })
        .collect()
}

fn share<R: Copy + Ord>(pool: &Pool<R>, used: &Weights<R>, orphan_packets: u64) -> Shares<R> {
    let counts = used.delivered.values().copied();
    let mut parts = apportion(pool.time, counts.chain([used.nobody]));
    let orphans = parts.pop().unwrap_or(0);
    let received: BTreeMap<R, u64> = used.delivered.keys().copied().zip(parts).collect();
    let given = received.values().sum::<u64>() + orphans;
    Shares {
        orphans,
        unattributed: pool.time - given + pool.apart,
        received,
        orphan_packets,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pool(cpu: u32, time: u64, polled: u64, delivered: &[(u8, u64)]) -> Pool<u8> {
        Pool {
            host: 0,
            cpu,
            time,
            apart: 0,
            polled,
            delivered: delivered.iter().copied().collect(),
        }
    }

    fn received(shares: &Shares<u8>) -> Vec<(u8, u64)> {
        let given = shares.received.iter().filter(|(_, time)| **time > 0);
        given.map(|(to, time)| (*to, *time)).collect()
    }

    #[test]
    fn time_goes_by_packets_and_what_no_socket_got_is_an_orphan() {
        let shares = divide(&[pool(0, 1000, 10, &[(1, 3), (2, 5)])], None);
        assert_eq!(received(&shares[0]), [(1, 300), (2, 500)]);
        assert_eq!((shares[0].orphans, shares[0].orphan_packets), (200, 2));
        assert_eq!(shares[0].unattributed, 0);
    }

    #[test]
    fn what_goes_on_to_another_cpu_is_no_orphan() {
        // With RPS, CPU 0 takes the packets and CPU 1 delivers them.
        let shares = divide(&[pool(0, 100, 10, &[]), pool(1, 900, 0, &[(1, 8)])], None);
        assert_eq!(received(&shares[0]), [(1, 80)]);
        assert_eq!((shares[0].orphans, shares[0].orphan_packets), (20, 2));
        assert_eq!(received(&shares[1]), [(1, 900)]);
    }

    #[test]
    fn what_is_known_to_go_on_is_charged_even_if_it_is_dropped_later() {
        let handed = BTreeMap::from([(1, 10_000)]);
        let pools = [pool(0, 100, 10_000, &[]), pool(0, 50, 0, &[(1, 20)])];
        let shares = divide(&pools, Some(&handed));
        assert_eq!(received(&shares[0]), [(1, 100)]);
        assert_eq!(shares[0].orphans, 0);
    }

    #[test]
    fn a_place_without_packets_has_those_of_its_cpu() {
        let pools = [
            pool(0, 40, 0, &[]),
            pool(0, 100, 4, &[(1, 4)]),
            pool(1, 100, 4, &[(2, 4)]),
            pool(2, 80, 0, &[]),
        ];
        let shares = divide(&pools, None);
        assert_eq!(received(&shares[0]), [(1, 40)]);
        assert_eq!(received(&shares[3]), [(1, 40), (2, 40)]);
    }

    #[test]
    fn without_any_packet_nothing_is_attributed() {
        let none = Pool {
            apart: 7,
            ..pool(0, 40, 0, &[])
        };
        let shares = divide(&[none], None);
        assert_eq!((shares[0].unattributed, shares[0].orphans), (47, 0));
        assert_eq!(received(&shares[0]), []);
    }

    /// Generates counts over the whole range of a counter.
    fn counts() -> impl Strategy<Value = u64> {
        prop_oneof![
            Just(0),
            0..1_000_u64,
            any::<u64>(),
            Just(u64::MAX),
            Just(u64::MAX / 2)
        ]
    }

    fn pools() -> impl Strategy<Value = Vec<Pool<u8>>> {
        let delivered = proptest::collection::btree_map(0..6_u8, counts(), 0..6);
        let one = (
            0..3_u32,
            0..=u64::MAX / 64,
            0..=u64::MAX / 64,
            counts(),
            delivered,
        );
        let one = one.prop_map(|(cpu, time, apart, polled, delivered)| Pool {
            host: 0,
            cpu,
            time,
            apart,
            polled,
            delivered,
        });
        proptest::collection::vec(one, 0..6)
    }

    proptest! {
        #[test]
        fn parts_add_up_and_are_fair(total: u64, weights in proptest::collection::vec(0..=u64::from(u32::MAX), 0..8)) {
            let parts = apportion(total, weights.iter().copied());
            let sum: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
            prop_assert_eq!(parts.iter().sum::<u64>(), if sum == 0 { 0 } else { total });
            for (part, weight) in parts.iter().zip(&weights) {
                let scaled = u128::from(*part) * sum;
                let exact = u128::from(total) * u128::from(*weight);
                prop_assert!(scaled.abs_diff(exact) < sum.max(1), "{part} of {total} by {weight}");
            }
        }

        #[test]
        fn every_ns_is_somewhere(pools in pools(), handed in proptest::option::of(proptest::collection::btree_map(0..6_u8, counts(), 0..4))) {
            let shares = divide(&pools, handed.as_ref());
            prop_assert_eq!(shares.len(), pools.len());
            for (pool, shares) in pools.iter().zip(&shares) {
                let all = shares.received.values().sum::<u64>() + shares.orphans + shares.unattributed;
                prop_assert_eq!(all, pool.time + pool.apart);
                prop_assert!(shares.unattributed >= pool.apart);
            }
        }

        #[test]
        fn a_receiver_without_packets_gets_nothing(pools in pools()) {
            for shares in divide(&pools, None) {
                for (receiver, time) in &shares.received {
                    let has_any = pools.iter().any(|pool| pool.delivered.get(receiver).is_some_and(|n| *n > 0));
                    prop_assert!(has_any || *time == 0);
                }
            }
        }
    }
}
