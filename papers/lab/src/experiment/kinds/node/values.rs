// SPDX-License-Identifier: GPL-3.0-or-later
//! The values that were counted in a run, by name.
//!
//! - what the node has counted in all windows: `steps`, `jobs`, `interrupts` and the others of
//!   [`SUMS`]
//! - `seconds`: the windows' length
//! - `late`: how much later the task got in a second, in percent of it; 100 if no job ended in the
//!   last window
//! - `windows.N.…`: the counts of window N, from 0 on
//! - `sent`, `lost`: frames that came to the card, and those that it had no room for
//! - `failed`: 1 if the node ended by a failure of its own
//! - `worst_lateness`: the largest lateness of a job in milliseconds, below 0 before its deadline
//! - `interrupt.taken`, `interrupt.instructions`, `interrupt.longest`: how often the packets'
//!   interrupt was taken, the instructions of its handler in all, and the most of one time; of
//!   variants with `profile` only, as all up to `turn`
//! - `exceptions.NAME.…`: the same of an exception, by the board's name for its vector
//! - `spans.ID.…`: the same of a span
//! - `masked`: the most instructions that one task or handler executed with interrupts masked
//! - `turn`: the most instructions that a task executed from one switch of tasks to the next
//! - `guaranteed`: 1 if `weir check` guarantees every deadline of the variant's system, else 0
//! - `bound`: its bound of the critical task's response in milliseconds, infinite if it has none
//! - `clients.ID.answered`: the share of a client's requests that were answered in time, in %,
//!   of those that it asked from the first window on and before the packets' end
//! - `clients.ID.worst`: the longest time that such an answer took, in milliseconds; 0 if there was
//!   none
//! - `clients.ID.p99`: the time that 99 % of these answers took at most, in milliseconds, where a
//!   request without an answer takes for ever
//! - `weir.…`: what ports/freertos counts, of a node with it: `weir.ticks`, `weir.buffers` and the
//!   other fields of the report, and those of its receivers as `weir.modbus0.frames`
//! - `tone.hz`, `tone.jitter`, `tone.pitch`, `tone.distortion`: what is heard of the node's tone
//!   ([`tone::Tone::values`])
//! - `clients.ID.last`: 1 if the last request of all had an answer in time
use serde_json::Value;
use weir_boards::Board;

use super::spec::{Ask, Node, NodeClient, NodeVariant};
use super::{BOARD, FIRST_WINDOW, nanoseconds, system, tone};
use crate::experiment::series::Values;
use crate::experiment::series::formula::number;

/// The counts that a window has, and that are summed over all windows.
const SUMS: [&str; 11] = [
    "interrupts",
    "frames",
    "broken",
    "no_buffer",
    "no_room",
    "served",
    "steps",
    "jobs",
    "late_jobs",
    "lateness_sum",
    "busy_interrupts",
];
const OTHERS: [&str; 6] = [
    "seconds",
    "late",
    "sent",
    "lost",
    "failed",
    "worst_lateness",
];
/// The exception number of interrupt line 0.
const FIRST_LINE: u16 = 16;
/// The values of a client.
const OF_CLIENT: [&str; 4] = ["answered", "worst", "last", "p99"];
/// The values of an interrupt or a span, each with the peer's name for it.
const COUNTED: [(&str, &str); 3] = [
    ("taken", "taken"),
    ("instructions", "instructions"),
    ("longest", "longest_instructions"),
];

/// Checks that a run has a value of this name.
pub(super) fn is_known(node: &Node, name: &str) -> Result<(), String> {
    let windows = node.windows;
    let of_window = name.strip_prefix("windows.").and_then(|rest| {
        let (window, what) = rest.split_once('.')?;
        let is_there = window.parse::<u32>().is_ok_and(|window| window < windows);
        Some(is_there && SUMS.contains(&what))
    });
    if of_window.unwrap_or_else(|| SUMS.contains(&name) || OTHERS.contains(&name)) {
        return Ok(());
    }
    let is_counted = |what: &str| COUNTED.iter().any(|(name, _)| *name == what);
    let parts: Vec<&str> = name.split('.').collect();
    let is_there = match parts[..] {
        ["masked" | "turn"] => true,
        ["tone", what] => node.tone.is_some() && tone::VALUES.contains(&what),
        ["interrupt", what] => is_counted(what),
        ["exceptions", vector, what] => vectors().any(|name| name == vector) && is_counted(what),
        ["spans", id, what] => node.spans.iter().any(|span| span.id == id) && is_counted(what),
        ["clients", id, what] => {
            node.clients.iter().any(|client| client.id == id) && OF_CLIENT.contains(&what)
        }
        // The port decides which values it reports, so any name is accepted.
        ["weir", ..] => node.variant.iter().any(NodeVariant::has_stages),
        [what] => system::VALUES.contains(&what),
        _ => false,
    };
    if is_there {
        return Ok(());
    }
    Err(format!(
        "a run has no value `{name}`; it has {}, {}, and these counts of each of its {windows} windows as windows.0.steps",
        OTHERS.join(", "),
        SUMS.join(", ")
    ))
}

