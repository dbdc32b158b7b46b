// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts the description in a certificate back to a system, so that the analysis can judge the
//! claims of a changed certificate.

use serde_json::Value;
use weir_model::{
    Cpu, EventCosts, Expiry, Flow, FrameBudget, Freertos, Interval, Level, Limit, Linux,
    Moderation, Nesting, Place, Policy, Rate, Rates, Receiver, Selector, SiliconLimit, Source,
    System, TaskModel, Timer, Timing,
};

use crate::systems::{CLOCK, cost, level, with_budgets};

fn number(of: &Value, key: &str) -> u64 {
    of[key].as_u64().unwrap_or_else(|| panic!("{key} of {of}"))
}

fn small(of: &Value, key: &str) -> u32 {
    number(of, key).try_into().unwrap()
}

fn index(of: &Value, key: &str) -> usize {
    number(of, key).try_into().unwrap()
}

/// Returns a rate whose interval, rounded down, is this number of cycles.
fn interarrival(of: &Value) -> Option<Rate> {
    let cycles = of["interarrival"].as_u64()?;
    Some(Rate::from_hertz(CLOCK as f64 / (cycles as f64 + 0.5)).unwrap())
}

fn interrupt(of: &Value) -> Level {
    level(small(of, "group"), small(of, "order"))
}

fn list<T>(of: &Value, key: &str, each: impl Fn(&Value) -> T) -> Vec<T> {
    of[key].as_array().unwrap().iter().map(each).collect()
}

/// Returns the system that `of` describes. `of` is the key `system` of a valid certificate.
pub fn system(of: &Value) -> System {
    let cpu = &of["cpu"];
    System {
        name: String::new(),
        sha256: String::new(),
        cpu: Cpu {
            board: None,
            flavour: None,
            clock_hz: CLOCK,
            nesting: match cpu["nesting"].as_str().unwrap() {
                "flat" => Nesting::Flat,
                _ => Nesting::Grouped,
            },
            longest_instruction: number(cpu, "longest_instruction"),
            critical_section: cost(number(cpu, "critical_section")),
            context_switch: cost(number(cpu, "context_switch")),
            tasks: match cpu["tasks"].as_str().unwrap() {
                "preemptive" => TaskModel::Preemptive,
                _ => TaskModel::Cooperative,
            },
            time_slice: cpu["time_slice"].as_u64(),
            unlimited: EventCosts::default(),
            costs_from: String::new(),
        },
        silicon: None,
        sources: list(of, "sources", source),
        timers: list(of, "timers", |timer| Timer {
            name: String::new(),
            channel: String::new(),
            level: interrupt(&timer["level"]),
            period: Interval::of_cycles(number(timer, "period")),
            base: number(timer, "base"),
        }),
        receivers: list(of, "receivers", |receiver| Receiver {
            name: String::new(),
            urgency: number(receiver, "urgency").try_into().unwrap(),
            period: receiver["period"].as_u64(),
            jitter: number(receiver, "jitter"),
            deadline: receiver["deadline"].as_u64(),
            wcet: cost(number(receiver, "wcet")),
            blocking: cost(number(receiver, "blocking")),
            critical_section: cost(number(receiver, "critical_section")),
            backlog: None,
            port: None,
        }),
        flows: list(of, "flows", |flow| Flow {
            name: String::new(),
            source: index(flow, "source"),
            receiver: index(flow, "receiver"),
            selector: Selector {
                // Only packets with a port have a budget, or use their receiver's buffers.
                port: (!flow["budget"].is_null() || flow["buffers"] == "of_receiver").then_some(7),
                ..Selector::default()
            },
            rate: interarrival(flow),
            top_half: cost(number(flow, "top_half")),
            demux: cost(number(flow, "demux")),
            bottom_half: cost(number(flow, "bottom_half")),
            queue: flow["queue"].as_u64(),
            deadline: flow["deadline"].as_u64(),
        }),
        linux: Linux::default(),
        freertos: freertos(of),
    }
}

