// SPDX-License-Identifier: GPL-3.0-or-later
//! Tests the bounds of `weir check` on the board mps2-an385. Random systems are generated, compiled
//! and flooded, and nothing may take longer than the analysis says. Probes measure this. They are
//! unlimited interrupts that come at known instants: more urgent than the group, of the group's
//! priority (taken before or after its timer), and less urgent. A background job is measured, too.

use std::fmt::Write;

use crate::cortex::generated::{build, system, vectors};
use crate::cortex::{Elf, PER_TICK, can_run, flood, spec};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha12Rng;
use rayon::prelude::*;
use weir_analysis::check::longest_runs;
use weir_analysis::units::Part;
use weir_analysis::{Analysis, analyse};
use weir_emulate::run::{RunResult, run};
use weir_model::System;

/// The name, the line and the priority of each probe. The group's priority is 128.
const PROBES: [(&str, u32, u32); 4] = [
    ("above", 5, 32),
    ("before", 3, 128),
    ("behind", 30, 128),
    ("below", 31, 240),
];
/// The lines of limited sources. Some are taken before the timer's IRQ10, others after it.
const LINES: [u32; 8] = [20, 6, 24, 7, 22, 11, 26, 9];
/// The instructions of a handler without the function that is its body: call and return, counting,
/// and saving registers.
const CALL: u64 = 20;
/// The same instructions for a probe, which also reads a timer.
const READ: u64 = 40;

/// The duration of a run in cycles.
const CYCLES: u64 = 10_000_000;

/// A limited source.
struct Drawn {
    line: u32,
    body: u64,
    limit: String,
    interval: u64,
}

/// A random system.
struct Draw {
    sources: Vec<Drawn>,
    bodies: [u64; PROBES.len()],
    /// Cycles between two requests of each probe.
    periods: [u64; PROBES.len()],
    job: u64,
    system: System,
}

impl Draw {
    fn new(random: &mut ChaCha12Rng) -> Self {
        let members = random.random_range(1..=5);
        let prescaler = [1, 1, 16, 256][random.random_range(0..4)];
        let tick = prescaler * PER_TICK;
        // All intervals are multiples of one number, so that expiries coincide.
        let base = random.random_range(8_000_u64..40_000);
        let sources: Vec<Drawn> = LINES
            .into_iter()
            .take(members)
            .map(|line| {
                let interval = base * random.random_range(1..=3);
                let (policy, timing, counts) = [
                    ("strict", "eager", false),
                    ("strict", "lazy", false),
                    ("paced", "eager", false),
                    ("paced", "lazy", false),
                    ("bursty", "eager", true),
                    ("bursty", "lazy", true),
                    ("bursty", "one_shot", true),
                    ("bucket", "eager", true),
                    ("bucket", "lazy", true),
                ][random.random_range(0..9)];
                let burst = match counts {
                    true => format!(", burst = {}", random.random_range(2..=4)),
                    false => String::new(),
                };
                Drawn {
                    line,
                    body: random.random_range(10..400),
                    limit: format!(
                        "limit = {{ policy = \"{policy}\", timing = \"{timing}\", interval = \"{interval} cycles\", timer = \"DUALTIMER\", prescaler = {prescaler}{burst} }}"
                    ),
                    interval: interval.div_ceil(tick) * tick,
                }
            })
            .collect();
        // Work that delays the group also makes expiries coincide.
        let bodies = [3000, 200, 200, 200].map(|most| random.random_range(10..most));
        // A probe moves relative to the intervals, by some ticks each time.
        let slide = |_| (base * 6 / PER_TICK + random.random_range(20..200)) * PER_TICK;
        let periods = PROBES.map(slide);
        let job = random.random_range(100..20_000);
        Self::of(sources, bodies, periods, job)
    }

    fn of(sources: Vec<Drawn>, bodies: [u64; 4], periods: [u64; 4], job: u64) -> Self {
        let text = text(&sources, bodies, periods, job);
        Self {
            sources,
            bodies,
            periods,
            job,
            system: system(&text),
        }
    }

