// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random limits and their costs.
use std::fmt::Write;

use rand::Rng;
use rand_chacha::ChaCha8Rng;

/// The costs of interrupts for each policy and timing.
const COSTS: &str = r#"
[cpu.costs]
off = { request_served = "10 cycles" }
poll = { expiry_served = "14 cycles", expiry_empty = "9 cycles" }
shared = { request_served = "13 cycles", expiry_base = "8 cycles", clear_empty = "3 cycles", clear_served = "9 cycles" }
"#;

/// Returns the section of a system that states these costs, for a processor of 1 MHz.
pub fn costs() -> String {
    let mut text = COSTS.to_owned();
    let all = "request_served = \"15 cycles\", request_refused = \"11 cycles\", expiry_served = \"18 cycles\", expiry_empty = \"12 cycles\"";
    for (policy, timings) in [
        ("strict", &["lazy", "eager"][..]),
        ("paced", &["lazy", "eager"]),
        ("bursty", &["lazy", "eager", "one_shot"]),
        ("bucket", &["lazy", "eager"]),
    ] {
        for timing in timings {
            writeln!(
                text,
                "[cpu.costs.{policy}.{timing}]\n{}",
                all.replace(", ", "\n")
            )
            .expect("a text");
        }
    }
    text
}

/// Returns a random limit, or none, for the source with this index, and the limit's timer. GROUP in
/// the timer's text is a placeholder for the caller.
pub fn random(rng: &mut ChaCha8Rng, index: usize) -> (String, String) {
    let interval = rng.random_range(150..2000);
    let burst = rng.random_range(2..5);
    let timer = format!("timer = \"t{index}\"");
    let timing = *["lazy", "eager"]
        .get(rng.random_range(0..2_usize))
        .expect("two");
    let own = match rng.random_range(0..8) {
        0 => return (String::new(), String::new()),
        1 => {
            let policy = match rng.random_range(0..3) {
                0 => "policy = \"strict\"".to_owned(),
                1 => format!("policy = \"bucket\", burst = {burst}"),
                _ => format!("policy = \"bursty\", burst = {burst}"),
            };
            let limit = format!(
                "limit = {{ {policy}, place = \"hardware\", interval = \"{interval}us\" }}\n"
            );
            return (limit, String::new());
        }
        2 => format!("policy = \"strict\", timing = \"{timing}\""),
        3 => format!("policy = \"paced\", timing = \"{timing}\""),
        4 => format!("policy = \"bursty\", timing = \"{timing}\", burst = {burst}"),
        5 => format!("policy = \"bursty\", timing = \"one_shot\", burst = {burst}"),
        6 => "policy = \"poll\"".to_owned(),
        _ => format!("policy = \"bucket\", timing = \"{timing}\", burst = {burst}"),
    };
    let order = rng.random_range(0..100) * 20 + index + 10;
    (
        format!("limit = {{ {own}, interval = \"{interval}us\", {timer} }}\n"),
        format!("[[timer]]\nname = \"t{index}\"\nwidth = 16\norder = {order}\nGROUP"),
    )
}