/// Returns the FreeRTOS settings if packets use its buffers or have a budget. In a valid
/// certificate each receiver has one budget, and all budgets have the same ticks.
fn freertos(of: &Value) -> Option<Freertos> {
    let (mut tick, mut has_buffers) = (None, false);
    let mut budgets: Vec<FrameBudget> = Vec::new();
    for flow in of["flows"].as_array().unwrap() {
        let budget = &flow["budget"];
        has_buffers |= !flow["buffers"].is_null();
        if !budget.is_null() {
            tick = Some(number(budget, "tick"));
            budgets.push(FrameBudget {
                receiver: index(flow, "receiver"),
                per_tick: small(budget, "frames"),
            });
        }
    }
    // Without a budget the value of the tick does not matter.
    let tick = tick.or_else(|| has_buffers.then_some(1));
    Some(with_budgets(tick?, budgets))
}

fn source(source: &Value) -> Source {
    let moderation = &source["moderation"];
    Source {
        name: String::new(),
        level: interrupt(&source["level"]),
        handler: cost(number(source, "handler")),
        work: cost(number(source, "work")),
        max_work: source["max_work"].as_u64(),
        packet_units: source["packet_units"].as_u64().unwrap_or(1),
        rates: Rates {
            expected: None,
            tolerated: None,
            worst: interarrival(source),
            worst_name: None,
        },
        limit: limit(&source["limit"]),
        deadline: source["deadline"].as_u64(),
        moderation: (!moderation.is_null()).then(|| Moderation {
            absolute: number(moderation, "absolute"),
            packet: moderation["packet"].as_u64(),
            count: moderation["count"].as_u64(),
            tick: moderation["tick"].as_u64(),
        }),
        queue: source["queue"].as_u64(),
    }
}

/// Returns the interval and the lag of a limit. If a change made the interval a fractional number
/// of ticks, it is returned in cycles, and the lag is adjusted accordingly.
fn interval(limit: &Value) -> (Interval, u32) {
    let (cycles, tick, lag) = (
        number(limit, "interval"),
        number(limit, "tick"),
        small(limit, "lag"),
    );
    if tick > 0 && cycles % tick == 0 {
        let ticks = cycles / tick;
        return (Interval { ticks, tick }, lag);
    }
    let apart = tick.saturating_mul(u64::from(lag) + 1);
    let lag = u32::try_from(apart.saturating_sub(1)).unwrap_or(u32::MAX);
    (Interval::of_cycles(cycles), lag)
}

fn limit(limit: &Value) -> Limit {
    let (costs, expiry) = (&limit["costs"], &limit["expiry"]);
    let (interval, lag) = interval(limit);
    Limit {
        policy: match limit["policy"].as_str().unwrap() {
            "off" => Policy::Off,
            "strict" => Policy::Strict,
            "paced" => Policy::Paced,
            "bursty" => Policy::Bursty,
            "bucket" => Policy::Bucket,
            _ => Policy::Poll,
        },
        timing: match limit["timing"].as_str().unwrap() {
            "eager" => Timing::Eager,
            "lazy" => Timing::Lazy,
            _ => Timing::OneShot,
        },
        place: match limit["place"].as_str().unwrap() {
            "software" => Place::Software,
            _ => Place::Hardware,
        },
        interval,
        bits: 64,
        burst: small(limit, "burst"),
        lag,
        expiry: if expiry.is_null() {
            None
        } else if let Some(timer) = expiry["shared"].as_u64() {
            Some(Expiry::Shared(timer.try_into().unwrap()))
        } else {
            Some(Expiry::Own {
                channel: String::new(),
                level: interrupt(&expiry["own"]),
            })
        },
        // A certificate contains nothing else about an ideal limiter.
        silicon: Some(SiliconLimit {
            asked: 1,
            rate: 1,
            delay: number(limit, "delay"),
            is_level: false,
        }),
        costs: EventCosts {
            request_served: number(costs, "request_served"),
            request_refused: number(costs, "request_refused"),
            expiry_served: number(costs, "expiry_served"),
            expiry_empty: number(costs, "expiry_empty"),
        },
    }
}
