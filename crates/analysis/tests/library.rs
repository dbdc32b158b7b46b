// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares `rta::solve` with the analyses of the crate `response-time-analysis`. These implement
//! theorems that are proven in PROSA (Bozhko and Brandenburg, "Abstract response-time analysis",
//! ECRTS 2020). Both give the same bounds, and have no bound for the same sets.

use proptest::prelude::*;
use response_time_analysis::demand::RBF;
use response_time_analysis::fixed_point::{SearchFailure, SearchResult};
use response_time_analysis::fixed_priority::{
    floating_nonpreemptive, fully_nonpreemptive, fully_preemptive, limited_preemptive,
};
use response_time_analysis::time::{Duration, Service};
use response_time_analysis::wcet::Scalar;
use weir_analysis::curve::{Curve, Staircase};
use weir_analysis::rta::{Demand, NoBound, Problem, solve};

/// The library reports a bound beyond this as divergent. It checks itself by brute force below
/// 100,000.
const LIMIT: u64 = 200_000;

fn demand() -> impl Strategy<Value = Demand> {
    let sporadic = (2..300_u64, 0..900_u64)
        .prop_map(|(period, jitter)| Curve::new(Staircase::sporadic(period, jitter)));
    let burst =
        (1..6_u64, 1..4_u64, 5..300_u64, 0..300_u64).prop_map(|(base, step, period, jitter)| {
            Curve::new(Staircase {
                base: base.max(step),
                step,
                period,
                jitter,
            })
        });
    let both =
        (burst.clone(), 1..40_u64).prop_map(|(burst, gap)| burst.and(Staircase::sporadic(gap, 0)));
    (prop_oneof![sporadic, burst, both], 1..60_u64).prop_map(|(curve, cost)| Demand { cost, curve })
}

/// A job, the more urgent work, and the cycles of blocking.
fn set() -> impl Strategy<Value = (Demand, Vec<Demand>, u64)> {
    (
        demand(),
        proptest::collection::vec(demand(), 0..5),
        0..80_u64,
    )
}

fn rbf(demand: &Demand) -> RBF<Curve, Scalar> {
    RBF::new(
        demand.curve.clone(),
        Scalar::from(Service::from(demand.cost)),
    )
}

/// Compares the result of Weir with that of the library.
fn compare(ours: Problem, theirs: SearchResult) -> Result<(), TestCaseError> {
    match (solve(&ours), theirs) {
        (Ok(solution), Ok(bound)) => {
            prop_assert_eq!(solution.response, u64::from(bound));
        }
        (
            Err(NoBound::Overload | NoBound::TooLong),
            Err(SearchFailure::DivergenceLimitExceeded { .. }),
        ) => {}
        // The set nearly needs the whole processor. Its bound is beyond the limit up to which the
        // library searches.
        (Ok(solution), Err(SearchFailure::DivergenceLimitExceeded { .. })) => {
            prop_assert!(solution.busy_window > LIMIT, "{solution:?}");
        }
        // A set that needs exactly the whole processor can have a bound. Its long-run demand does
        // not show that the bound holds, so Weir gives none.
        (Err(NoBound::Overload), Ok(_)) => {
            let all = ours.until_start.iter().chain(ours.throughout).copied();
            let share: f64 = all.chain([ours.own]).map(Demand::utilisation).sum();
            prop_assert!(share > 1.0 - 1e-10, "{share}");
        }
        (ours, theirs) => prop_assert!(false, "{ours:?}, the library says {theirs:?}"),
    }
    Ok(())
}

