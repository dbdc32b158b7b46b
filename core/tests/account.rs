// SPDX-License-Identifier: MIT OR Apache-2.0
//! The account: zhang2006's example, and what both modes promise.

use weir_core_sys::account::{Account, Config, Mode};

const TICK: u64 = 1_000;

fn account(mode: Mode, processes: usize, devices: usize) -> Account {
    let config = Config {
        mode,
        cycles_per_tick: TICK,
        gamma: Config::GAMMA,
    };
    Account::new(processes, devices, &config).expect("valid")
}

/// ACCOUNT-COUNTED-1: zhang2006 Figure 3, by its prose. P1 runs in the ticks that end at 1 and 7; what comes for it in between waits for it.
#[test]
fn figure_3_of_the_paper() {
    let mut account = account(Mode::Counted, 4, 1);
    let mut tick = |running: usize, receivers: &[usize]| {
        for &receiver in receivers {
            account.handled(0, Some(receiver), 100);
        }
        let adjusted = account.tick(Some(running)).ticks;
        assert_eq!(adjusted, 0, "N is 10, and no balance reaches it");
        account.unaccounted(0, 1)
    };
    // "3 interrupts have been processed and 2 are for process P1, so the cost of 1 interrupt should be deducted"
    assert_eq!(tick(1, &[1, 1, 2]), -1);
    // "4 interrupts have occurred for P1 since its last execution and accounting"
    assert_eq!(tick(2, &[1, 3]), 0);
    assert_eq!(tick(2, &[1]), 1);
    assert_eq!(tick(3, &[2]), 1);
    assert_eq!(tick(3, &[1, 2]), 2);
    assert_eq!(tick(2, &[1]), 3);
    // "2 interrupts are charged to P1 in the last clock tick, although neither were actually for P1": x1(7) = -2 + 4 - 1 = 1
    assert_eq!(tick(1, &[2, 3]), 1);
}
