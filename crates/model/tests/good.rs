// SPDX-License-Identifier: MIT OR Apache-2.0
//! Good files mean what they say.

use crate::common::{example, on_board, parsed, source};
use weir_model::{
    Cost, EventCosts, Expiry, Interval, Nesting, Network, Origin, Place, Policy, Protocol,
    Selector, System, TaskModel, Timing,
};

fn named<'a>(system: &'a System, name: &str) -> &'a weir_model::Source {
    let found = system.sources.iter().find(|source| source.name == name);
    found.unwrap_or_else(|| panic!("no source {name}"))
}

const fn in_ticks(ticks: u64, tick: u64) -> Interval {
    Interval { ticks, tick }
}

#[test]
fn the_papers_three_sources_share_one_timer() {
    let system = example("shared-timer");
    assert_eq!(system.cpu.clock_hz, 4_000_000);
    assert_eq!(system.cpu.nesting, Nesting::Flat);
    let timer = &system.timers[0];
    assert_eq!(timer.level.vector, "TIMER1_COMPA");
    // 36363.6 cycles: never shorter than asked, to the tick of the smallest prescaler with which it
    // fits.
    assert_eq!(timer.period, in_ticks(36_364, 1));
    assert!(timer.base > 0);
    let bursts: Vec<u32> = system.sources.iter().map(|s| s.limit.burst).collect();
    assert_eq!(bursts, [3, 2, 7]);
    for source in &system.sources {
        assert_eq!(source.limit.expiry, Some(Expiry::Shared(0)));
        assert_eq!(source.limit.timing, Timing::Eager);
        assert_eq!(source.limit.interval.cycles(), 36364);
        assert!(source.limit.costs.expiry_empty > 0);
    }
}

#[test]
fn the_limits_in_silicon_cost_what_an_ordinary_interrupt_of_the_board_does() {
    let system = example("limit-in-silicon");
    assert_eq!(system.cpu.board.as_deref(), Some("soc"));
    assert_eq!(system.cpu.clock_hz, 4_000_000);
    assert!(system.cpu.costs_from.contains("boards/soc/costs.toml"));
    for (source, vector, order) in [
        ("uart", "INT0", 1),
        ("encoder", "INT1", 2),
        ("radio", "INT2", 3),
    ] {
        let source = named(&system, source);
        assert_eq!(
            (source.level.vector.as_str(), source.level.order),
            (vector, order)
        );
    }
    let costs = system.cpu.unlimited;
    assert!(costs.request_served > 0);
    assert_eq!(costs.expiry_served, 0);
}

#[test]
fn the_motor_controller_brings_the_boards_costs() {
    let system = example("motor-controller");
    assert_eq!(system.name, "motor-controller");
    assert_eq!(system.sha256.len(), 64);
    assert_eq!(system.cpu.board.as_deref(), Some("atmega128"));
    assert_eq!(system.cpu.flavour.as_deref(), Some("c"));
    assert_eq!(system.cpu.longest_instruction, 4);
    assert_eq!(system.cpu.critical_section.cycles, 60);
    assert!(
        system
            .cpu
            .costs_from
            .contains("boards/atmega128/costs.toml")
    );

    let encoder = named(&system, "encoder");
    assert_eq!(
        (encoder.level.vector.as_str(), encoder.level.order),
        ("INT0", 1)
    );
    let handler = Cost {
        cycles: 120,
        origin: Origin::Measured,
    };
    assert_eq!(encoder.handler, handler);
    assert_eq!(
        (encoder.limit.policy, encoder.limit.timing),
        (Policy::Bucket, Timing::Lazy)
    );
    assert_eq!(
        (
            encoder.limit.interval.cycles(),
            encoder.limit.interval.tick,
            encoder.limit.burst
        ),
        (4000, 1, 4)
    );
    assert!(encoder.limit.costs.request_refused > 0);
    assert_eq!(encoder.deadline, Some(3200));

    let button = named(&system, "button");
    assert_eq!(button.rates.worst_name, Some("loose-wire"));
    assert_eq!(button.rates.worst.unwrap().hertz(), 500.0);
    // 320000 cycles need 40000 ticks at prescaler 8, and 16383 are the most.
    assert_eq!(button.limit.interval, in_ticks(5_000, 64));

    let uart = named(&system, "uart");
    assert_eq!(uart.limit.policy, Policy::Off);
    assert_eq!(uart.limit.costs, system.cpu.unlimited);
    assert!(uart.limit.costs.request_served > 0);
    assert_eq!(system.receivers[1].jitter, 800);
    assert_eq!(system.receivers[1].blocking.origin, Origin::Default);
}

