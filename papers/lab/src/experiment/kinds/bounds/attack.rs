// SPDX-License-Identifier: GPL-3.0-or-later
//! An attack: the edges on each line, stored as trains of edges so that a search can vary them.
use rand::Rng;
use rand_chacha::ChaCha12Rng;

/// The cycle at which the start-up code has ended: the earliest first edge.
pub(super) const START: u64 = 3000;
/// The least number of cycles between two edges: the pin needs time to fall and to rise again.
const LEAST_GAP: u64 = 8;
/// The number of cycles between the edges of a burst, less than any interrupt takes.
const BURST_GAP: u64 = 40;
/// The largest number of trains on a line. More trains would only make the search longer.
const MOST_TRAINS: usize = 24;

/// A line under attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AttackedLine {
    /// The limit's interval or period, in cycles. Without a limit it is the least time between two
    /// edges.
    pub interval: u64,
    /// The number of requests that may pass together.
    pub burst: u64,
    /// The least number of cycles between two edges, as the system file promises for the source.
    pub apart: u64,
}

/// A train of edges at equal distances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Train {
    pub first: u64,
    pub gap: u64,
    pub count: u64,
}

/// The trains of each line, and the cycle at which the main loop begins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Attack {
    pub begin: u64,
    pub lines: Vec<Vec<Train>>,
    /// The name of the pattern that the attack was derived from.
    pub pattern: &'static str,
}

/// The constraints that all attacks of a search obey.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field<'a> {
    pub limits: &'a [AttackedLine],
    /// The run's length in cycles.
    pub end: u64,
}

impl Field<'_> {
    fn longest_interval(&self) -> u64 {
        self.limits
            .iter()
            .map(|limit| limit.interval)
            .fold(1, u64::max)
    }

    /// The cycle at which a run ends. The run is long enough for a response of `bound` cycles,
    /// wherever an attack begins.
    pub fn end(limits: &[AttackedLine], bound: u64) -> u64 {
        let field = Field { limits, end: 0 };
        START + 6 * field.longest_interval() + 2 * bound
    }
}

/// The place of the worst response in a run. The next variations put edges there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Aim {
    /// The cycles at which the worst job was released and ended.
    pub from: u64,
    pub to: u64,
    /// The cycles around this job at which interrupts began and ended.
    pub instants: Vec<u64>,
}

impl Attack {
    /// The edges on a line in ascending order. Edges that follow another one too closely are
    /// dropped.
    pub fn edges(&self, line: usize, field: &Field) -> Vec<u64> {
        let apart = field
            .limits
            .get(line)
            .map_or(LEAST_GAP, |limit| limit.apart.max(LEAST_GAP));
        let mut edges: Vec<u64> = self
            .lines
            .get(line)
            .into_iter()
            .flatten()
            .flat_map(|train| {
                (0..train.count)
                    .map(|index| train.first.saturating_add(train.gap.saturating_mul(index)))
                    .take_while(|edge| *edge < field.end)
            })
            .filter(|edge| *edge >= START)
            .collect();
        edges.sort_unstable();
        let mut last = None;
        edges.retain(|edge| {
            let keep = last.is_none_or(|last| *edge >= last + apart);
            if keep {
                last = Some(*edge);
            }
            keep
        });
        edges
    }

    /// Draws an attack from the patterns that response-time analyses assume. In half of the cases
    /// each line gets a pattern of its own; otherwise all lines share one.
    pub fn new(field: &Field, random: &mut ChaCha12Rng) -> Self {
        let pattern = Pattern::any(random);
        let is_mixed = field.limits.len() > 1 && random.random_bool(0.5);
        let longest = field.longest_interval();
        // The limiters are idle after two intervals, so the main loop begins then.
        let begin = START + 2 * longest + random.random_range(0..=longest);
        let lines = field
            .limits
            .iter()
            .map(|limit| {
                let pattern = if is_mixed {
                    Pattern::any(random)
                } else {
                    pattern
                };
                pattern.trains(limit, begin, field.end, random)
            })
            .collect();
        Self {
            begin,
            lines,
            pattern: if is_mixed {
                "several patterns"
            } else {
                pattern.name()
            },
        }
    }

