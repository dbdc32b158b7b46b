// SPDX-License-Identifier: MIT OR Apache-2.0
//! Explains why there are no limits that satisfy all demands.
use miette::{Report, miette};
use weir_analysis::tune::{Conflict, Demand, Idleness, OTHER_FLAVOUR, Remedy, Session};
use weir_model::{Policy, Rate};
use weir_report::{percent, rate, time};

/// The number of digits with which different quantities of a file look different.
const DIGITS: u8 = 4;

/// A demand of the system file, as text.
#[derive(Debug)]
pub(super) struct DemandText {
    /// Kind of the demand: `deadline` or `rate`.
    pub kind: &'static str,
    /// Name of the task or source.
    pub name: String,
    /// Value with its unit: `2 ms`, `11.5 kHz`.
    pub value: String,
}

/// Returns the demands of a conflict with their names.
pub(super) fn demands(session: &Session, conflict: &Conflict) -> Vec<DemandText> {
    let system = session.system();
    let clock = system.cpu.clock_hz as f64;
    let task = session.task();
    let deadline = |name: &str, cycles: Option<u64>| DemandText {
        kind: "deadline",
        name: name.to_owned(),
        value: time(cycles.unwrap_or(0) as f64 / clock, DIGITS),
    };
    conflict
        .demands
        .iter()
        .filter_map(|demand| match *demand {
            Demand::TaskDeadline(index) => system
                .receivers
                .get(index)
                .map(|of| deadline(&of.name, of.deadline)),
            Demand::HandlerDeadline(index) => system
                .sources
                .get(index)
                .map(|of| deadline(&of.name, of.deadline)),
            Demand::FlowDeadline(index) => system
                .flows
                .get(index)
                .map(|of| deadline(&of.name, of.deadline)),
            Demand::Rate(index) => {
                let source = system.sources.get(index)?;
                let tuned = task.tuned.iter().find(|of| of.source == index)?;
                Some(DemandText {
                    kind: "rate",
                    name: source.name.clone(),
                    value: rate(tuned.band.asked(1), DIGITS),
                })
            }
        })
        .collect()
}

/// Says which demands cannot be satisfied together, why, and what would help. The result has a
/// sentence for each.
pub(super) fn tell(session: &Session, conflict: &Conflict) -> Vec<String> {
    let demands = demands(session, conflict);
    let of_kind = |kind: &str| -> Vec<String> {
        demands
            .iter()
            .filter(|demand| demand.kind == kind)
            .map(|demand| format!("{} ({})", demand.name, demand.value))
            .collect()
    };
    let (deadlines, rates) = (of_kind("deadline"), of_kind("rate"));
    let noun = |of: &[String], word: &str| match of.len() {
        1 => format!("the {word} of {}", and(of)),
        _ => format!("the {word}s of {}", and(of)),
    };
    let what = match (deadlines.is_empty(), rates.is_empty()) {
        (true, true) => "the rest of the system leaves no room, whatever the limits are".to_owned(),
        (false, true) => format!(
            "{} cannot hold, even if no tuned source interrupts",
            noun(&deadlines, "deadline")
        ),
        (true, false) => format!("{} cannot be had", noun(&rates, "expected rate")),
        (false, false) => format!(
            "{} cannot hold together with {}",
            noun(&deadlines, "deadline"),
            noun(&rates, "expected rate")
        ),
    };
    let mut told = vec![format!("no limits do: {what}")];
    let is_flow = |demand: &Demand| matches!(demand, Demand::FlowDeadline(_));
    if conflict.demands.iter().any(is_flow) {
        told.push(
            "why: a packet waits for the limit of its source, and for what is more urgent; a limit that lets more \
             through shortens the one wait and lengthens the other"
                .to_owned(),
        );
    } else if conflict.for_want_of_timers && !rates.is_empty() {
        told.push(format!(
            "why: limiters that cost nothing could do it; those at hand cannot, with at most {} over-admission{}",
            percent(session.task().options.over_admission),
            pins(session)
        ));
    } else if !rates.is_empty() {
        told.push("why: even limiters that cost nothing could not do it".to_owned());
    }
    told.extend(brought(session, conflict).map(|note| format!("note: {note}")));
    told.extend(not_reached(session).map(|note| format!("note: {note}")));
    told.push(help(session, conflict));
    told.extend(not_tried(session).map(|note| format!("note: {note}")));
    told
}

