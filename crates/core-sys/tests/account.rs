// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests the account against zhang2006's example and against the contracts of both modes.

use proptest::prelude::*;
use weir_core_sys::account::{Account, AccountError, Config, Mode, ProcessReport};

const TICK: u64 = 1_000;

fn account(mode: Mode, processes: usize, devices: usize) -> Account {
    let config = Config {
        mode,
        cycles_per_tick: TICK,
        gamma: Config::GAMMA,
    };
    Account::new(processes, devices, &config).expect("valid")
}

/// ACCOUNT-COUNTED-1: zhang2006 Figure 3, as its text describes it. P1 runs in the ticks that end
/// at 1 and 7; its packets in between are charged later.
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
    // "3 interrupts have been processed and 2 are for process P1, so the cost of 1 interrupt should
    // be deducted"
    assert_eq!(tick(1, &[1, 1, 2]), -1);
    // "4 interrupts have occurred for P1 since its last execution and accounting"
    assert_eq!(tick(2, &[1, 3]), 0);
    assert_eq!(tick(2, &[1]), 1);
    assert_eq!(tick(3, &[2]), 1);
    assert_eq!(tick(3, &[1, 2]), 2);
    assert_eq!(tick(2, &[1]), 3);
    // "2 interrupts are charged to P1 in the last clock tick, although neither were actually for
    // P1": x1(7) = -2 + 4 - 1 = 1
    assert_eq!(tick(1, &[2, 3]), 1);
}

/// ACCOUNT-LATE-1: interrupt time for a process that does not run is charged as one sum at its next
/// tick, and given back to the process that ran.
#[test]
fn a_process_that_does_not_run_is_charged_at_its_next_tick() {
    for mode in [Mode::Measured, Mode::Counted] {
        let mut account = account(mode, 2, 2);
        // In each tick the interrupts take 0.45 ticks. They come from two devices whose packets
        // have different costs.
        for tick in 1..=100 {
            for (device, cycles) in [(0, 100), (1, 250), (0, 100)] {
                account.handled(device, Some(1), cycles);
            }
            let given_back = -account.tick(Some(0)).ticks;
            assert!((0..=2).contains(&given_back), "{mode:?}: {given_back}");
            if mode == Mode::Measured {
                // In the counted mode a device is not adjusted before its own interrupts add up to
                // a whole tick.
                assert_eq!(account.process(0).adjusted, -(tick * 45 / 100));
            }
            assert_eq!(account.process(1).adjusted, 0);
        }
        assert_eq!(account.process(0).adjusted, -45);
        assert_eq!(account.tick(Some(1)).ticks, 45);
        let report = account.process(1);
        let (charged, taken) = (report.charged(), report.taken());
        assert_eq!((charged, taken, report.own), (45_000, 0, 0));
        let report = account.process(0);
        assert_eq!((report.charged(), report.taken()), (0, 45_000));
        assert_eq!(report.compensated(TICK), -45_000);
        assert_eq!(account.device(1).cycles, 25_000);
    }
}

/// ACCOUNT-ORPHAN-1: the time of orphans is given back to the running process and charged to none.
/// Interrupts on an idle processor are given back to no process.
#[test]
fn orphans_stand_apart() {
    for mode in [Mode::Measured, Mode::Counted] {
        let mut account = account(mode, 2, 1);
        for _ in 0..30 {
            account.handled(0, None, 100);
        }
        assert_eq!(account.tick(Some(0)).ticks, -3);
        account.handled(0, Some(1), 100);
        assert_eq!(account.totals().pending, 100);
        assert_eq!(account.tick(None).ticks, 0);
        let totals = account.totals();
        assert_eq!(
            (totals.orphans, totals.idle, totals.pending),
            (3_000, 100, 0)
        );
        assert_eq!(account.process(1).owed, 100);
        account.exit(1);
        assert_eq!(account.process(1), ProcessReport::default());
        assert_eq!(account.totals().unpaid, 100, "ACCOUNT-EXIT-1");
    }
}

/// ACCOUNT-COUNTED-3: nothing is adjusted until a cost has been measured, and a tick without a
/// measured cost keeps the average.
#[test]
fn the_average_is_of_what_was_measured() {
    let mut account = account(Mode::Counted, 1, 1);
    account.handled(0, None, 0);
    assert_eq!(account.tick(Some(0)).ticks, 0);
    assert_eq!(account.device(0).per_tick, None);
    assert_eq!(account.process(0).owed, 0, "one packet, which cost nothing");
    account.handled(0, None, 100);
    assert_eq!(account.tick(Some(0)).ticks, 0);
    assert_eq!(
        account.device(0).per_tick,
        Some(10.0),
        "the first is taken as it is"
    );
    assert_eq!(account.tick(Some(0)).ticks, 0);
    assert_eq!(account.device(0).per_tick, Some(10.0));
    assert_eq!(account.process(0).owed, -200, "two at a tenth of a tick");
    account.handled(0, None, 50);
    let _ = account.tick(Some(0));
    let average = account.device(0).per_tick.expect("measured");
    assert!(
        (average - (0.7 * 10.0 + 0.3 * 20.0)).abs() < 1e-3,
        "zhang2006 (1): {average}"
    );
}