    /// Varies the attack by one to three small changes, most of them near the worst job.
    pub fn varied(&self, aim: &Aim, field: &Field, random: &mut ChaCha12Rng) -> Self {
        let mut varied = self.clone();
        for _ in 0..random.random_range(1..=3) {
            varied.vary(aim, field, random);
        }
        varied
    }

    fn vary(&mut self, aim: &Aim, field: &Field, random: &mut ChaCha12Rng) {
        if self.lines.is_empty() {
            return;
        }
        let line = random.random_range(0..self.lines.len());
        let Some(limit) = field.limits.get(line) else {
            return;
        };
        let by = step(limit, random);
        let kind = random.random_range(0..12);
        if kind == 0 {
            self.begin = moved(self.begin, by).clamp(START, START + 4 * field.longest_interval());
            return;
        }
        if kind == 1 {
            // The change affects all edges, or those from a random time on.
            let from = if random.random_bool(0.5) {
                0
            } else {
                aim.from.saturating_sub(limit.interval)
            };
            for train in self.lines.iter_mut().flatten() {
                if train.first >= from {
                    train.first = moved(train.first, by);
                }
            }
            return;
        }
        let trains = &mut self.lines[line];
        if kind == 2 {
            for train in trains.iter_mut() {
                train.first = moved(train.first, by);
            }
            return;
        }
        if kind < 5 || trains.is_empty() {
            if trains.len() < MOST_TRAINS {
                trains.push(Self::aimed(aim, limit, field, random));
            }
            return;
        }
        let index = random.random_range(0..trains.len());
        let train = &mut trains[index];
        match kind {
            5 | 6 => train.first = moved(train.first, by),
            7 => train.gap = moved(train.gap, by).max(LEAST_GAP),
            8 => {
                // The train begins later or ends earlier, which leaves a quiet time before or after
                // it.
                let cut = random.random_range(0..=train.count);
                if random.random_bool(0.5) {
                    train.first = train.first.saturating_add(cut.saturating_mul(train.gap));
                }
                train.count -= cut;
            }
            9 => train.count = moved(train.count, random.random_range(-2..=2)).max(1),
            10 if trains.len() < MOST_TRAINS => {
                let mut copy = trains[index];
                copy.first = moved(copy.first, by);
                trains.push(copy);
            }
            _ => {
                trains.swap_remove(index);
            }
        }
    }

    /// A train of a few edges just before or after an event near the worst job.
    fn aimed(aim: &Aim, limit: &AttackedLine, field: &Field, random: &mut ChaCha12Rng) -> Train {
        let near = if aim.instants.is_empty() || random.random_bool(0.3) {
            let from = aim.from.saturating_sub(limit.interval).max(START);
            random.random_range(from..aim.to.max(from + 1).min(field.end.max(from + 1)))
        } else {
            aim.instants[random.random_range(0..aim.instants.len())]
        };
        Train {
            first: moved(near, random.random_range(-60..=20)),
            gap: random.random_range(LEAST_GAP..2 * BURST_GAP),
            count: [1, 1, 2, limit.burst, limit.burst + 1][random.random_range(0..5)],
        }
    }
}

fn moved(value: u64, by: i64) -> u64 {
    value.saturating_add_signed(by)
}

/// The number of cycles by which an edge is moved: mostly few, sometimes about an interval.
fn step(limit: &AttackedLine, random: &mut ChaCha12Rng) -> i64 {
    let interval = i64::try_from(limit.interval).unwrap_or(i64::MAX).max(1);
    let most = [2, 8, 40, 200, interval][random.random_range(0..5)];
    let by = random.random_range(1..=most);
    if random.random_bool(0.5) { by } else { -by }
}

/// The patterns from which attacks are drawn.
#[derive(Debug, Clone, Copy)]
enum Pattern {
    Flood,
    QuietThenFlood,
    AtTheLimit,
    Pairs,
    Bursts,
    DoubleBurst,
}

impl Pattern {
    const ALL: [Self; 6] = [
        Self::Flood,
        Self::QuietThenFlood,
        Self::AtTheLimit,
        Self::Pairs,
        Self::Bursts,
        Self::DoubleBurst,
    ];