/// Names the rates that are demanded because flows bring packets, and not because the file states
/// them.
fn brought(session: &Session, conflict: &Conflict) -> Option<String> {
    let system = session.system();
    let task = session.task();
    let tuned = task.tuned.iter().filter(|of| {
        let source = system.sources.get(of.source);
        let expected = source.and_then(|source| source.rates.expected);
        conflict.demands.contains(&Demand::Rate(of.source))
            && of.band.asked(1) > expected.map_or(0.0, Rate::hertz)
    });
    let of_flows = tuned.filter_map(|of| {
        let hertz = system.promised_hertz(of.source);
        let source = system.sources.get(of.source)?;
        (hertz > 0.0).then(|| {
            format!(
                "flows with deadlines bring {} of packets to {}, which takes {} at once",
                rate(hertz, DIGITS),
                source.name,
                source.packets_taken()
            )
        })
    });
    let all: Vec<String> = of_flows.collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// Says which of the tried remedies would help.
fn help(session: &Session, conflict: &Conflict) -> String {
    let remedies: Vec<String> = conflict
        .remedies
        .iter()
        .filter_map(|&of| remedy(session, of))
        .collect();
    match &remedies[..] {
        [] => "help: no single change of a deadline, an expected rate, a handler, a task or an option is \
               enough: shorten what runs, expect less, and allow longer deadlines"
            .to_owned(),
        [one] => format!("help: it is enough to {one}"),
        many => format!("help: each of these is enough: {}", many.join("; ")),
    }
}

/// Formats a remedy as an instruction. `None` if the remedy is not one for this system.
fn remedy(session: &Session, remedy: Remedy) -> Option<String> {
    let system = session.system();
    let clock = system.cpu.clock_hz as f64;
    let in_time = |cycles: u64| time(cycles as f64 / clock, DIGITS);
    let source = |index: usize| Some(&system.sources.get(index)?.name);
    Some(match remedy {
        Remedy::AnyTimerRate => "leave out --timer-rate".to_owned(),
        Remedy::LongestDelay(cycles) => {
            format!("allow --longest-delay {}", pasted(&in_time(cycles)))
        }
        Remedy::Deadline(Demand::TaskDeadline(index), cycles) => {
            let name = &system.receivers.get(index)?.name;
            format!("allow {name} a deadline of {}", in_time(cycles))
        }
        Remedy::Deadline(Demand::HandlerDeadline(index), cycles) => format!(
            "allow the handler of {} a deadline of {}",
            source(index)?,
            in_time(cycles)
        ),
        Remedy::Deadline(Demand::FlowDeadline(index), cycles) => format!(
            "allow the packets of {} a deadline of {}",
            system.flows.get(index)?.name,
            in_time(cycles)
        ),
        Remedy::Deadline(Demand::Rate(_), _) => return None,
        Remedy::Expected(index, hertz) => {
            format!("expect only {} of {}", rate(hertz, DIGITS), source(index)?)
        }
        Remedy::FlowRate(index, hertz) => format!(
            "expect only {} of packets of {}",
            rate(hertz, DIGITS),
            system.flows.get(index)?.name
        ),
        Remedy::Handler(index, cycles) => format!(
            "shorten the handler of {} to {cycles} cycles",
            source(index)?
        ),
        Remedy::Wcet(index, cycles) => format!(
            "shorten {} to a WCET of {}",
            system.receivers.get(index)?.name,
            in_time(cycles)
        ),
        Remedy::PriorityOf(index) => {
            let task = session.task();
            let others = task.tuned.iter().filter(|of| of.source != index);
            let names: Vec<String> = others.filter_map(|of| source(of.source).cloned()).collect();
            format!(
                "give {} the priority of {}, since one timer limits sources of one priority",
                and(&names),
                source(index)?
            )
        }
        Remedy::OtherFlavour => format!("write flavour = \"{}\" in [cpu]", OTHER_FLAVOUR.name()),
        Remedy::InHardware(index) => {
            format!(
                "limit {} in hardware, with the policy {}",
                source(index)?,
                Policy::Strict.name()
            )
        }
        Remedy::OtherTimer(index, channel) => {
            let channel = session.task().platform.channels.get(channel)?;
            let timer = channel.timer.as_ref().unwrap_or(&channel.name);
            format!("put the limit of {} on {timer}", source(index)?)
        }
        Remedy::OverAdmission(share) => format!("allow --over-admission {:.2}%", 100.0 * share),
    })
}

/// Formats a time as a single shell argument.
fn pasted(time: &str) -> String {
    time.replace(' ', "")
}

/// Names the limiters that were not tried, with the reason. `None` if all were tried.
pub(super) fn not_tried(session: &Session) -> Option<String> {
    let missing = session.missing_costs();
    (!missing.is_empty()).then(|| {
        format!(
            "some limiters were not tried, since the file does not state what they cost; add to {}",
            missing.join("; to ")
        )
    })
}

/// Names the sources that no timer can limit, with the reason. `None` if there are none.
pub(super) fn not_reached(session: &Session) -> Option<String> {
    let sources = session.out_of_reach();
    let names = sources.filter_map(|index| session.system().sources.get(index));
    let names: Vec<&str> = names.map(|source| source.name.as_str()).collect();
    let why = if session.only_shared() {
        format!(
            "; the flavour limits one source, or some that share a timer, and \
             flavour = \"{}\" limits more",
            OTHER_FLAVOUR.name()
        )
    } else {
        String::new()
    };
    (!names.is_empty()).then(|| {
        let stay = if names.len() == 1 {
            "it stays as it is"
        } else {
            "they stay as they are"
        };
        format!("no timer can limit {}: {stay}{why}", names.join(", "))
    })
}

/// Returns the error for a file in which nothing can be tuned.
pub(super) fn nothing_to_tune(session: &Session, idleness: Idleness) -> Report {
    let (what, help) = match idleness {
        Idleness::NoRate => (
            "no source states an expected or a tolerated rate",
            "state for each source that is to be tuned what a healthy one does and what the system can do without: \
             rate = { expected = \"300Hz\", tolerated = \"1kHz\" }"
                .to_owned(),
        ),
        Idleness::AllOff => (
            "each source that states an expected or a tolerated rate says policy = \"off\"",
            "leave the policy out to have one chosen, or state \"strict\", \"bursty\" or \"bucket\"".to_owned(),
        ),
        Idleness::NoCosts => (
            "the file does not state what limiters cost on this processor",
            format!(
                "name a board, or add what you measured to {}",
                session.missing_costs().join("; or to ")
            ),
        ),
        Idleness::NoTimer => (
            "no timer can limit the sources that state an expected or a tolerated rate",
            "without a board, describe a [[timer]]; with one, use a line that its port limits (docs/tune.md)".to_owned(),
        ),
    };
    miette!(help = help, "nothing is to be tuned: {what}")
}

/// Describes the options with which the user has restricted the search.
fn pins(session: &Session) -> String {
    let options = session.task().options;
    let clock = session.system().cpu.clock_hz as f64;
    let timer = options
        .timer_rate
        .map(|of| format!(" and a shared timer of {of}"));
    let delay = options
        .longest_delay
        .map(|of| format!(" and delays of at most {}", time(of as f64 / clock, DIGITS)));
    timer.unwrap_or_default() + &delay.unwrap_or_default()
}

/// Joins names: `a`, `a and b`, `a, b and c`.
fn and(names: &[String]) -> String {
    match names {
        [before @ .., last] if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        names => names.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::and;

    #[test]
    fn lists_read_as_sentences() {
        let names = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(and(&names[..1]), "a");
        assert_eq!(and(&names[..2]), "a and b");
        assert_eq!(and(&names), "a, b and c");
    }
}
