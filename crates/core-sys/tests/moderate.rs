// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests the moderated queues against their contracts.

use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};
use weir_core_sys::moderate::{Admission, Moderator, QueueConfig, QueueError};
use weir_core_sys::{W16, W32, W64, Width};

const WAITS: Admission = Admission {
    accepted: true,
    interrupt: false,
};
const INTERRUPTS: Admission = Admission {
    accepted: true,
    interrupt: true,
};
const DROPPED: Admission = Admission {
    accepted: false,
    interrupt: false,
};

/// Follows one queue with all four parameters (behnke2022 §2.2), at every width, across the wrap of
/// 16 bits.
fn a_queue_with_all_parameters<W: Width>() {
    let config = QueueConfig {
        absolute: Some(100),
        packet: Some(30),
        count: Some(4),
        size: 5,
    };
    let mut nic: Moderator<W> = Moderator::new(&[config]).expect("valid");
    let start = 0xffe0;
    assert_eq!(nic.next(start), None);
    assert_eq!(nic.arrive(0, start), WAITS);
    assert_eq!(nic.next(start), Some(start + 30));
    // The packet timer restarts with each packet, but never runs longer than the absolute timer.
    for (after, due) in [(29, 59), (58, 88), (80, 100)] {
        if after == 80 {
            assert_eq!(nic.remove(0, 1), 1);
        }
        assert_eq!(nic.arrive(0, start + after), WAITS);
        assert_eq!(nic.next_of(0, start + after), Some(start + due));
    }
    assert_eq!(nic.due(start + 99).count(), 0);
    assert_eq!(nic.due(start + 100).collect::<Vec<_>>(), [0]);
    assert!(nic.is_raised(0));
    // Packets that come while the interrupt is pending are added to the queue, which holds five.
    assert_eq!(nic.arrive(0, start + 101), WAITS);
    assert_eq!(nic.arrive(0, start + 101), WAITS);
    assert_eq!(nic.arrive(0, start + 101), DROPPED);
    // First four packets are left, which reaches the count. Then one packet is left, which begins a
    // window.
    assert!(nic.take(0, 1, start + 110));
    assert!(!nic.take(0, 3, start + 120));
    assert_eq!(nic.waiting(0), 1);
    assert_eq!(nic.next(start + 120), Some(start + 150));
    // A queue that was emptied by polling does not interrupt.
    assert_eq!(nic.remove(0, 9), 1);
    assert_eq!(nic.next(start + 121), None);
    let record = nic.record(0);
    assert_eq!(
        (record.accepted, record.dropped, record.interrupts),
        (6, 1, 2)
    );
}

#[test]
fn a_queue_with_all_parameters_at_every_width() {
    a_queue_with_all_parameters::<W16>();
    a_queue_with_all_parameters::<W32>();
    a_queue_with_all_parameters::<W64>();
}

/// MODERATE-OFF-1: without moderation, each packet raises an interrupt unless one is already
/// pending.
#[test]
fn a_queue_without_moderation_interrupts_at_each_packet() {
    let config = QueueConfig {
        absolute: None,
        packet: None,
        count: None,
        size: 2,
    };
    let mut nic: Moderator<W16> = Moderator::new(&[config]).expect("valid");
    for now in 0..5 {
        assert_eq!(nic.arrive(0, now), INTERRUPTS);
        assert_eq!(nic.arrive(0, now), WAITS);
        assert_eq!(nic.arrive(0, now), DROPPED);
        assert!(nic.take(0, 1, now), "one is left, and interrupts again");
        assert!(!nic.take(0, 1, now));
    }
}

/// MODERATE-SAVE-1: for a Poisson stream an absolute timer saves 1 - 1/(1 + λτ) of the interrupts,
/// if each interrupt takes all waiting packets.
#[test]
fn an_absolute_timer_saves_what_theory_says() {
    let mut rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    // A tick is a microsecond. The delays are those of behnke2022 §3, and the rates are 50 to
    // 15,000 packets a second.
    for absolute in [800, 1_600, 2_400, 3_200] {
        for rate in [50.0, 300.0, 1_000.0, 5_000.0, 15_000.0] {
            let config = QueueConfig {
                absolute: Some(absolute),
                packet: None,
                count: None,
                size: 1_000,
            };
            let mut nic: Moderator<W32> = Moderator::new(&[config]).expect("valid");
            let (mut instant, mut now) = (0.0, 0);
            for _ in 0..100_000 {
                instant += -(1.0 - rng.random::<f64>()).ln() * 1e6 / rate;
                while let Some(at) = nic.next(now).filter(|&at| at <= instant as u64) {
                    assert_eq!(nic.due(at).collect::<Vec<_>>(), [0]);
                    assert!(!nic.take(0, u32::MAX, at));
                }
                now = instant as u64;
                assert_eq!(nic.arrive(0, now), WAITS);
            }
            let record = nic.record(0);
            let saved = 1.0 - f64::from(record.interrupts) / f64::from(record.accepted);
            let theory = 1.0 - 1.0 / (1.0 + rate * absolute as f64 / 1e6);
            assert!(
                (saved - theory).abs() < 0.01,
                "{saved} saved, {theory} in theory, at {rate} for {absolute} µs"
            );
        }
    }
}

/// Lists parameters that [`QueueConfig::check`] rejects, for a width at which it matters.
#[test]
fn parameters_that_could_not_be_kept_are_refused() {
    let good = QueueConfig {
        absolute: Some(100),
        packet: Some(100),
        count: Some(8),
        size: 8,
    };
    assert_eq!(good.check::<W16>(), Ok(()));
    let refused = |change: fn(&mut QueueConfig)| {
        let mut config = good;
        change(&mut config);
        let error = config.check::<W16>().expect_err("refused");
        let mut nic: Moderator<W16> = Moderator::new(&[good]).expect("valid");
        assert_eq!(nic.reconfigure(0, &config, 5), Err(error));
        assert_eq!(nic.arrive(0, 5), WAITS);
        assert_eq!(nic.next(5), Some(105), "MODERATE-CHANGE-2");
        error
    };
    assert_eq!(refused(|c| c.size = 0), QueueError::Size);
    assert_eq!(refused(|c| c.size = 65_536), QueueError::Size);
    assert_eq!(refused(|c| c.absolute = None), QueueError::Absolute);
    assert_eq!(refused(|c| c.absolute = Some(0)), QueueError::Absolute);
    assert_eq!(refused(|c| c.absolute = Some(0x8000)), QueueError::Absolute);
    assert_eq!(
        refused(|c| c.absolute = Some(0x1_0064)),
        QueueError::Absolute
    );
    assert_eq!(refused(|c| c.packet = Some(0)), QueueError::Packet);
    assert_eq!(refused(|c| c.packet = Some(101)), QueueError::Packet);
    assert_eq!(refused(|c| c.packet = Some(0x1_0001)), QueueError::Packet);
    assert_eq!(refused(|c| c.count = Some(0)), QueueError::Count);
    assert_eq!(refused(|c| c.count = Some(9)), QueueError::Count);
    assert_eq!(refused(|c| c.count = Some(65_537)), QueueError::Count);
    let wide = QueueConfig {
        absolute: Some(0x8000),
        ..good
    };
    assert_eq!(wide.check::<W32>(), Ok(()));
    let many = vec![good; 65_536];
    assert_eq!(Moderator::<W16>::new(&many).err(), Some(QueueError::Queues));
}
