// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is generated for a system, and what is refused.

mod plan;
mod rtos;
mod silicon;
mod systems;

use proptest::prelude::ProptestConfig;
use proptest::test_runner::{FileFailurePersistence, RngSeed};

/// Do the tests take their long form? CONTRIBUTING.md says when.
fn is_long() -> bool {
    std::env::var_os("WEIR_LONG").is_some_and(|value| value == "1")
}

/// The random cases of a test: `few`, the same in each run, or in the long form `many`, others in
/// each run.
fn cases(few: u32, many: u32) -> ProptestConfig {
    let of = ProptestConfig {
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource(
            "proptest-regressions",
        ))),
        ..ProptestConfig::default()
    };
    if is_long() {
        ProptestConfig { cases: many, ..of }
    } else {
        ProptestConfig {
            cases: few,
            rng_seed: RngSeed::Fixed(1),
            ..of
        }
    }
}
