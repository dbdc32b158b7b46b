// SPDX-License-Identifier: MIT OR Apache-2.0
//! DEFER-* against a model that sorts.

use weir_core_sys::defer::{Class, Defer, Ties};

fn classes(urgencies: &[u8]) -> Vec<Class> {
    urgencies
        .iter()
        .map(|&urgency| Class {
            capacity: 3,
            urgency,
        })
        .collect()
}

/// zhang2006 lets equals wait, lee2010 runs them; whoever is less urgent waits with both.
#[test]
fn ties_are_an_option() {
    let mut defer = Defer::new(&classes(&[10, 20, 30])).unwrap();
    assert!(defer.push(1));
    assert_eq!(defer.next(Some(21), Ties::Run), None);
    assert_eq!(defer.next(Some(20), Ties::Wait), None);
    assert_eq!(defer.waiting(1), 1);
    assert_eq!(defer.next(Some(20), Ties::Run), Some(1));
    assert!(defer.done(1));
    assert!(defer.push(1));
    assert_eq!(defer.next(Some(19), Ties::Wait), Some(1));
    assert!(defer.done(1));
    assert_eq!(defer.next(None, Ties::Wait), None);
}
