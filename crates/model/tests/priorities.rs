// SPDX-License-Identifier: MIT OR Apache-2.0
//! A board whose interrupts have priorities, and whose timers have a clock of their own. In the
//! texts « » stand around what the first label must cover.

use crate::common::{example, own, parsed, says, source};
use weir_model::{Expiry, Interval, Nesting};

/// A source of mps2-an385 with `rest` of its keys.
fn on(line: &str, rest: &str) -> String {
    format!("[[source]]\nname = \"{line}\"\nvector = \"{line}\"\nhandler = \"10 cycles\"\n{rest}\n")
}

fn board(rest: &str) -> String {
    format!("schema = 1\n[cpu]\nboard = \"mps2-an385\"\n{rest}")
}

fn strict(more: &str) -> String {
    format!("limit = {{ policy = \"strict\", interval = \"1ms\", timer = \"DUALTIMER\"{more} }}")
}

#[test]
fn sources_of_one_timer_share_its_alarm_and_what_that_costs() {
    let of = |members: usize| {
        let sources: String = (0..members)
            .map(|line| {
                on(
                    &format!("IRQ{line}"),
                    &format!("priority = 64\n{}", strict("")),
                )
            })
            .collect::<Vec<_>>()
            .concat();
        parsed(&board(&sources))
    };
    let (alone, three) = (of(1), of(3));
    assert_eq!(alone.cpu.nesting, Nesting::Grouped);
    let cost = |system: &weir_model::System| system.sources[0].limit.costs.expiry_served;
    let further = (cost(&three) - cost(&alone)) / 2;
    assert!(further > 0 && cost(&three) == cost(&alone) + 2 * further);
    assert_eq!(three.timers[0].base, alone.timers[0].base + 2 * further);
    // 1 ms of a clock of 25 MHz.
    let limit = &three.sources[2].limit;
    assert_eq!(
        limit.interval,
        Interval {
            ticks: 25_000,
            tick: 5
        }
    );
    let Some(Expiry::Own { channel, level }) = &limit.expiry else {
        panic!("{limit:?}");
    };
    assert_eq!(
        (channel.as_str(), level.vector.as_str()),
        ("DUALTIMER", "IRQ10")
    );
    assert_eq!(level.group, three.sources[2].level.group);
    assert!(level.order > three.sources[2].level.order);
}

#[test]
fn the_smaller_number_preempts_the_larger() {
    let system = example("valve-controller");
    let [pressure, flow, switch] = &system.sources[..] else {
        panic!("{system:?}");
    };
    assert!(pressure.level.group > flow.level.group);
    assert_eq!(flow.level.group, switch.level.group);
}

#[test]
fn a_prescaler_is_that_of_the_timer() {
    let with = |prescaler: &str| {
        board(&on(
            "IRQ20",
            &format!("priority = 64\n{}", strict(prescaler)),
        ))
    };
    let system = parsed(&with(", prescaler = 16"));
    let limit = &system.sources[0].limit;
    assert_eq!(
        limit.interval,
        Interval {
            ticks: 1563,
            tick: 80
        }
    );
    says(
        &with(", prescaler = «64»"),
        "DUALTIMER has no prescaler 64",
        "1, 16, 256",
    );
    let short = |interval: &str| {
        board(&on(
            "IRQ20",
            &format!(
                "priority = 64\nlimit = {{ policy = \"strict\", interval = «\"{interval}\"», timer = \"DUALTIMER\", prescaler = 1 }}"
            ),
        ))
    };
    says(
        &short("2us"),
        "DUALTIMER counts too fast for 2us",
        "16 or more where it has at most 63 ticks",
    );
    says(
        &short("30s"),
        "DUALTIMER cannot hold 30s",
        "fits with prescaler 16, 256",
    );
}

#[test]
fn priorities_are_those_of_the_board() {
    let with = |priority: &str| board(&on("IRQ20", priority));
    says(
        &with("priority = «255»"),
        "no priority 255",
        "a multiple of 2 up to 254",
    );
    says(&with("priority = «3»"), "no priority 3", "a multiple of 2");
    says(
        &board("«[[source]]»\nname = \"a\"\nvector = \"IRQ20\"\nhandler = \"10 cycles\"\n"),
        "each interrupt has a priority",
        "add priority = …",
    );
    says(
        &source("priority = «4»"),
        "the vectors' order is their priority",
        "leave it out",
    );
    says(
        &own(
            crate::common::LIMITER_OFF,
            "[[source]]\nname = \"a\"\nvector = \"X\"\norder = 1\npriority = «4»\nhandler = \"1us\"\n",
        ),
        "there is no board",
        "write `group`",
    );
    parsed(&with("priority = 0"));
    says(
        &with(&format!("priority = «0»\n{}", strict(""))),
        "no priority 0, which BASEPRI cannot hold back",
        "write 2 or more",
    );
}

#[test]
fn groups_have_one_priority_and_eight_sources() {
    let two = format!(
        "{}{}",
        on("IRQ1", &format!("priority = 64\n{}", strict(""))),
        on("IRQ2", &format!("priority = «66»\n{}", strict("")))
    );
    says(
        &board(&two),
        "share the timer DUALTIMER have one priority",
        "the same priority",
    );
    let mut many = String::new();
    for line in 0..8 {
        many += &on(
            &format!("IRQ{line}"),
            &format!("priority = 64\n{}", strict("")),
        );
    }
    parsed(&board(&many));
    many += &on(
        "IRQ20",
        "priority = 64\nlimit = { policy = \"strict\", interval = \"1ms\", timer = «\"DUALTIMER\"» }",
    );
    says(
        &board(&many),
        "DUALTIMER serves at most 8 sources",
        "another timer",
    );
}

#[test]
fn what_the_board_lacks_is_told() {
    let limit = |limit: &str| {
        board(&on(
            "IRQ20",
            &format!("priority = 64\nlimit = {{ {limit} }}"),
        ))
    };
    says(
        &limit("policy = \"strict\", rate = \"1kHz\", timer = «\"TIMER1A\"»"),
        "there is no timer `TIMER1A`",
        "DUALTIMER",
    );
    says(
        &limit("policy = «\"poll\"», rate = \"1kHz\", timer = \"DUALTIMER\""),
        "no port has code for policy = \"poll\", so it cannot be kept on mps2-an385",
        "policy = \"strict\"",
    );
    says(
        "schema = 1\n[cpu]\nboard = \"mps2-an385\"\nflavour = «\"fast\"»\n",
        "the port of mps2-an385 has no flavour `fast`",
        "c",
    );
    says(
        "schema = 1\n[cpu]\nboard = \"mps2-an385\"\nclock = «\"25MHz\"»\n",
        "the clock of mps2-an385 is 125000000 Hz, and no other",
        "leave `clock` out",
    );
    says(
        "schema = 1\n[cpu]\nboard = \"mps2-an385\"\ninterrupts = «\"flat\"»\n",
        "the more urgent interrupt preempts the other",
        "sources of the same `priority`",
    );
    says(
        &board("«[[timer]]»\nname = \"s\"\nchannel = \"DUALTIMER\"\nrate = \"100Hz\"\n"),
        "no timer of mps2-an385 clears the counts",
        "share its alarm",
    );
}