/// The values of a run. `answer` is the JSON that the run printed, and `line` is the interrupt line
/// of the packets.
pub(super) fn values(answer: &Value, line: u16) -> Result<Values, String> {
    let node = &answer["node"];
    let windows = node["windows"].as_array().map_or(&[][..], Vec::as_slice);
    let clock_hz = count(node, "clock_hz")?;
    let mut values = Values::new();
    for name in SUMS {
        let mut sum = 0.0;
        for (index, window) in windows.iter().enumerate() {
            let one = count(window, name)?;
            values.insert(format!("windows.{index}.{name}"), number(one));
            sum += one;
        }
        values.insert(name.to_owned(), number(sum));
    }
    let mut ticks = 0.0;
    for window in windows {
        ticks += count(window, "ticks")?;
    }
    values.insert("seconds".to_owned(), number(ticks / clock_hz));
    values.insert("late".to_owned(), number(late(windows)?));
    let flood = &answer["peer"]["flood"];
    for name in ["sent", "lost"] {
        // Without a flood the peer reports no counts.
        values.insert(name.to_owned(), number(flood[name].as_f64().unwrap_or(0.0)));
    }
    let failed = f64::from(u8::from(node.get("failed").is_some()));
    values.insert("failed".to_owned(), number(failed));
    let mut worst = f64::NEG_INFINITY;
    for window in windows {
        worst = worst.max(count(window, "worst_lateness")?);
    }
    let worst = 1000.0 * worst / clock_hz;
    values.insert("worst_lateness".to_owned(), number(worst));
    values.extend(of_profile(&answer["peer"]["profile"], line)?);
    of_stages("weir", &node["weir"], &mut values);
    Ok(values)
}

/// The values of the clients' requests. Packets arrive until `until`, in nanoseconds. A request is
/// left out if the run ended before the client's patience did.
pub(super) fn of_clients(
    peer: &Value,
    clients: &[NodeClient],
    until: f64,
) -> Result<Values, String> {
    let end = count(peer, "last_ns")?;
    let begin = nanoseconds(FIRST_WINDOW)?;
    let mut values = Values::new();
    let mut reports = peer["clients"].as_array().into_iter().flatten();
    for client in clients {
        let (requests, took) = match client.ask {
            Ask::Ping => (&peer["pings"], "round_trip_ns"),
            _ => {
                let report = reports.next();
                let report = report.ok_or_else(|| format!("the peer has no `{}`", client.id))?;
                (&report["requests"], "latency_ns")
            }
        };
        let patience = 1e6 * f64::from(client.patience_ms);
        // The time of each request, and the time that its answer took.
        let mut answers = Vec::new();
        for request in requests.as_array().into_iter().flatten() {
            let asked = count(request, "asked_ns")?;
            if asked >= begin && asked + patience <= end {
                let took = request[took].as_f64();
                answers.push((asked, took.filter(|took| *took <= patience)));
            }
        }
        let is_last = answers.last().is_some_and(|(_, took)| took.is_some());
        answers.retain(|(asked, _)| *asked < until);
        let took = || answers.iter().filter_map(|(_, took)| *took);
        let worst = took().fold(0.0, f64::max);
        // The share is NaN if there were no requests.
        let share = 100.0 * counted(took().count()) / counted(answers.len());
        let last = f64::from(u8::from(is_last));
        let all = [share, worst / 1e6, last, percentile(&answers, 0.99) / 1e6];
        for (name, value) in OF_CLIENT.into_iter().zip(all) {
            values.insert(format!("clients.{}.{name}", client.id), number(value));
        }
    }
    Ok(values)
}

/// The time within which the given share of the requests was answered.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a place among them"
)]
fn percentile(answers: &[(f64, Option<f64>)], share: f64) -> f64 {
    let mut took: Vec<f64> = answers
        .iter()
        .map(|(_, took)| took.unwrap_or(f64::INFINITY))
        .collect();
    took.sort_by(f64::total_cmp);
    let place = (share * counted(took.len())).ceil() as usize;
    took.get(place.max(1) - 1).copied().unwrap_or(f64::NAN)
}

#[expect(clippy::cast_precision_loss, reason = "some hundreds of requests")]
fn counted(requests: usize) -> f64 {
    requests as f64
}

