// SPDX-License-Identifier: MIT OR Apache-2.0
//! The options of a simulation.
use std::fmt;
use std::str::FromStr;

use clap::ValueEnum;
use miette::{IntoDiagnostic, WrapErr, miette};
use weir_model::{Duration, System, did_you_mean};
use weir_sim::feeds::{Feeds, FloodError, feeds};
use weir_sim::{Compensation, CostSpreads, Defer, Deferral, Options, Spread, Tick, Ties};

/// Options of a simulation.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct How {
    /// What misbehaves, and how: `eth=20kHz`, `eth=poisson:20kHz`, `eth=trace:eth0.pcap`; without a
    /// pattern as fast as the file says it can be at worst. May be given several times
    #[arg(long = "flood", value_name = "TARGET[=PATTERN]")]
    pub floods: Vec<String>,

    /// How long, in virtual time
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub duration: Duration,

    /// Everything random follows from it
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// How costs and execution times lie below the worst: worst, uniform:50%, normal:60%:10% or
    /// exponential:30%
    #[arg(long, value_name = "SPREAD", default_value = "worst")]
    pub costs: Spread,

    /// The same of interrupts, bottom-halves or tasks alone: tasks=uniform:50%
    #[arg(long, value_name = "KIND=SPREAD")]
    pub costs_of: Vec<CostsOf>,

    /// When the bottom half of a packet runs
    #[arg(long, value_enum, default_value_t = Deferral::Exact)]
    pub defer: Deferral,

    /// What a bottom half does that is as urgent as what runs
    #[arg(long, value_enum, default_value_t = Ties::Run)]
    pub ties: Ties,

    /// A clock tick, and what it costs if not nothing: 10ms, 10ms:5us
    #[arg(long, value_name = "PERIOD[:COST]")]
    pub tick: Option<TickText>,

    /// How the tick's account makes up for bottom halves that ran for others (zhang2006)
    #[arg(long, value_enum, requires = "tick", default_value_t = Compensation::None)]
    pub compensation: Compensation,

    /// A receiver that does not work for its WCET but until so long after its release: control=4ms.
    /// May be given several times
    #[arg(long = "closed-loop", value_name = "RECEIVER=TIME")]
    pub closed_loops: Vec<ClosedLoop>,
}

/// The kinds of costs that a spread can apply to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CostsOf {
    kind: WorkKind,
    spread: Spread,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WorkKind {
    Interrupts,
    BottomHalves,
    Tasks,
}

impl FromStr for CostsOf {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = "write interrupts, bottom-halves or tasks and how they lie, for example tasks=uniform:50%";
        let (kind, spread) = text.split_once('=').ok_or(form)?;
        let kind = match kind.trim() {
            "interrupts" => WorkKind::Interrupts,
            "bottom-halves" => WorkKind::BottomHalves,
            "tasks" => WorkKind::Tasks,
            other => return Err(format!("there are no costs of `{other}`: {form}")),
        };
        let spread = spread.trim().parse::<Spread>();
        let spread = spread.map_err(|error| error.to_string())?;
        Ok(Self { kind, spread })
    }
}

/// Period and cost of a clock tick.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TickText {
    period: Duration,
    cost: Option<Duration>,
}

impl FromStr for TickText {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let time = |text: &str| text.parse::<Duration>().map_err(|error| error.to_string());
        let (period, cost) = match text.split_once(':') {
            Some((period, cost)) => (period, Some(time(cost)?)),
            None => (text, None),
        };
        Ok(Self {
            period: time(period)?,
            cost,
        })
    }
}

impl fmt::Display for TickText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.period)?;
        self.cost.map_or(Ok(()), |cost| write!(f, ":{cost}"))
    }
}

/// A receiver that works as a closed loop.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ClosedLoop {
    receiver: String,
    window: Duration,
}

impl FromStr for ClosedLoop {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (receiver, window) = text
            .split_once('=')
            .ok_or("write a receiver and how long it works, for example control=4ms")?;
        Ok(Self {
            receiver: receiver.trim().to_owned(),
            window: window
                .parse()
                .map_err(|error: weir_model::QuantityError| error.to_string())?,
        })
    }
}

/// The longest time in cycles. With longer times, sums of instants would overflow.
const MOST_CYCLES: u64 = 1 << 62;

/// Converts the time of an option to cycles.
fn cycles(option: &str, time: Duration, system: &System) -> miette::Result<u64> {
    let cycles = time
        .cycles(system.cpu.clock_hz)
        .into_diagnostic()
        .wrap_err_with(|| option.to_owned())?;
    if cycles > MOST_CYCLES {
        return Err(miette!(
            help = "nobody could wait for it: write for example 10s",
            "{option}: {time} is more than 2^62 cycles"
        ));
    }
    Ok(cycles)
}

fn of_flood(error: &FloodError) -> miette::Report {
    match error.help() {
        Some(help) => miette!(help = help, "{error}"),
        None => miette!("{error}"),
    }
}

/// Parses the value of an option as the command line does.
fn read<T: FromStr<Err: fmt::Display>>(value: &str) -> Result<T, String> {
    value.parse().map_err(|error: T::Err| error.to_string())
}

