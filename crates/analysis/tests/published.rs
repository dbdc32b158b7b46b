// SPDX-License-Identifier: MIT OR Apache-2.0
//! Published examples, with the numbers that were published. Where a paper prints an equation but
//! no numbers, the numbers were worked out by hand from the equation, and the test's comment says
//! so.
//!
//! Times are integers here. A paper's fractions are scaled to integers. Blocking is as in the
//! paper: the cycle by which the blocking work has already begun is not subtracted.

use weir_analysis::curve::{Curve, Staircase};
use weir_analysis::rta::{Demand, NoBound, Problem, Solution, solve};

/// A computation time and a period. Lists of tasks begin with the most urgent one.
type Task = (u64, u64);

fn demand((cost, period): Task, jitter: u64) -> Demand {
    Demand {
        cost,
        curve: Curve::new(Staircase::sporadic(period, jitter)),
    }
}

/// Analyses the last of `tasks`, which is the least urgent; all are preemptive.
fn preemptive(tasks: &[Task], blocking: u64) -> Result<Solution, NoBound> {
    let jittery: Vec<(Task, u64)> = tasks.iter().map(|&task| (task, 0)).collect();
    preemptive_with_jitter(&jittery, blocking)
}

fn preemptive_with_jitter(tasks: &[(Task, u64)], blocking: u64) -> Result<Solution, NoBound> {
    let demands: Vec<Demand> = tasks
        .iter()
        .map(|&(task, jitter)| demand(task, jitter))
        .collect();
    let (own, urgent) = demands.split_last().expect("a task");
    let throughout: Vec<&Demand> = urgent.iter().collect();
    solve(&Problem {
        own,
        blocking,
        until_start: &[],
        throughout: &throughout,
    })
}

/// The response times of all tasks, where each task is below those before it in the list.
fn all_preemptive(tasks: &[Task]) -> Vec<u64> {
    (1..=tasks.len())
        .map(|count| preemptive(&tasks[..count], 0).expect("a bound").response)
        .collect()
}

/// Analyses one of `tasks` where no task preempts another. It is blocked by the longest task that
/// is less urgent.
fn non_preemptive(tasks: &[Task], of: usize) -> Solution {
    let demands: Vec<Demand> = tasks.iter().map(|&task| demand(task, 0)).collect();
    let until_start: Vec<&Demand> = demands[..of].iter().collect();
    let blocking = tasks[of + 1..].iter().map(|task| task.0).max().unwrap_or(0);
    solve(&Problem {
        own: &demands[of],
        blocking,
        until_start: &until_start,
        throughout: &[],
    })
    .expect("a bound")
}

/// The equation of Joseph and Pandya, "Finding response times in a real-time system", The Computer
/// Journal 29(5), 1986. The task sets are those on which textbooks show it (Burns and Wellings,
/// "Real-Time Systems and Programming Languages", the chapter on scheduling). With costs and
/// periods of (3, 7), (3, 12) and (5, 20) the responses are 3, 6 and 20. With (5, 20), (10, 40) and
/// (40, 80), which need the whole processor, they are 5, 15 and 80.
#[test]
fn joseph_and_pandya_1986() {
    assert_eq!(all_preemptive(&[(3, 7), (3, 12), (5, 20)]), [3, 6, 20]);
    // Weir gives no bound if tasks need the whole processor. With one cycle less the result is the
    // book's.
    let full = preemptive(&[(5, 20), (10, 40), (40, 80)], 0);
    assert_eq!(full, Err(NoBound::Overload));
    assert_eq!(all_preemptive(&[(5, 20), (10, 40), (40, 81)]), [5, 15, 80]);
}

/// The avionics task set that Audsley, Burns, Richardson, Tindell and Wellings analyse in "Applying
/// new scheduling theory to static priority pre-emptive scheduling", Software Engineering Journal
/// 8(5), 1993: computation times and periods of the generic avionics platform (Locke, Vogel and
/// Mesler, RTSS 1991), in milliseconds, without the run-time system's overheads. The response times
/// are worked out by hand from the paper's equation.
#[test]
fn audsley_burns_richardson_tindell_wellings_1993() {
    let tasks = [
        ("weapon release", (3, 200), 3),
        ("radar tracking filter", (2, 25), 5),
        ("radar warning contact", (5, 25), 10),
        ("data bus poll", (1, 40), 11),
        ("weapon aiming", (3, 50), 14),
        ("radar target update", (5, 50), 19),
        ("navigation update", (8, 59), 34),
        ("display graphic", (9, 80), 44),
        ("display hook update", (2, 80), 46),
        ("tracking target update", (5, 100), 74),
        ("weapon protocol", (1, 200), 75),
        ("navigation steering", (3, 200), 97),
        ("display stores update", (1, 200), 98),
        ("display keyset", (1, 200), 99),
        ("display status update", (3, 200), 138),
        ("BET E status update", (1, 1000), 139),
        ("navigation status", (1, 1000), 140),
    ];
    let sets: Vec<Task> = tasks.iter().map(|&(_, task, _)| task).collect();
    let expected: Vec<u64> = tasks.iter().map(|&(_, _, response)| response).collect();
    assert_eq!(all_preemptive(&sets), expected);
}