/// Adds the numbers in a JSON object and in its nested objects under their paths.
fn of_stages(path: &str, counts: &Value, values: &mut Values) {
    for (name, count) in counts.as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        match count.as_f64() {
            Some(count) => {
                values.insert(path, number(count));
            }
            None => of_stages(&path, count, values),
        }
    }
}

/// The names of the board's vectors in ascending order. The first vector has the number 1.
fn vectors() -> impl Iterator<Item = &'static String> {
    Board::named(BOARD)
        .into_iter()
        .flat_map(|board| &board.vectors)
}

/// The values of a run's profile. The result is empty if the run has no profile. `line` is the
/// interrupt line of the packets.
fn of_profile(profile: &Value, line: u16) -> Result<Values, String> {
    let Some(exceptions) = profile["exceptions"].as_array() else {
        return Ok(Values::new());
    };
    let masked = count(profile, "longest_masked_instructions")?;
    let turn = count(profile, "longest_turn_instructions")?;
    let mut values = Values::from([
        ("masked".to_owned(), number(masked)),
        ("turn".to_owned(), number(turn)),
    ]);
    let mut add = |prefix: &str, counts: Option<&Value>| {
        for (name, counted) in COUNTED {
            // An exception that was never taken has no counts.
            let value = counts.map_or(Ok(0.0), |counts| count(counts, counted))?;
            values.insert(format!("{prefix}.{name}"), number(value));
        }
        Ok::<(), String>(())
    };
    for (vector, exception) in vectors().zip(1_u16..) {
        let counts = exceptions.iter().find(|one| one["number"] == exception);
        add(&format!("exceptions.{vector}"), counts)?;
        if exception == FIRST_LINE + line {
            add("interrupt", counts)?;
        }
    }
    for (id, counts) in profile["spans"].as_object().into_iter().flatten() {
        add(&format!("spans.{id}"), Some(counts))?;
    }
    Ok(values)
}

fn count(of: &Value, name: &str) -> Result<f64, String> {
    of[name]
        .as_f64()
        .ok_or_else(|| format!("the node prints no number `{name}`"))
}

/// How fast the critical task's lateness grows, in percent: the growth from the end of the first
/// window to the end of the last one, divided by the time between the last jobs that ended in the
/// two windows.
fn late(windows: &[Value]) -> Result<f64, String> {
    let (Some(first), Some(last)) = (windows.first(), windows.last()) else {
        return Ok(0.0);
    };
    if count(last, "jobs")? == 0.0 {
        return Ok(100.0);
    }
    // Count an early job as in time: ending earlier does not reduce the lateness.
    let lateness = |of| count(of, "lateness").map(|ticks| ticks.max(0.0));
    let between = ended_at(last)? - ended_at(first)?;
    if between <= 0.0 {
        return Ok(0.0);
    }
    Ok(100.0 * (lateness(last)? - lateness(first)?) / between)
}

