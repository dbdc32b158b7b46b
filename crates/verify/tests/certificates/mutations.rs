// SPDX-License-Identifier: MIT OR Apache-2.0
//! A certificate is rejected if a change makes it claim too much, whatever was changed.
//!
//! The analysis is the judge. Its bounds are the least ones, so no accepted claim may be below
//! them.
use crate::{described, systems};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::Value;
use weir_model::{Policy, System, Timing};
use weir_verify::{BadInput, Report, verify};

fn certificate(system: &System) -> Value {
    let analysis = weir_analysis::analyse(system);
    serde_json::to_value(weir_analysis::certificate(system, &analysis)).unwrap()
}

fn verified(certificate: &Value) -> Result<Report, BadInput> {
    verify(certificate.to_string().as_bytes())
}

fn is_accepted(certificate: &Value) -> bool {
    verified(certificate).is_ok_and(|report| report.is_valid())
}

/// Returns the paths to all values below `of` for which `wanted` holds.
fn places(of: &Value, wanted: &dyn Fn(&Value) -> bool) -> Vec<String> {
    fn walk(of: &Value, path: &str, wanted: &dyn Fn(&Value) -> bool, found: &mut Vec<String>) {
        if wanted(of) {
            found.push(path.to_owned());
        }
        match of {
            Value::Array(items) => (0..).zip(items).for_each(|(index, item): (usize, _)| {
                walk(item, &format!("{path}/{index}"), wanted, found);
            }),
            Value::Object(items) => items
                .iter()
                .for_each(|(key, item)| walk(item, &format!("{path}/{key}"), wanted, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    walk(of, "", wanted, &mut found);
    found
}

/// Returns whether the certificate is accepted and claims no less than the analysis finds. Panics
/// if it is accepted and claims less.
fn is_no_fraud(changed: &Value) -> bool {
    if !is_accepted(changed) {
        return false;
    }
    let honest = certificate(&described::system(&changed["system"]));
    let row_of = |unit: &Value| {
        let rows = changed["rows"].as_array().unwrap();
        let mut found = rows.iter().filter(|row| row["unit"] == *unit);
        let row = found.next().unwrap_or_else(|| panic!("no row of {unit}"));
        assert!(found.next().is_none(), "two rows of {unit}");
        row
    };
    for row in honest["rows"].as_array().unwrap() {
        let claimed = &row_of(&row["unit"])["outcome"]["bound"];
        for key in ["response", "start_delay"] {
            not_less(&claimed[key], &row["outcome"]["bound"][key], &row["unit"]);
        }
    }
    let flows = honest["flows"].as_array().unwrap();
    for (claimed, flow) in changed["flows"].as_array().unwrap().iter().zip(flows) {
        for key in ["latency", "queue_needed"] {
            not_less(&claimed[key], &flow[key], flow);
        }
    }
    if changed["verdict"] == "guaranteed" {
        assert_eq!(honest["verdict"], "guaranteed");
    }
    true
}

/// Asserts that the claimed bound is not below the least one. A missing bound counts as infinite.
fn not_less(claimed: &Value, least: &Value, place: &Value) {
    if let Some(claimed) = claimed.as_u64() {
        assert!(
            least.as_u64().is_some_and(|least| claimed >= least),
            "{place}: {claimed} is accepted and {least} is the least"
        );
    }
}

fn smaller(number: u64, by: u8) -> u64 {
    match by % 3 {
        0 => number - 1,
        1 => number / 2,
        _ => 0,
    }
}

proptest! {
    #![proptest_config(crate::cases(30, 150))]

    /// Each number of a valid certificate (a window, a start, an end, a response, a delay, a
    /// latency, a queue) is the least that can be claimed. A smaller number is rejected.
    #[test]
    fn no_claimed_number_can_be_smaller(system in systems::system(3), by: u8) {
        let valid = certificate(&system);
        for part in ["latencies", "rows", "flows"] {
            for place in places(&valid[part], &|value| value.as_u64().is_some_and(|number| number > 0)) {
                let mut changed = valid.clone();
                let number = changed[part].pointer_mut(&place).unwrap();
                *number = smaller(number.as_u64().unwrap(), by).into();
                // The index of a starving unit is a number, too, and another unit may also starve.
                let excused = place.contains("/starved/") && is_no_fraud(&changed);
                prop_assert!(excused || !is_accepted(&changed), "{part}{place} of {valid}");
            }
        }
    }

    #[test]
    fn nothing_can_be_left_out_or_said_twice(system in systems::system(3)) {
        let valid = certificate(&system);
        for place in places(&valid, &|value| value.as_array().is_some_and(|list| !list.is_empty())) {
            // Without one of its sources or tasks the certificate describes another system. The
            // next test covers that.
            if place.starts_with("/system") {
                continue;
            }
            let length = valid.pointer(&place).unwrap().as_array().unwrap().len();
            for index in 0..length {
                let mut less = valid.clone();
                less.pointer_mut(&place).unwrap().as_array_mut().unwrap().remove(index);
                prop_assert!(!is_accepted(&less), "{place}/{index} can be left out of {valid}");
                let mut more = valid.clone();
                let list = more.pointer_mut(&place).unwrap().as_array_mut().unwrap();
                list.insert(index, list[index].clone());
                prop_assert!(!is_accepted(&more), "{place}/{index} can stand twice in {valid}");
            }
        }
    }

    #[test]
    fn a_bound_cannot_be_claimed_where_there_is_none(system in systems::system(3), from: Index) {
        let valid = certificate(&system);
        let rows = valid["rows"].as_array().unwrap();
        let bounds: Vec<&Value> = rows.iter().filter(|row| !row["outcome"]["bound"].is_null()).collect();
        for (index, row) in rows.iter().enumerate() {
            if row["outcome"]["bound"].is_null() && !bounds.is_empty() {
                let mut changed = valid.clone();
                changed["rows"][index]["outcome"] = from.get(&bounds)["outcome"].clone();
                prop_assert!(!is_accepted(&changed), "row {index} of {valid}");
            }
        }
    }

    #[test]
    fn what_has_a_bound_is_neither_starved_nor_overloaded(system in systems::system(3)) {
        let valid = certificate(&system);
        for (index, row) in valid["rows"].as_array().unwrap().iter().enumerate() {
            if row["outcome"]["bound"].is_null() {
                continue;
            }
            let mut changed = valid.clone();
            changed["rows"][index]["outcome"] = "overload".into();
            prop_assert!(!is_accepted(&changed));
            for unit in places(&valid["rows"], &|value| value["unit"].is_array()) {
                let unit = valid["rows"].pointer(&unit).unwrap()["unit"].clone();
                changed["rows"][index]["outcome"] = serde_json::json!({ "starved": unit });
                prop_assert!(!is_accepted(&changed));
            }
        }
    }

    #[test]
    fn the_verdict_is_that_of_the_rows(system in systems::system(3)) {
        let valid = certificate(&system);
        for verdict in ["guaranteed", "not_guaranteed", "not_proven"] {
            let mut changed = valid.clone();
            changed["verdict"] = verdict.into();
            prop_assert_eq!(is_accepted(&changed), valid["verdict"] == verdict);
        }
    }
}

/// A change anywhere in a certificate, including the description of the system: a number, a word,
/// or an item more or less.
#[derive(Debug, Clone)]
struct Change {
    place: Index,
    kind: u8,
    number: u64,
}

fn change() -> impl Strategy<Value = Change> {
    let number = prop_oneof![0..40_u64, 0..2000_u64];
    (any::<Index>(), 0..8_u8, number).prop_map(|(place, kind, number)| Change {
        place,
        kind,
        number,
    })
}

const WORDS: [&str; 14] = [
    "off",
    "strict",
    "paced",
    "bursty",
    "bucket",
    "poll",
    "eager",
    "lazy",
    "one_shot",
    "hardware",
    "flat",
    "grouped",
    "preemptive",
    "cooperative",
];

impl Change {
    fn apply(&self, certificate: &mut Value) {
        let wanted: &dyn Fn(&Value) -> bool = match self.kind {
            0..=4 => &Value::is_u64,
            5 => &|value| value.as_str().is_some_and(|word| WORDS.contains(&word)),
            6 => &Value::is_array,
            _ => &Value::is_null,
        };
        let all = places(certificate, wanted);
        if all.is_empty() {
            return;
        }
        let value = certificate
            .pointer_mut(self.place.get::<String>(&all))
            .unwrap();
        match (self.kind, value) {
            (0, value) => *value = value.as_u64().unwrap().saturating_sub(1).into(),
            (1, value) => *value = (value.as_u64().unwrap() + 1).into(),
            (2, value) => *value = (value.as_u64().unwrap() / 2).into(),
            (5, value) => {
                let word = usize::try_from(self.number).unwrap() % WORDS.len();
                *value = WORDS[word].into();
            }
            (6, Value::Array(list)) if !list.is_empty() => {
                let index = usize::try_from(self.number).unwrap() % list.len();
                let item = list.remove(index);
                if self.number % 2 == 0 {
                    list.insert(0, item);
                }
            }
            (_, value) => *value = self.number.into(),
        }
    }
}

proptest! {
    #![proptest_config(crate::cases(500, 3000))]

    #[test]
    fn no_change_anywhere_makes_a_fraud(system in systems::system(3), changes in prop::collection::vec(change(), 1..5)) {
        let mut changed = certificate(&system);
        for change in &changes {
            change.apply(&mut changed);
        }
        is_no_fraud(&changed);
    }

    /// A certificate is rejected if its claims are those of an easier system.
    #[test]
    fn the_claims_of_an_easier_system_do_not_pass(system in systems::system(3), way in 0..20_u8, at: Index, amount in 1..30_u64) {
        let mut easier = system.clone();
        ease(&mut easier, way, at, amount);
        let mut changed = certificate(&easier);
        changed["system"] = certificate(&system)["system"].clone();
        is_no_fraud(&changed);
    }
}

/// Makes `system` easier in one place, in the way that `way` selects.
fn ease(system: &mut System, way: u8, at: Index, amount: u64) {
    let less = |number: &mut u64| *number = number.saturating_sub(amount);
    match way {
        0 => less(&mut system.cpu.critical_section.cycles),
        1 => less(&mut system.cpu.longest_instruction),
        2 => less(&mut system.cpu.context_switch.cycles),
        19 => {
            for budget in system.freertos.iter_mut().flat_map(|of| &mut of.budgets) {
                budget.per_tick = 1;
            }
        }
        18 => system.cpu.time_slice = system.cpu.time_slice.map(|slice| slice + amount),
        3..=5 if !system.receivers.is_empty() => {
            let receiver = at.index(system.receivers.len());
            let receiver = &mut system.receivers[receiver];
            less(match way {
                3 => &mut receiver.wcet.cycles,
                4 => &mut receiver.blocking.cycles,
                _ => &mut receiver.jitter,
            });
            receiver.period = receiver.period.map(|period| period + amount);
        }
        _ if !system.sources.is_empty() => {
            let source = at.index(system.sources.len());
            let source = &mut system.sources[source];
            let limit = &mut source.limit;
            match way {
                6 => less(&mut source.handler.cycles),
                7 => less(&mut limit.costs.request_served),
                8 => less(&mut limit.costs.request_refused),
                9 => less(&mut limit.costs.expiry_served),
                10 => less(&mut limit.costs.expiry_empty),
                11 => limit.burst = 1,
                12 => {
                    let cycles = limit.interval.cycles();
                    less(&mut limit.interval.tick);
                    limit.interval.tick = limit.interval.tick.max(1);
                    limit.interval.ticks = cycles.div_ceil(limit.interval.tick);
                }
                13 => source.max_work = Some(1),
                14 if limit.policy == Policy::Bursty => limit.timing = Timing::OneShot,
                15 if limit.policy != Policy::Off => limit.policy = Policy::Strict,
                16 => source.rates.worst = Some(systems::rate(100 * amount)),
                _ if limit.policy != Policy::Off => limit.interval.ticks += amount,
                _ => {}
            }
        }
        _ => {}
    }
}