    fn program(&self) -> String {
        let mut text = "#include \"weir_system.h\"\n\
             volatile uint32_t job_worst;\n\
             static uint32_t instant(void)\n{\n    return ~*(volatile uint32_t *) 0x40000004; /* TIMER0 counts down at 25 MHz */\n}\n"
            .to_owned();
        let function = |name: &str, instructions: u64| {
            format!(
                "__attribute__((noinline)) static void {name}_body(void)\n{{\n    __asm volatile(\".rept {instructions}\\n\\tnop\\n\\t.endr\" ::: \"memory\");\n}}\n"
            )
        };
        for source in &self.sources {
            let (name, body) = (format!("s{}", source.line), source.body);
            text += &function(&name, body);
            write!(
                text,
                "volatile uint32_t {name}_runs;\nWEIR_SOURCE_{name}\n{{\n    {name}_body();\n    {name}_runs++;\n}}\n"
            )
            .unwrap();
        }
        for (((name, ..), body), period) in PROBES.iter().zip(self.bodies).zip(self.periods) {
            text += &function(name, body);
            let ticks = period / PER_TICK;
            write!(
                text,
                "volatile uint32_t {name}_runs, {name}_worst, {name}_best;\nstatic uint32_t {name}_due;\nWEIR_SOURCE_{name}\n{{\n    {name}_body();\n    \
                 uint32_t late = 1000 + instant() - {name}_due; /* TIMER0 began later */\n    {name}_due += {ticks}u;\n    \
                 if ({name}_runs > 0 && late > {name}_worst) {{ /* the first waits for the start */\n        {name}_worst = late;\n    }}\n    if ({name}_runs == 1 || late < {name}_best) {{\n        {name}_best = late;\n    }}\n    {name}_runs++;\n}}\n"
            )
            .unwrap();
        }
        text += &function("job", self.job);
        text += "WEIR_TIMER_DUALTIMER;\nint main(void)\n{\n    \
             *(volatile uint32_t *) 0x40000008 = 0xffffffffu;\n    *(volatile uint32_t *) 0x40000004 = 0xffffffffu;\n    \
             *(volatile uint32_t *) 0x40000000 = 1;\n    weir_system_start();\n    for (;;) {\n        \
             uint32_t begun = instant();\n        job_body();\n        uint32_t took = instant() - begun;\n        \
             if (took > job_worst) {\n            job_worst = took;\n        }\n    }\n}\n";
        text + &vectors(&self.system)
    }

    /// Returns the floods of an adversary on the lines of the limited sources.
    fn adversary(&self, seed: u64) -> Vec<String> {
        let mut random = ChaCha12Rng::seed_from_u64(seed);
        let mut ask = |source: &Drawn| {
            let (line, interval) = (source.line, source.interval);
            match random.random_range(0..4) {
                0 => format!(
                    "IRQ{line}=uniform:40cycles..{}cycles:seed={line}",
                    interval / 3
                ),
                1 => format!(
                    "IRQ{line}=pairs:{interval}cycles:gap={}cycles",
                    interval / 9
                ),
                2 => format!(
                    "IRQ{line}=bursts:9:gap=80cycles:period={}cycles",
                    interval * random.random_range(1..4)
                ),
                _ => always(source),
            }
        };
        self.sources.iter().map(&mut ask).collect()
    }

    /// Runs the firmware with the probes' requests and these floods.
    fn run(&self, elf: &Elf, floods: &[String]) -> RunResult {
        let probes = PROBES.iter().zip(self.periods);
        let probes = probes.map(|((_, line, _), period)| {
            format!("IRQ{line}=bursts:1:gap=1cycles:period={period}cycles")
        });
        let all = probes.chain(floods.iter().cloned());
        let all: Vec<_> = all.map(|text| flood(&text)).collect();
        let mut spec = spec(elf, &all, CYCLES);
        spec.counters = ["job_worst".to_owned()]
            .into_iter()
            .chain(PROBES.iter().flat_map(|(name, ..)| {
                ["worst", "best", "runs"].map(|what| format!("{name}_{what}"))
            }))
            .chain(
                self.sources
                    .iter()
                    .map(|source| format!("s{}_runs", source.line)),
            )
            .collect();
        run(&spec).unwrap()
    }

    /// Returns the longest response times of the probes and of the job under these floods. Asserts
    /// that no interrupt runs longer than its stated costs.
    fn worst_seen(&self, floods: &[Vec<String>]) -> Vec<u64> {
        let elf = build(&self.system, &self.program(), &[]).unwrap_or_else(|e| panic!("{e}"));
        // Without the other sources, a probe's lateness is its own run time plus the offset between
        // the timers.
        let alone = self.run(&elf, &[]);
        let runs = longest_runs(&self.system, &analyse(&self.system));
        let mut worst = vec![0; PROBES.len() + 1];
        for floods in floods {
            let result = self.run(&elf, floods);
            for (probe, (name, ..)) in PROBES.iter().enumerate() {
                let latest = result.counters[&format!("{name}_worst")];
                let least = alone.counters[&format!("{name}_best")];
                let ticks = latest.saturating_sub(least + 1);
                worst[probe] = worst[probe].max(ticks * PER_TICK + self.bodies[probe]);
                let expected = CYCLES / self.periods[probe];
                let served = result.counters[&format!("{name}_runs")];
                assert!(served + 1 >= expected, "{name} {served} {expected}");
            }
            let job = result.counters["job_worst"].saturating_sub(1) * PER_TICK;
            worst[PROBES.len()] = worst[PROBES.len()].max(job);
            for vector in result.vectors.iter().filter(|vector| vector.taken > 0) {
                let of_vector = runs.iter().filter(|run| run.vector == vector.name);
                let most = of_vector.map(|run| run.cycles).max().unwrap_or(0);
                let (name, longest) = (&vector.name, vector.longest_cycles);
                let limits: Vec<&str> = self.sources.iter().map(|of| of.limit.as_str()).collect();
                assert!(
                    longest <= most,
                    "{name} took {longest}, at most {most}: {limits:#?} {floods:#?}"
                );
            }
            for source in &self.sources {
                assert!(result.counters[&format!("s{}_runs", source.line)] > 20);
            }
        }
        worst
    }