/// ACCOUNT-MOVE-1: interrupt time on one processor for a process that runs on another is charged
/// there.
#[test]
fn a_process_is_charged_on_the_processor_that_runs_it() {
    let (mut here, mut there) = (account(Mode::Measured, 1, 1), account(Mode::Measured, 1, 1));
    for _ in 0..7 {
        here.handled(0, Some(0), 500);
        let _ = here.tick(None);
    }
    here.move_to(0, &mut there);
    assert_eq!(there.tick(Some(0)).ticks, 3);
    assert_eq!((here.process(0).owed, there.process(0).owed), (0, 500));
}

#[test]
fn configurations_that_could_not_be_kept_are_refused() {
    let config = Config {
        mode: Mode::Counted,
        cycles_per_tick: 1 << 36,
        gamma: 1,
    };
    let error = |devices, config: &Config| Account::new(1, devices, config).err();
    assert_eq!(error(1, &config), None);
    let tick = |cycles_per_tick| Config {
        cycles_per_tick,
        ..config
    };
    assert_eq!(error(1, &tick((1 << 36) + 1)), Some(AccountError::Tick));
    assert_eq!(error(1, &tick(0)), Some(AccountError::Tick));
    assert_eq!(error(65_536, &config), Some(AccountError::Devices));
    let mut still = Config { gamma: 0, ..config };
    assert_eq!(error(1, &still), Some(AccountError::Gamma));
    still.mode = Mode::Measured;
    assert_eq!(error(1, &still), None, "not used");
}

#[derive(Clone, Debug)]
enum Event {
    Handled(usize, Option<usize>, u64),
    Tick(Option<usize>),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let process = || prop::option::weighted(0.8, 0_usize..4);
    let event = prop_oneof![
        4 => (0_usize..3, process(), 0_u64..400).prop_map(|(device, process, cycles)| Event::Handled(device, process, cycles)),
        1 => (0_usize..3, process(), 0_u64..40_000).prop_map(|(device, process, cycles)| Event::Handled(device, process, cycles)),
        2 => process().prop_map(Event::Tick),
    ];
    prop::collection::vec(event, 1..300)
}

proptest! {
    #![proptest_config(crate::cases(300, 2_000))]

    /// ACCOUNT-CONSERVE-1, ACCOUNT-ERROR-1: no cycle is lost, none is charged twice, and less than
    /// a tick stays in the balance.
    #[test]
    fn the_measured_account_balances(events in events()) {
        let mut account = account(Mode::Measured, 4, 3);
        // For each process: the interrupt time for the process, the interrupt time in its ticks,
        // and the time that belongs to both.
        let mut truth = [[0_u64; 3]; 4];
        let mut this_tick: Vec<(Option<usize>, u64)> = Vec::new();
        let mut all = 0;
        for event in &events {
            match *event {
                Event::Handled(device, process, cycles) => {
                    account.handled(device, process, cycles);
                    this_tick.push((process, cycles));
                    all += cycles;
                    if let Some(process) = process {
                        truth[process][0] += cycles;
                    }
                }
                Event::Tick(running) => {
                    let adjusted = account.tick(running).ticks;
                    for (receiver, cycles) in this_tick.drain(..) {
                        if let Some(running) = running {
                            truth[running][1] += cycles;
                            truth[running][2] += if receiver == Some(running) { cycles } else { 0 };
                        }
                    }
                    if let Some(running) = running {
                        prop_assert!(account.process(running).owed.unsigned_abs() < TICK, "ACCOUNT-TICK-1");
                    } else {
                        prop_assert_eq!(adjusted, 0);
                    }
                }
            }
        }
        for (process, [received, hosted, own]) in truth.into_iter().enumerate() {
            let report = account.process(process);
            prop_assert_eq!((report.received, report.hosted, report.own), (received, hosted, own));
            prop_assert_eq!(report.compensated(TICK), received as i64 - hosted as i64, "ACCOUNT-CONSERVE-1");
            prop_assert_eq!(report.compensated(TICK), report.charged() as i64 - report.taken() as i64);
        }
        let totals = account.totals();
        let sum = |field: fn(&ProcessReport) -> u64| (0..4).map(|process| field(&account.process(process))).sum::<u64>();
        prop_assert_eq!(sum(|report| report.received) + totals.orphans, all, "ACCOUNT-CONSERVE-1");
        prop_assert_eq!(sum(|report| report.hosted) + totals.idle + totals.pending, all, "ACCOUNT-CONSERVE-1");
        prop_assert_eq!((0..3).map(|device| account.device(device).cycles).sum::<u64>(), all);
    }

    /// ACCOUNT-COUNTED-1: if all costs are constant and a whole number of them makes a tick, the
    /// paper's account equals the measured one for each device.
    #[test]
    fn with_whole_constant_costs_both_modes_agree(events in events()) {
        let (mut measured, mut counted) = (account(Mode::Measured, 4, 1), account(Mode::Counted, 4, 1));
        // The counted account adjusts nothing until a cost is measured.
        for account in [&mut measured, &mut counted] {
            account.handled(0, None, 40);
            let _ = account.tick(None);
        }
        for event in events {
            match event {
                Event::Handled(_, process, _) => {
                    measured.handled(0, process, 40);
                    counted.handled(0, process, 40);
                }
                Event::Tick(running) => prop_assert_eq!(measured.tick(running), counted.tick(running)),
            }
        }
        for process in 0..4 {
            prop_assert_eq!(measured.process(process), counted.process(process));
        }
    }
}