/// The same paper's equation with release jitter: an interfering task that may be late by J comes
/// again after T - J. The numbers were worked out by hand.
#[test]
fn jitter_of_audsley_burns_richardson_tindell_wellings_1993() {
    let own = ((4, 40), 0);
    let response = |jitter| {
        preemptive_with_jitter(&[((2, 10), jitter), own], 0)
            .expect("a bound")
            .response
    };
    // Since 4 + 2 <= 10 - J while J <= 4, one job interferes. With a larger J a second one comes in
    // time, and a third one from 2T - J < 8 on.
    assert_eq!(response(0), 6);
    assert_eq!(response(4), 6);
    assert_eq!(response(5), 8);
    assert_eq!(response(12), 8);
    assert_eq!(response(13), 10);
}

/// The example of Lehoczky, "Fixed priority scheduling of periodic task sets with arbitrary
/// deadlines", RTSS 1990. With the task (26, 70) above them, the jobs of (62, 100) respond in 114,
/// 102, 116, 104, 118, 106 and 94. The fifth is the worst, and the busy period lasts 694. Tindell,
/// Burns and Wellings 1994 repeat the example for their recurrence.
#[test]
fn lehoczky_1990() {
    let solution = preemptive(&[(26, 70), (62, 100)], 0).expect("a bound");
    let responses: Vec<u64> = solution
        .jobs
        .iter()
        .map(|job| job.finish - job.arrival)
        .collect();
    assert_eq!(responses, [114, 102, 116, 104, 118, 106, 94]);
    assert_eq!(solution.response, 118);
    assert_eq!(solution.busy_window, 694);
}

/// Tindell, Burns and Wellings, "An extendible approach for analyzing fixed priority hard real-time
/// tasks", Real-Time Systems 6(2), 1994. Their equations for arbitrary deadlines with release
/// jitter and blocking are w(q) = (q + 1)C + B + sum ceil((w + J) / T)C and r = max(w(q) - qT) from
/// the release, for q until w(q) <= (q + 1)T. The numbers come from the iteration by hand for B =
/// 3, with a task (2, 7) that is late by up to 4 and a task (5, 11) below it.
#[test]
fn tindell_burns_wellings_1994() {
    let solution = preemptive_with_jitter(&[((2, 7), 4), ((5, 11), 0)], 3).expect("a bound");
    // w(0) is 8, 12, 14, 14: ceil((14 + 4) / 7) = 3 releases. As 14 > 11, there is a second job.
    // w(1) is 13, 19, 21, 21 <= 22, so the busy window ends.
    let finishes: Vec<u64> = solution.jobs.iter().map(|job| job.finish).collect();
    assert_eq!(finishes, [14, 21]);
    assert_eq!(solution.response, 14);
}

/// The counterexample of Davis, Burns, Bril and Lukkien, "Controller Area Network (CAN)
/// schedulability analysis: Refuted, revisited and revised", Real-Time Systems 35, 2007. It has
/// three messages of 1 ms each with periods of 2.5, 3.5 and 3.5 ms and deadlines of 2.5, 3.25 and
/// 3.25 ms. The analysis of 1994 examines the first instance alone and gives 2, 3 and 3 ms. The
/// second instance of C takes 3.5 ms, which is more than its deadline.
#[test]
fn davis_burns_bril_lukkien_2007() {
    // A millisecond is 250 units: half of a bit at 125 kbit/s, of which the paper's message has
    // 125.
    let ms = |quarters: u64| quarters * 250 / 4;
    let messages = [(ms(4), ms(10)), (ms(4), ms(14)), (ms(4), ms(14))];
    assert_eq!(non_preemptive(&messages, 0).response, ms(8));
    assert_eq!(non_preemptive(&messages, 1).response, ms(12));
    let worst = non_preemptive(&messages, 2);
    let first = worst.jobs[0];
    assert_eq!(
        first.finish - first.arrival,
        ms(12),
        "all that the flawed analysis saw"
    );
    assert_eq!(worst.response, ms(14));
    assert_eq!(worst.busy_window, ms(28));
}

/// The example of Wang and Saksena, "Scheduling fixed-priority tasks with preemption threshold",
/// RTCSA 1999. Three tasks (20, 70), (20, 80) and (35, 200) have deadlines of 50, 80 and 100. They
/// miss a deadline preemptively (20, 40, 115) and non-preemptively (55, 75, 75). They keep all
/// deadlines with the thresholds 3, 3 and 2, which give 40, 75 and 95.
#[test]
fn wang_and_saksena_1999() {
    let tasks = [(20, 70), (20, 80), (35, 200)];
    assert_eq!(all_preemptive(&tasks), [20, 40, 115]);
    let responses = [0, 1, 2].map(|of| non_preemptive(&tasks, of).response);
    assert_eq!(responses, [55, 75, 75]);

    let [one, two, three] = tasks.map(|task| demand(task, 0));
    let with_thresholds =
        |own: &Demand, blocking, until_start: &[&Demand], throughout: &[&Demand]| {
            let problem = Problem {
                own,
                blocking,
                until_start,
                throughout,
            };
            solve(&problem).expect("a bound").response
        };
    // Task 2 has the threshold of task 1, so it blocks task 1. Task 3 has that of task 2.
    assert_eq!(with_thresholds(&one, 20, &[], &[]), 40);
    assert_eq!(with_thresholds(&two, 35, &[&one], &[]), 75);
    assert_eq!(with_thresholds(&three, 0, &[&two], &[&one]), 95);
}