    /// Returns the bounds of the probes and of the job. `None` if the system has no bounds.
    fn bounds(&self) -> Option<Vec<u64>> {
        let analysis = analyse(&self.system);
        let first = self.sources.len();
        let parts = (0..PROBES.len()).map(|probe| Part::Request(first + probe));
        let all: Option<Vec<u64>> = parts
            .chain([Part::Task(0)])
            .map(|part| bound(&analysis, part))
            .collect();
        // A probe that is later than its period would lose a request.
        all.filter(|all| {
            all.iter()
                .zip(self.periods)
                .all(|(bound, period)| *bound < period)
        })
    }
}

/// Returns a flood so fast that a request always waits.
fn always(source: &Drawn) -> String {
    format!("IRQ{}=bursts:2:gap=300cycles:period=601cycles", source.line)
}

fn bound(analysis: &Analysis, part: Part) -> Option<u64> {
    let row = analysis.rows.iter().find(|row| row.unit.part == part)?;
    row.outcome.as_ref().ok().map(|solution| solution.response)
}

/// Returns the system file of a random system.
fn text(sources: &[Drawn], bodies: [u64; 4], periods: [u64; 4], job: u64) -> String {
    let mut text = "schema = 1\n[cpu]\nboard = \"mps2-an385\"\n".to_owned();
    for source in sources {
        write!(
            text,
            "[[source]]\nname = \"s{0}\"\nvector = \"IRQ{0}\"\npriority = 128\nhandler = \"{1} cycles\"\nmax_work = 1\n{2}\n",
            source.line,
            source.body + CALL,
            source.limit
        )
        .unwrap();
    }
    for (((name, line, priority), body), period) in PROBES.iter().zip(bodies).zip(periods) {
        // The rate is rounded up to whole millihertz, so that the probe is not faster than stated.
        let rate = (125_000_000_000_u64.div_ceil(period)) as f64 / 1000.0;
        write!(
            text,
            "[[source]]\nname = \"{name}\"\nvector = \"IRQ{line}\"\npriority = {priority}\nhandler = \"{} cycles\"\nmax_work = 1\n\
             rate = {{ worst = \"{rate}Hz\" }}\n",
            body + READ
        )
        .unwrap();
    }
    write!(
        text,
        "[[receiver]]\nname = \"job\"\nurgency = 1\nperiod = \"10s\"\nwcet = \"{} cycles\"\n",
        job + CALL
    )
    .unwrap();
    text
}

#[test]
fn cortex_m_responses_stay_below_their_bounds_under_adversaries() {
    if !can_run() {
        return;
    }
    let systems = if crate::is_long() { 4 } else { 2 };
    let ratios: Vec<Vec<f64>> = (0..systems)
        .into_par_iter()
        .map(|number| {
            let mut random = ChaCha12Rng::seed_from_u64(22);
            random.set_stream(number);
            let (draw, bounds) = std::iter::repeat_with(|| Draw::new(&mut random))
                .find_map(|draw| draw.bounds().map(|bounds| (draw, bounds)))
                .unwrap();
            let floods = [0, 1, 2].map(|seed| draw.adversary(seed));
            let worst = draw.worst_seen(&floods);
            for ((name, bound), worst) in names().zip(&bounds).zip(&worst) {
                assert!(
                    worst <= bound,
                    "{number}: {name} took {worst}, the bound is {bound}"
                );
            }
            bounds
                .iter()
                .zip(&worst)
                .map(|(bound, worst)| *bound as f64 / *worst as f64)
                .collect()
        })
        .collect();
    for (index, name) in names().enumerate() {
        let mut of: Vec<f64> = ratios.iter().map(|ratios| ratios[index]).collect();
        of.sort_by(f64::total_cmp);
        println!(
            "{name}: bound / worst seen {:.2} to {:.2}, median {:.2}",
            of[0],
            of[of.len() - 1],
            of[of.len() / 2]
        );
    }
}

fn names() -> impl Iterator<Item = &'static str> {
    PROBES.iter().map(|(name, ..)| *name).chain(["job"])
}