/// The compiler of the flavour `c` saves the body's registers in every interrupt that could run it.
#[test]
fn what_saves_registers_costs_interrupts_without_body_too() {
    let costs = |handler: &str, limit: &str| {
        let text = format!(
            "schema = 1\n[cpu]\nboard = \"atmega128\"\n[[source]]\nname = \"a\"\nvector = \"INT0\"\n{handler}\n\
             limit = {{ policy = \"strict\", rate = \"1kHz\", {limit} }}\n"
        );
        let of = parsed(&text).sources[0].limit.costs;
        assert!(of.request_served > 0, "{of:?}");
        of
    };
    let own = "timer = \"TIMER1A\"";
    let none = costs("handler = \"400 cycles\"\nregisters = \"0 cycles\"", own);
    let by_default = |cycles| weir_model::EventCosts {
        request_refused: none.request_refused + cycles,
        expiry_empty: none.expiry_empty + cycles,
        ..none
    };
    assert_eq!(costs("handler = \"400 cycles\"", own), by_default(120));
    assert_eq!(costs("handler = \"80 cycles\"", own), by_default(80));
    assert_eq!(
        costs("handler = \"80 cycles\"\nregisters = \"8 cycles\"", own),
        by_default(8)
    );
    // An eager limiter refuses nothing, so that goes on to cost nothing.
    let eager = costs(
        "handler = \"80 cycles\"",
        "timing = \"eager\", timer = \"TIMER1A\"",
    );
    assert_eq!(eager.request_refused, 0);
    // A shared timer's interrupt holds no handler.
    let shared = example("shared-timer");
    let board = parsed(
        "schema = 1\n[cpu]\nboard = \"atmega128\"\n[[timer]]\nname = \"slow\"\nchannel = \"TIMER1A\"\nrate = \"110Hz\"\n\
        [[source]]\nname = \"a\"\nvector = \"INT0\"\nhandler = \"9 cycles\"\nlimit = { policy = \"bursty\", timer = \"slow\" }\n",
    );
    assert_eq!(shared.sources[0].limit.costs, board.sources[0].limit.costs);
}

#[test]
fn the_flight_controller_loads() {
    let system = example("flight-controller");
    let radio = named(&system, "radio");
    assert_eq!(
        (radio.limit.policy, radio.limit.timing),
        (Policy::Bursty, Timing::OneShot)
    );
    // Nine in 10 ms are 900 Hz.
    assert_eq!(radio.limit.interval.cycles(), 160_000);
    // Two channels of one counter have one prescaler.
    assert_eq!(
        named(&system, "ignition").limit.interval.tick,
        named(&system, "gyro").limit.interval.tick
    );
}

