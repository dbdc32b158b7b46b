// SPDX-License-Identifier: MIT OR Apache-2.0
//! The moderated queues against their contracts.

use weir_core_sys::moderate::{Arrived, Moderator, QueueConfig};
use weir_core_sys::{W16, W32, W64, Width};

const WAITS: Arrived = Arrived {
    accepted: true,
    interrupt: false,
};
const INTERRUPTS: Arrived = Arrived {
    accepted: true,
    interrupt: true,
};
const DROPPED: Arrived = Arrived {
    accepted: false,
    interrupt: false,
};

/// A day of one queue with all four parameters (behnke2022 §2.2), at every width, across the wrap of 16 bits.
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
    // The packet timer restarts, but not beyond the absolute one.
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
    // What comes while the interrupt is pending joins it; the queue holds five.
    assert_eq!(nic.arrive(0, start + 101), WAITS);
    assert_eq!(nic.arrive(0, start + 101), WAITS);
    assert_eq!(nic.arrive(0, start + 101), DROPPED);
    // Four are left, which is the count; then one, which begins a window.
    assert!(nic.take(0, 1, start + 110));
    assert!(!nic.take(0, 3, start + 120));
    assert_eq!(nic.waiting(0), 1);
    assert_eq!(nic.next(start + 120), Some(start + 150));
    // Emptied by polling, it does not interrupt.
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

/// MODERATE-OFF-1: without moderation every packet that finds no interrupt pending interrupts.
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