    fn any(random: &mut ChaCha12Rng) -> Self {
        Self::ALL[random.random_range(0..Self::ALL.len())]
    }

    fn name(self) -> &'static str {
        match self {
            Self::Flood => "flood",
            Self::QuietThenFlood => "quiet, then flood",
            Self::AtTheLimit => "at the limit",
            Self::Pairs => "pairs",
            Self::Bursts => "bursts",
            Self::DoubleBurst => "double burst",
        }
    }

    /// The trains of the pattern on one line, if the main loop begins at `begin`.
    fn trains(
        self,
        limit: &AttackedLine,
        begin: u64,
        end: u64,
        random: &mut ChaCha12Rng,
    ) -> Vec<Train> {
        let AttackedLine {
            interval, burst, ..
        } = *limit;
        let late = random.random_range(0..120);
        let dense = random.random_range(20..80);
        let phase = random.random_range(0..interval.max(1));
        // A periodic pattern begins up to two intervals before the main loop.
        let from = begin.saturating_sub(interval + phase);
        let endless = |first, gap: u64| Train {
            first,
            gap: gap.max(LEAST_GAP),
            count: end / gap.max(LEAST_GAP) + 1,
        };
        match self {
            Self::Flood => vec![endless(START, dense)],
            Self::QuietThenFlood => vec![endless(near(begin, 300, random), dense)],
            // The edges come evenly at the limit's rate, or slightly slower, so that each just
            // misses the running interval.
            Self::AtTheLimit => vec![endless(from, interval / burst + late)],
            Self::Pairs => {
                let gap = interval * random.random_range(1..=3) + late;
                let second = random.random_range(BURST_GAP..interval.max(BURST_GAP + 1));
                vec![endless(from, gap), endless(from + second, gap)]
            }
            Self::Bursts => {
                let more = random.random_range(0..=2);
                let gap = random.random_range(BURST_GAP..700);
                (0..burst + more)
                    .map(|index| endless(from + index * gap, interval + late))
                    .collect()
            }
            Self::DoubleBurst => {
                // One request opens an interval that ends shortly after the main loop has begun.
                // The rest of the burst comes just before that end.
                let left = random.random_range(0..=(burst * 500).min(interval));
                let opens = begin.saturating_sub(interval.saturating_sub(left));
                let opener = Train {
                    first: opens,
                    gap: BURST_GAP,
                    count: 1,
                };
                vec![opener, endless(near(begin, 60, random), dense)]
            }
        }
    }
}

/// A random cycle at most `reach` from `center`.
fn near(center: u64, reach: i64, random: &mut ChaCha12Rng) -> u64 {
    moved(center, random.random_range(-reach..=reach))
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    const TARGETS: [AttackedLine; 2] = [
        AttackedLine {
            interval: 2000,
            burst: 4,
            apart: 0,
        },
        AttackedLine {
            interval: 900,
            burst: 1,
            apart: 900,
        },
    ];
    const FIELD: Field = Field {
        limits: &TARGETS,
        end: 40_000,
    };

    #[test]
    fn edges_ascend_and_keep_what_the_source_promises() {
        let mut random = ChaCha12Rng::seed_from_u64(1);
        let aim = Aim {
            from: 10_000,
            to: 14_000,
            instants: vec![9000, 12_000],
        };
        let mut attack = Attack::new(&FIELD, &mut random);
        let mut most = 0;
        for _ in 0..2000 {
            attack = attack.varied(&aim, &FIELD, &mut random);
            for (line, limit) in TARGETS.iter().enumerate() {
                let edges = attack.edges(line, &FIELD);
                let apart = limit.apart.max(LEAST_GAP);
                assert!(edges.windows(2).all(|pair| pair[1] >= pair[0] + apart));
                assert!(edges.iter().all(|edge| (START..FIELD.end).contains(edge)));
                most = most.max(edges.len());
            }
        }
        assert!(most > 100, "{most}");
    }

    #[test]
    fn the_same_seed_gives_the_same_attack() {
        let attack = |seed| Attack::new(&FIELD, &mut ChaCha12Rng::seed_from_u64(seed));
        assert_eq!(attack(3), attack(3));
        assert!((0..20).any(|seed| attack(seed) != attack(seed + 1)));
    }
}