#[test]
fn a_system_without_a_board_has_its_own_costs_and_timers() {
    let system = parsed(include_str!("data/own-cpu.toml"));
    assert_eq!(system.name, "system");
    assert_eq!((system.cpu.board, system.cpu.flavour), (None, None));
    assert_eq!(system.cpu.nesting, Nesting::Grouped);
    assert_eq!(system.cpu.tasks, TaskModel::Cooperative);
    assert_eq!(
        system.cpu.critical_section,
        Cost {
            cycles: 144,
            origin: Origin::Measured
        }
    );
    assert_eq!(system.cpu.unlimited.request_served, 30);

    // Only the shared timer is one of the system's; 288000 cycles are 36000 ticks of 8.
    let [timer] = system.timers.as_slice() else {
        panic!("{:?}", system.timers)
    };
    assert_eq!((timer.period, timer.base), (in_ticks(36_000, 8), 40));
    assert_eq!(
        (
            timer.level.vector.as_str(),
            timer.level.group,
            timer.level.order
        ),
        ("slow", 1, 40)
    );

    let eth = &system.sources[0];
    assert_eq!((eth.level.group, eth.level.order), (1, 61));
    assert_eq!(eth.limit.interval, in_ticks(14_400, 1));
    let Some(Expiry::Own { channel, level }) = &eth.limit.expiry else {
        panic!("{:?}", eth.limit)
    };
    assert_eq!(
        (channel.as_str(), level.vector.as_str(), level.order),
        ("fine", "TIM3", 41)
    );
    let moderation = eth.moderation.unwrap();
    assert_eq!(
        (moderation.absolute, moderation.packet, moderation.count),
        (72_000, Some(3600), Some(8))
    );

    let shared = &system.sources[1].limit;
    assert_eq!(
        (shared.policy, shared.interval.cycles(), shared.burst),
        (Policy::Bursty, 288_000, 2)
    );
    assert_eq!(
        shared.costs,
        EventCosts {
            request_served: 45,
            request_refused: 0,
            expiry_served: 25,
            expiry_empty: 10
        }
    );

    let poll = &system.sources[2].limit;
    // 72000 ticks do not fit 16 bits: 1125 of 64 do.
    assert_eq!(
        (poll.policy, poll.interval),
        (Policy::Poll, in_ticks(1_125, 64))
    );

    let hardware = &system.sources[3].limit;
    assert_eq!(
        (hardware.policy, hardware.place),
        (Policy::Strict, Place::Hardware)
    );
    assert_eq!(
        (hardware.interval, &hardware.expiry),
        (in_ticks(5040, 1), &None)
    );
    assert_eq!(hardware.costs.request_served, 30);

    assert_eq!((system.flows[0].source, system.flows[0].receiver), (0, 0));
    assert_eq!((system.flows[1].source, system.flows[1].receiver), (0, 1));
    assert_eq!(system.flows[0].queue, Some(16));
    assert_eq!(
        system.flows[0].selector,
        Selector {
            ethertype: Some(0x0800),
            protocol: Some(Protocol::Tcp),
            port: Some(502),
            ..Selector::default()
        }
    );
    assert_eq!(system.flows[1].selector, Selector::default());
    let [control, log] = system.receivers.as_slice() else {
        panic!("{:?}", system.receivers)
    };
    assert_eq!((control.port, control.backlog), (Some(502), Some(32)));
    assert_eq!((log.port, log.backlog), (None, None));
    assert_eq!((eth.queue, system.sources[1].queue), (Some(64), None));
    assert_eq!(system.receivers[1].period, None);
}

#[test]
fn demand_beyond_the_processor_is_no_bad_input() {
    let system = parsed(
        r#"
        schema = 1
        [cpu]
        board = "atmega128"
        [[source]]
        name = "flood"
        vector = "INT0"
        handler = "1s"
        [[receiver]]
        name = "late"
        urgency = 1
        period = "1ms"
        wcet = "5ms"
        deadline = "1us"
        [[receiver]]
        name = "patient"
        urgency = 0
        interarrival = "1ms"
        deadline = "1s"
        wcet = "10us"
        "#,
    );
    assert_eq!(system.sources[0].rates.worst, None);
    assert_eq!(system.sources[0].max_work, None);
    assert_eq!(system.receivers[0].deadline, Some(4));
}

#[test]
fn roundings_go_to_the_safe_side() {
    let system = parsed(
        r#"
        schema = 1
        [cpu]
        board = "atmega128"
        clock = "7372800Hz"
        [[source]]
        name = "a"
        vector = "INT0"
        handler = "50us"
        deadline = "50us"
        limit = { policy = "strict", rate = "1kHz", timer = "TIMER1A", prescaler = 64 }
        [[receiver]]
        name = "t"
        urgency = 1
        period = "50us"
        jitter = "50us"
        wcet = "50us"
        blocking = "50us"
        deadline = "50us"
        "#,
    );
    // 368.64 cycles, and 115.2 ticks of 64.
    let source = &system.sources[0];
    assert_eq!((source.handler.cycles, source.deadline), (369, Some(368)));
    assert_eq!(source.limit.interval.cycles(), 116 * 64);
    let task = &system.receivers[0];
    assert_eq!((task.period, task.deadline), (Some(368), Some(368)));
    assert_eq!(
        (task.jitter, task.wcet.cycles, task.blocking.cycles),
        (369, 369, 369)
    );
}

