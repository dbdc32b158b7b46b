// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many random cases the tests of a crate try. Each crate's tests take this file in.
use proptest::prelude::ProptestConfig;
use proptest::test_runner::{FileFailurePersistence, RngSeed};

#[path = "test-length.rs"]
mod length;

#[allow(
    unused_imports,
    reason = "not every crate has long tests beside random ones"
)]
pub use length::is_long;

/// The random cases of a test: `few`, the same in each run, or in the long form `many`, others in
/// each run.
pub fn cases(few: u32, many: u32) -> ProptestConfig {
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