/// The end of the last ended job, in ticks from the beginning of the first window. The node's
/// 32-bit number wraps below 0 if no job has ended since that beginning.
fn ended_at(window: &Value) -> Result<f64, String> {
    let ticks = count(window, "ended_at")?;
    let range = 2f64.powi(32);
    Ok(if ticks < range / 2.0 {
        ticks
    } else {
        ticks - range
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn window(jobs: u32, lateness: i32, ended_at: u32) -> Value {
        let mut window = json!({"ticks": 1000, "jobs": jobs, "lateness": lateness, "ended_at": ended_at, "worst_lateness": lateness});
        for name in SUMS {
            if window.get(name).is_none() {
                window[name] = json!(7);
            }
        }
        window
    }

    /// An experiment with two windows, a span and the given clients.
    fn node(clients: &str) -> Node {
        let text = format!(
            r#"windows = 2
            seeds = [1]
            x = {{ title = "x", values = [1] }}
            client = [{clients}]
            span = [{{ id = "turn", begin = "turn", end = "turn" }}]
            series = []
            variant = []"#
        );
        toml::from_str(&text).unwrap()
    }

    fn of(windows: &[Value]) -> Values {
        let answer = json!({"node": {"clock_hz": 1000, "windows": windows}, "peer": {"flood": {"sent": 9, "lost": 2}}});
        values(&answer, 13).unwrap()
    }

    #[test]
    fn lateness_is_a_slope_of_what_is_late() {
        let late = |windows: &[Value]| of(windows)["late"].as_number().unwrap();
        let grows = [
            window(4, 100, 900),
            window(3, 500, 1900),
            window(2, 700, 2900),
        ];
        assert!((late(&grows) - 30.0).abs() < 1e-9);
        assert!(late(&[window(5, -300, 900), window(5, -100, 1900)]).abs() < 1e-9);
        // No job ended in the first window. The last one ended 500 ticks before it.
        let starves = [window(0, 100, u32::MAX - 499), window(1, 1100, 1500)];
        assert!((late(&starves) - 50.0).abs() < 1e-9);
        assert!((late(&[window(5, 1, 900), window(0, 1, 900)]) - 100.0).abs() < 1e-9);
    }

    #[test]
    fn counts_are_added_and_those_of_windows_kept() {
        let values = of(&[window(4, 0, 900), window(3, 0, 1900)]);
        let value = |name: &str| values[name].as_number().unwrap();
        assert_eq!(
            (value("jobs"), value("steps"), value("windows.1.jobs")),
            (7.0, 14.0, 3.0)
        );
        assert_eq!(
            (
                value("seconds"),
                value("sent"),
                value("lost"),
                value("failed")
            ),
            (2.0, 9.0, 2.0, 0.0)
        );
        for name in values.keys() {
            is_known(&node(""), name).unwrap();
        }
        for name in ["windows.2.steps", "windows.0.ticks", "stesp"] {
            assert!(is_known(&node(""), name).unwrap_err().contains(name));
        }
    }

    #[test]
    fn only_a_profile_has_counts_of_instructions() {
        let profile = json!({"exceptions": [
            {"number": 15, "taken": 9, "instructions": 99, "longest_instructions": 12},
            {"number": 29, "taken": 2, "instructions": 70, "longest_instructions": 36},
        ], "longest_masked_instructions": 40, "longest_turn_instructions": 70,
        "spans": {"turn": {"taken": 3, "instructions": 9, "longest_instructions": 5}}});
        let counts = |profile, line| of_profile(&profile, line).unwrap();
        let card = counts(profile.clone(), 13);
        let value = |name: &str| card[name].as_number().unwrap();
        assert_eq!(
            (value("interrupt.taken"), value("interrupt.instructions")),
            (2.0, 70.0)
        );
        assert_eq!(
            (
                value("exceptions.SYSTICK.longest"),
                value("exceptions.IRQ8.taken")
            ),
            (12.0, 0.0)
        );
        assert_eq!((value("spans.turn.longest"), value("masked")), (5.0, 40.0));
        assert_eq!(value("turn"), 70.0);
        for name in card.keys() {
            is_known(&node(""), name).unwrap();
        }
        assert_eq!(counts(profile, 14)["interrupt.taken"], number(0.0));
        assert!(counts(Value::Null, 13).is_empty());
        for name in [
            "interrupt.longst",
            "exceptions.IRQ99.taken",
            "spans.turns.taken",
        ] {
            assert!(is_known(&node(""), name).is_err());
        }
    }

    #[test]
    fn requests_count_of_the_windows_that_could_be_answered() {
        let asked = node(
            r#"{ id = "echo", ask = "ping", pattern = "1Hz", patience_ms = 1 },
            { id = "page", ask = { udp = 8 }, pattern = "1Hz", patience_ms = 1 }"#,
        );
        let clients = &asked.clients;
        let peer = json!({
            "last_ns": 1_005_000_000,
            "pings": [
                {"asked_ns": 999_999_999, "round_trip_ns": null},
                {"asked_ns": 1_000_000_000, "round_trip_ns": 400_000},
                {"asked_ns": 1_001_000_000, "round_trip_ns": 1_500_000},
                {"asked_ns": 1_003_000_000, "round_trip_ns": 300_000},
                {"asked_ns": 1_004_500_000, "round_trip_ns": null},
            ],
            "clients": [{"requests": [
                {"asked_ns": 1_000_000_000, "latency_ns": 250_000, "failure": null},
                {"asked_ns": 1_001_000_000, "latency_ns": null, "failure": "late"},
            ]}],
        });
        let values = of_clients(&peer, clients, 1.002e9).unwrap();
        let value = |name: &str| values[&format!("clients.{name}")].as_number().unwrap();
        let of = |id: &str| OF_CLIENT.map(|what| value(&format!("{id}.{what}")));
        assert_eq!(of("echo"), [50.0, 0.4, 1.0, f64::INFINITY]);
        assert_eq!(of("page"), [50.0, 0.25, 0.0, f64::INFINITY]);
        for name in values.keys() {
            is_known(&asked, name).unwrap();
            assert!(is_known(&node(""), name).is_err());
        }
        assert!(
            of_clients(&json!({"last_ns": 1}), clients, 1.002e9)
                .unwrap_err()
                .contains("page")
        );
    }

    #[test]
    fn what_is_missing_is_named() {
        let without = json!({"node": {"clock_hz": 1000, "windows": [{"ticks": 1}]}});
        assert!(values(&without, 13).unwrap_err().contains("interrupts"));
    }
}