#[test]
fn a_file_overrides_single_costs_of_the_board() {
    let text = r#"
        schema = 1
        [cpu]
        board = "atmega128"
        [cpu.costs.strict.lazy]
        request_served = "1000 cycles"
        [[source]]
        name = "a"
        vector = "INT0"
        handler = "10 cycles"
        limit.policy = "strict"
        limit.rate = "1kHz"
        limit.timer = "TIMER1A"
        "#;
    let costs = parsed(text).sources[0].limit.costs;
    assert_eq!(costs.request_served, 1000);
    assert!((1..1000).contains(&costs.request_refused), "{costs:?}");
}

#[test]
fn the_fast_flavour_runs_on_8_bit_timers() {
    let system = parsed(
        r#"
        schema = 1
        [cpu]
        board = "atmega128"
        flavour = "fast"
        [[source]]
        name = "a"
        vector = "INT0"
        handler = "10 cycles"
        limit = { policy = "strict", rate = "4kHz", timer = "TIMER0" }
        "#,
    );
    let limit = &system.sources[0].limit;
    assert_eq!(limit.timing, Timing::Eager);
    assert_eq!(limit.interval, in_ticks(125, 8));
    assert_eq!(limit.costs.expiry_served, 0);
}

#[test]
fn channels_of_one_counter_get_one_prescaler() {
    let system = parsed(
        r#"
        schema = 1
        [cpu]
        board = "atmega128"
        [[source]]
        name = "a"
        vector = "INT0"
        handler = "10 cycles"
        limit = { policy = "strict", rate = "1kHz", timer = "TIMER1A" }
        [[source]]
        name = "b"
        vector = "INT1"
        handler = "10 cycles"
        limit = { policy = "strict", rate = "100Hz", timer = "TIMER1B" }
        "#,
    );
    let ticks: Vec<u64> = system
        .sources
        .iter()
        .map(|s| s.limit.interval.tick)
        .collect();
    assert_eq!(ticks, [8, 8]);
}

#[test]
fn a_selector_says_which_addresses_it_means() {
    for (address, network, prefix) in [
        ("192.0.2.7", "192.0.2.7", 32),
        ("192.0.2.0/24", "192.0.2.0", 24),
        ("0.0.0.0/0", "0.0.0.0", 0),
        ("2001:db8::1", "2001:db8::1", 128),
        ("2001:db8::/32", "2001:db8::", 32),
    ] {
        let system = parsed(&source(&format!(
            "[[receiver]]\nname = \"t\"\nurgency = 1\n[[flow]]\nname = \"f\"\nsource = \"a\"\nreceiver = \"t\"\nselector = {{ address = \"{address}\", pcp = 5 }}"
        )));
        let selector = system.flows[0].selector;
        let wanted = Network {
            address: network.parse().unwrap(),
            prefix,
        };
        assert_eq!((selector.address, selector.pcp), (Some(wanted), Some(5)));
    }
}

#[test]
fn time_slices_are_rounded_down() {
    assert_eq!(parsed(&on_board("")).cpu.time_slice, None);
    let slice = |text: &str| {
        parsed(&on_board(&format!("time_slice = \"{text}\"")))
            .cpu
            .time_slice
    };
    assert_eq!(slice("10ms"), Some(160_000));
    // 1.6 cycles: shorter slices cost more.
    assert_eq!(slice("100ns"), Some(1));
}

#[test]
fn a_limit_is_called_as_it_is_written() {
    let limit = |text: &str| {
        parsed(&source(&format!("limit = {{ {text} }}"))).sources[0]
            .limit
            .clone()
    };
    assert_eq!(limit("policy = \"off\"").policy.name(), "off");
    for policy in ["strict", "paced", "bursty", "bucket"] {
        let limit = limit(&format!(
            "policy = \"{policy}\", rate = \"1kHz\", timer = \"TIMER1A\""
        ));
        assert_eq!(
            (limit.policy.name(), limit.place.name()),
            (policy, "software")
        );
    }
    for timing in ["lazy", "eager", "one_shot"] {
        let limit = limit(&format!(
            "policy = \"bursty\", timing = \"{timing}\", burst = 2, rate = \"1kHz\", timer = \"TIMER1A\""
        ));
        assert_eq!(limit.timing.name(), timing);
    }
    let limit = limit("policy = \"strict\", place = \"hardware\", rate = \"1kHz\"");
    assert_eq!(limit.place.name(), "hardware");
}