proptest! {
    #![proptest_config(crate::cases(600, 3000))]

    #[test]
    fn preemptive((own, urgent, _) in set()) {
        let theirs = fully_preemptive::dedicated_uniproc_rta(
            &rbf(&own),
            &urgent.iter().map(rbf).collect::<Vec<_>>(),
            Duration::from(LIMIT),
        );
        let throughout: Vec<&Demand> = urgent.iter().collect();
        compare(Problem { own: &own, blocking: 0, until_start: &[], throughout: &throughout }, theirs)?;
    }

    #[test]
    fn floating_non_preemptive((own, urgent, blocking) in set()) {
        let theirs = floating_nonpreemptive::dedicated_uniproc_rta(
            &floating_nonpreemptive::TaskUnderAnalysis {
                rbf: &rbf(&own),
                blocking_bound: Service::from(blocking),
            },
            &urgent.iter().map(rbf).collect::<Vec<_>>(),
            Duration::from(LIMIT),
        );
        let throughout: Vec<&Demand> = urgent.iter().collect();
        compare(Problem { own: &own, blocking, until_start: &[], throughout: &throughout }, theirs)?;
    }

    #[test]
    fn non_preemptive((own, urgent, blocking) in set()) {
        let theirs = fully_nonpreemptive::dedicated_uniproc_rta(
            &fully_nonpreemptive::TaskUnderAnalysis {
                wcet: Scalar::from(Service::from(own.cost)),
                arrivals: &own.curve,
                blocking_bound: Service::from(blocking),
            },
            &urgent.iter().map(rbf).collect::<Vec<_>>(),
            Duration::from(LIMIT),
        );
        let until_start: Vec<&Demand> = urgent.iter().collect();
        compare(Problem { own: &own, blocking, until_start: &until_start, throughout: &[] }, theirs)?;
    }

    /// A job whose last segment is one cycle is preemptive, and one whose last segment is its whole
    /// cost is not. Jobs with thresholds lie between these two, which are therefore an upper and a
    /// lower bound.
    #[test]
    fn thresholds_lie_between((own, urgent, blocking) in set(), preempts in any::<u8>()) {
        let limited = |last| {
            limited_preemptive::dedicated_uniproc_rta(
                &limited_preemptive::TaskUnderAnalysis {
                    wcet: Scalar::from(Service::from(own.cost)),
                    arrivals: &own.curve,
                    last_np_segment: Service::from(last),
                    blocking_bound: Service::from(blocking),
                },
                &urgent.iter().map(rbf).collect::<Vec<_>>(),
                Duration::from(LIMIT),
            )
        };
        let (throughout, until_start): (Vec<_>, Vec<_>) = urgent
            .iter()
            .enumerate()
            .partition(|(index, _)| preempts >> index & 1 == 1);
        let strip = |all: Vec<(usize, &'_ Demand)>| -> Vec<Demand> {
            all.into_iter().map(|(_, demand)| demand.clone()).collect()
        };
        let (throughout, until_start) = (strip(throughout), strip(until_start));
        let problem = Problem {
            own: &own,
            blocking,
            until_start: &until_start.iter().collect::<Vec<_>>(),
            throughout: &throughout.iter().collect::<Vec<_>>(),
        };
        if let (Ok(solution), Ok(least), Ok(most)) = (solve(&problem), limited(own.cost), limited(1)) {
            prop_assert!(u64::from(least) <= solution.response && solution.response <= u64::from(most));
        }
    }

    /// The checker of certificates accepts any window into which the demand fits, from the start
    /// on. The analysis has to give the shortest one, even for a job that costs nothing.
    #[test]
    fn every_end_is_the_least((own, urgent, blocking) in set(), preempts: u8, is_free: bool) {
        let own = Demand { cost: if is_free { 0 } else { own.cost }, ..own };
        let (throughout, until_start): (Vec<_>, Vec<_>) = (0..)
            .zip(&urgent)
            .partition(|(index, _)| preempts >> index & 1 == 1);
        let throughout: Vec<&Demand> = throughout.into_iter().map(|(_, demand)| demand).collect();
        let until_start: Vec<&Demand> = until_start.into_iter().map(|(_, demand)| demand).collect();
        let problem =
            Problem { own: &own, blocking, until_start: &until_start, throughout: &throughout };
        for job in solve(&problem).map_or(Vec::new(), |solution| solution.jobs) {
            let sum = |of: &[&Demand], window| -> u64 {
                of.iter().map(|demand| demand.cycles(window)).sum()
            };
            let ahead = own.cycles(job.arrival + 1) + blocking;
            let fits = |end| ahead + sum(&until_start, job.start + 1) + sum(&throughout, end) <= end;
            prop_assert!(job.finish >= job.start && fits(job.finish));
            prop_assert!(job.finish == job.start || !fits(job.finish - 1));
        }
    }
}
