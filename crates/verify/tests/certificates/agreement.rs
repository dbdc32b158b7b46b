// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two independent implementations of docs/analysis.md agree: the verifier confirms what the
//! analysis finds.
use crate::systems;
use proptest::prelude::*;
use weir_model::System;
use weir_verify::{Report, Verdict, verify};

fn certified(system: &System) -> String {
    let analysis = weir_analysis::analyse(system);
    serde_json::to_string(&weir_analysis::certificate(system, &analysis)).unwrap()
}

fn verified(system: &System) -> Report {
    let text = certified(system);
    verify(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

proptest! {
    #![proptest_config(crate::cases(1000, 6000))]

    #[test]
    fn every_certificate_is_valid(system in systems::system(4)) {
        let report = verified(&system);
        prop_assert!(report.is_valid(), "{:#?}", report.rejections);
    }
}

proptest! {
    #![proptest_config(crate::cases(60, 300))]

    #[test]
    fn so_are_those_of_larger_systems(system in systems::system(20)) {
        let report = verified(&system);
        prop_assert!(report.is_valid(), "{:#?}", report.rejections);
    }
}

/// If no random system met its deadlines, the tests above would prove little.
#[test]
fn the_random_systems_have_every_verdict_and_every_outcome() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let strategy = systems::system(4);
    let mut seen = std::collections::HashMap::new();
    let mut count = |what: &'static str, times: usize| *seen.entry(what).or_insert(0) += times;
    for _ in 0..2000 {
        let system = strategy.new_tree(&mut runner).unwrap().current();
        let text = certified(&system);
        for outcome in [
            "\"bound\"",
            "\"starved\"",
            "\"overload\"",
            "[\"timer\"",
            "[\"bottom_half\"",
            "[\"delivered\"",
            "[\"expiry\"",
        ] {
            count(outcome, text.matches(outcome).count());
        }
        count(
            match verify(text.as_bytes()).unwrap().verdict {
                Verdict::Guaranteed => "guaranteed",
                Verdict::NotGuaranteed => "not guaranteed",
                Verdict::NotProven => "not proven",
            },
            1,
        );
    }

    assert_eq!(seen.len(), 10);
    assert!(seen.values().all(|&times| times >= 100), "{seen:?}");
}