fn choose<T: ValueEnum>(value: &str) -> Result<T, String> {
    T::from_str(value, false).map_err(|_| {
        let all = T::value_variants().iter();
        let names = all.filter_map(|of| Some(of.to_possible_value()?.get_name().to_owned()));
        format!(
            "`{value}` is none of {}",
            names.collect::<Vec<_>>().join(", ")
        )
    })
}

impl How {
    /// The names of the options that [`Self::set`] accepts.
    pub(crate) const KEYS: &str = "flood.TARGET, seed, duration, costs, costs-of.KIND, defer, ties, tick, compensation and closed-loop.RECEIVER";

    /// Sets an option by its name, such as `seed` or `flood.eth`. The value of a flood or a tick
    /// may be `none`. Returns `None` if no option has this name.
    pub(crate) fn set(&mut self, key: &str, value: &str) -> Option<Result<(), String>> {
        let none = value == "none";
        Some(match key.split_once('.') {
            Some(("flood", _)) if none => Ok(()),
            Some(("flood", target)) => {
                self.floods.push(format!("{target}={value}"));
                Ok(())
            }
            Some(("costs-of", kind)) => {
                read(&format!("{kind}={value}")).map(|of| self.costs_of.push(of))
            }
            Some(("closed-loop", receiver)) => {
                read(&format!("{receiver}={value}")).map(|of| self.closed_loops.push(of))
            }
            Some(_) => return None,
            None => match key {
                "seed" => match value.parse() {
                    Ok(seed) => {
                        self.seed = seed;
                        Ok(())
                    }
                    Err(_) => Err(format!("a seed is a whole number from 0 to {}", u64::MAX)),
                },
                "duration" => read(value).map(|of| self.duration = of),
                "costs" => read(value).map(|of| self.costs = of),
                "defer" => choose(value).map(|of| self.defer = of),
                "ties" => choose(value).map(|of| self.ties = of),
                "tick" if none => {
                    self.tick = None;
                    Ok(())
                }
                "tick" => read(value).map(|of| self.tick = Some(of)),
                "compensation" => choose(value).map(|of| self.compensation = of),
                _ => return None,
            },
        })
    }

    /// Returns the options of a run of `system`, and the names of its arrivals.
    ///
    /// # Errors
    /// Fails if a time is less than a cycle or too long, if a flood or a closed loop names
    /// something that does not exist, or if a flood is not valid.
    pub(crate) fn options(&self, system: &System) -> miette::Result<(Options, Feeds)> {
        let feeds = feeds(system, &self.floods).map_err(|error| of_flood(&error))?;
        let options = Options {
            duration: cycles("--duration", self.duration, system)?,
            seed: self.seed,
            costs: self.costs(),
            limits: true,
            moderation: true,
            defer: self.defer(),
            tick: self.tick(system)?,
            closed_loops: self.closed_loops(system)?,
            feeds: feeds.feeds.clone(),
        };
        Ok((options, feeds))
    }

    fn costs(&self) -> CostSpreads {
        let mut costs = CostSpreads::all(self.costs);
        for of in &self.costs_of {
            match of.kind {
                WorkKind::Interrupts => costs.interrupts = of.spread,
                WorkKind::BottomHalves => costs.bottom_halves = of.spread,
                WorkKind::Tasks => costs.tasks = of.spread,
            }
        }
        costs
    }

    fn defer(&self) -> Defer {
        self.defer.with(self.ties)
    }

    fn tick(&self, system: &System) -> miette::Result<Option<Tick>> {
        let Some(TickText { period, cost }) = self.tick else {
            return Ok(None);
        };
        let cost = cost
            .map(|cost| cycles("--tick", cost, system))
            .transpose()?;
        Ok(Some(Tick {
            period: cycles("--tick", period, system)?,
            cost: cost.unwrap_or(0),
            compensation: self.compensation,
        }))
    }

    fn closed_loops(&self, system: &System) -> miette::Result<Vec<Option<u64>>> {
        let mut loops = vec![None; system.receivers.len()];
        for ClosedLoop { receiver, window } in &self.closed_loops {
            let names: Vec<&str> = system.receivers.iter().map(|of| of.name.as_str()).collect();
            let index = names.iter().position(|name| name == receiver);
            let Some(place) = index.and_then(|index| loops.get_mut(index)) else {
                return Err(miette!(
                    help = did_you_mean(receiver, "receivers", &names),
                    "--closed-loop: there is no receiver `{receiver}`"
                ));
            };
            *place = Some(cycles("--closed-loop", *window, system)?);
        }
        Ok(loops)
    }
}

#[cfg(test)]
mod tests {
    use super::{CostsOf, TickText, WorkKind};

    #[test]
    fn costs_of_a_kind_say_which() {
        let of: CostsOf = "bottom-halves=uniform:50%".parse().unwrap();
        assert_eq!(of.kind, WorkKind::BottomHalves);
        assert_eq!(of.spread.to_string(), "uniform:50%");
        for bad in ["tasks", "task=worst", "tasks=gauss"] {
            assert!(bad.parse::<CostsOf>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_tick_may_cost_something() {
        for text in ["10ms", "10ms:5us"] {
            assert_eq!(text.parse::<TickText>().unwrap().to_string(), text);
        }
        for bad in ["", "10", "10ms:", "10ms:5us:1us"] {
            assert!(bad.parse::<TickText>().is_err(), "{bad}");
        }
    }
}
