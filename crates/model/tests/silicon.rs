// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits in hardware: what the silicon's rounding makes of them, and what does not fit it. In the
//! texts « » stand around what the first label must cover.

use crate::common::{on_board, parsed, says};
use weir_model::{Policy, SiliconForm, System, Timing};

/// A system at 16 MHz with this in `[silicon]` and these limits in hardware.
fn text(silicon: &str, limits: &[&str]) -> String {
    let mut sources = String::new();
    for (index, limit) in limits.iter().enumerate() {
        sources += &format!(
            "[[source]]\nname = \"s{index}\"\nvector = \"INT{index}\"\nhandler = \"10 cycles\"\n{limit}\n"
        );
    }
    on_board(&format!("[silicon]\n{silicon}\n{sources}"))
}

fn limit(keys: &str) -> String {
    format!("limit = {{ place = \"hardware\", {keys} }}")
}

fn system(silicon: &str, keys: &str) -> System {
    parsed(&text(silicon, &[&limit(keys)]))
}

#[test]
fn an_interval_is_rounded_up_to_what_a_rate_makes() {
    let strict = system("phase_bits = 14", "policy = \"strict\", rate = \"4kHz\"");
    let limit = &strict.sources[0].limit;
    // ⌈16384 / 4⌉; a rate of 5 would make 3277.
    assert_eq!(
        (limit.interval.cycles(), limit.silicon.unwrap().rate),
        (4096, 4)
    );
    assert_eq!(limit.timing, Timing::Eager);
    // Two for the synchroniser, three for the line.
    assert_eq!(limit.delay(), 5);
    let exact = system("phase_bits = 24", "policy = \"strict\", rate = \"4kHz\"");
    assert_eq!(exact.sources[0].limit.interval.cycles(), 4000);
}

#[test]
fn a_bursty_limit_counts_its_burst_and_a_bucket_does_not() {
    let bursty = system("", "policy = \"bursty\", burst = 4, rate = \"4kHz\"");
    let limit = &bursty.sources[0].limit;
    assert_eq!(
        (limit.policy, limit.timing),
        (Policy::Bursty, Timing::OneShot)
    );
    assert!(
        (16_000..16_100).contains(&limit.interval.cycles()),
        "{}",
        limit.interval.cycles()
    );
    assert_eq!(bursty.silicon.unwrap().burst_bits, 3);
    let bucket = system("", "policy = \"bucket\", burst = 3, rate = \"4kHz\"");
    assert_eq!(bucket.sources[0].limit.interval.cycles(), 4000);
    assert_eq!(bucket.silicon.unwrap().burst_bits, 2);
    let strict = system("", "policy = \"strict\", rate = \"4kHz\"");
    assert_eq!(strict.silicon.unwrap().burst_bits, 0);
}

#[test]
fn a_memory_counts_in_scans_and_delivers_a_scan_later() {
    let memory = system(
        "form = \"memory\"\nsynchroniser = 3",
        "policy = \"strict\", rate = \"4kHz\"",
    );
    let limit = &memory.sources[0].limit;
    assert_eq!(memory.silicon.unwrap().form, SiliconForm::Memory);
    assert_eq!((limit.interval.tick, limit.delay()), (18, 3 + 3 + 18 + 10));
    assert!(limit.interval.cycles() >= 4000);
}

#[test]
fn without_a_limit_in_hardware_there_is_no_silicon() {
    let system = parsed(&text("phase_bits = 12", &["max_work = 1"]));
    assert_eq!(system.silicon, None);
}

#[test]
fn an_outcome_beyond_the_band_is_refused_with_the_limits_near_it() {
    let marked = |rate: &str| {
        let source = format!(
            "rate = {rate}\n{}",
            limit("policy = \"strict\", rate = «\"4kHz\"»")
        );
        text("phase_bits = 14", &[&source])
    };
    says(
        &marked("{ expected = \"3.95kHz\" }"),
        "lets 3.90625kHz through, less than the 3.95kHz expected",
        "with 14 phase bits the limits near it are 4.88252kHz, then 3.90625kHz, then 2.92933kHz",
    );
    parsed(&marked("{ expected = \"3.9kHz\", tolerated = \"4kHz\" }").replace(['«', '»'], ""));
}

#[test]
fn what_does_not_fit_is_refused_with_what_would() {
    let keys = |silicon: &str, keys: &str| text(silicon, &[&limit(keys)]);
    says(
        &keys(
            "phase_bits = 12",
            "policy = \"strict\", interval = «\"1ms\"»",
        ),
        "an interval of 1ms does not fit 12 phase bits, which reach 256us",
        "phase_bits = 14",
    );
    says(
        &keys(
            "phase_bits = 14\nrate_bits = 4",
            "policy = \"strict\", rate = «\"100kHz\"»",
        ),
        "does not fit 4 rate bits: the shortest is 68.3125us",
        "rate_bits = 7",
    );
    says(
        &keys(
            "burst_bits = 2",
            "policy = \"bucket\", burst = «4», rate = \"1kHz\"",
        ),
        "a burst of 4 does not fit 2 burst bits, which hold 3",
        "burst_bits = 3",
    );
    says(
        &keys(
            "phase_bits = 12\nrate_bits = «13»",
            "policy = \"strict\", rate = \"10kHz\"",
        ),
        "a rate of 13 bits overflows a phase of 12",
        "rate_bits = 12",
    );
    says(
        &keys("synchroniser = «1»", "policy = \"strict\", rate = \"1kHz\""),
        "a synchroniser needs two stages",
        "write 2 or 3",
    );
    says(
        &keys(
            "base = «0x11000100»",
            "policy = \"strict\", rate = \"1kHz\"",
        ),
        "begin at a multiple of that",
        "0x11000000",
    );
    says(
        &keys("", "policy = \"strict\", interval = «\"1 cycle\"»"),
        "does not fit 24 rate bits",
        "at least 125ns",
    );
}

#[test]
fn more_sources_than_a_block_has_are_refused() {
    let costs = "costs.off.request_served = \"20 cycles\"";
    let mut sources = String::new();
    for index in 0..=1024 {
        let place = if index == 1024 {
            "«\"hardware\"»"
        } else {
            "\"hardware\""
        };
        sources += &format!(
            "[[source]]\nname = \"s{index}\"\nvector = \"V{index}\"\norder = {index}\nhandler = \"1us\"\nlimit = {{ policy = \"strict\", rate = \"1kHz\", place = {place} }}\n"
        );
    }
    says(
        &crate::common::own(costs, &sources),
        "up to 1024 sources",
        "in software",
    );
    let most = sources
        .split("[[source]]")
        .take(1025)
        .collect::<Vec<_>>()
        .join("[[source]]");
    let system = parsed(&crate::common::own(costs, &most));
    assert_eq!(system.silicon.unwrap().form, SiliconForm::Memory);
    assert_eq!(system.sources[0].limit.interval.tick, 9 * 128);
}
