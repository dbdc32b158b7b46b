// SPDX-License-Identifier: GPL-3.0-or-later
//! Executes a [`RunSpec`] on the emulated ATmega128: sets up the boards, their pins and the
//! counters.
use std::collections::BTreeMap;
use std::path::Path;

use weir_boards::Board;

use crate::atmega128::{Atmega128Board, Driver};
use crate::chip::{ATMEGA128, Chip};
use crate::elf::{DataSymbol, Image};
use crate::emulation::RunSpec;
use crate::emulation::{Abilities, Emulation};
use crate::error::RunError;
use crate::firmware::Toolchain;
use crate::line::Line;
use crate::result::{LineUse, RunResult, VectorUse};

/// The cycles between two samples of the variables. A byte that grows at most once in five cycles
/// cannot wrap between two samples.
const SAMPLE_CYCLES: u64 = 512;
/// The most cycles by which the start or the end of the counted part is delayed while the firmware
/// stores a counter byte by byte.
const SETTLE_CYCLES: u64 = 4096;
/// Cycles between two progress reports.
const PROGRESS_CYCLES: u64 = 1 << 18;

/// The board atmega128, which is emulated in this process.
pub(crate) struct Atmega128;

impl Emulation for Atmega128 {
    fn board(&self) -> &'static Board {
        ATMEGA128.board
    }

    fn toolchain(&self) -> &'static Toolchain {
        &Toolchain::AVR
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            chip_in_front: true,
            clock_by_firmware: true,
            progress: true,
            ..Abilities::default()
        }
    }

    fn run(
        &self,
        spec: &RunSpec,
        _program: &Path,
        progress: &mut dyn FnMut(u64),
    ) -> Result<RunResult, RunError> {
        run(spec, progress)
    }
}

fn run(spec: &RunSpec, progress: &mut dyn FnMut(u64)) -> Result<RunResult, RunError> {
    let chip = &*ATMEGA128;
    let image = Image::load(&spec.elf, chip)?;
    let front_image = spec
        .front
        .as_ref()
        .map(|front| Image::load(&front.elf, chip))
        .transpose()?;
    let mut boards = Boards::new(spec, chip, &image, front_image.as_ref())?;
    let mut counters = Variables::new(spec, &image)?;

    let mut told = 0;
    let mut run_to =
        |boards: &mut Boards<'_>, counters: &mut Variables, end: u64| -> Result<(), RunError> {
            while boards.main.cycle() < end {
                boards.run_until(end.min(boards.main.cycle() + SAMPLE_CYCLES))?;
                counters.sample(&boards.main);
                if boards.main.cycle() >= told + PROGRESS_CYCLES {
                    told = boards.main.cycle();
                    progress(told);
                }
            }
            let latest = end + SETTLE_CYCLES;
            while !counters.are_settled() && boards.main.cycle() < latest {
                boards.run_until(boards.main.cycle() + 1)?;
                counters.sample(&boards.main);
            }
            Ok(())
        };
    run_to(&mut boards, &mut counters, spec.warmup_cycles)?;
    let start = boards.main.cycle();
    boards.main.clear();
    counters.clear();
    run_to(&mut boards, &mut counters, start + spec.cycles)?;
    Ok(result(spec, chip, boards.main, &counters, start))
}

fn result(
    spec: &RunSpec,
    chip: &Chip,
    mut board: Atmega128Board<'_>,
    counters: &Variables,
    start: u64,
) -> RunResult {
    let mut vectors = Vec::new();
    for (number, name) in (1_u8..).zip(&chip.board.vectors) {
        let used = board.vector(number);
        if used.taken > 0 || used.cycles > 0 {
            vectors.push(VectorUse {
                number,
                name: name.clone(),
                taken: used.taken,
                cycles: used.cycles,
                longest_cycles: used.longest,
                instructions: None,
                tail_chained: None,
            });
        }
    }
    let (background_cycles, sleep_cycles, wakeups) = board.idle_time();
    let lines = spec
        .driven_lines()
        .into_iter()
        .map(|line| {
            let count = board.line(line);
            LineUse {
                line,
                offered: count.offered,
                missed: count.missed,
                delivered: None,
            }
        })
        .collect();
    let mut events = board.take_events();
    for event in &mut events {
        event.cycle = event.cycle.saturating_sub(start);
    }
    let cycles = board.cycle() - start;
    let marks = board
        .take_marks()
        .map(|(symbol, reached)| {
            (
                symbol,
                reached.into_iter().map(|cycle| cycle - start).collect(),
            )
        })
        .collect();
    RunResult {
        cycles,
        vectors,
        background_cycles,
        sleep_cycles,
        wakeups,
        lines,
        counters: counters.totals(),
        marks,
        events,
        said: String::new(),
        exit: None,
        bus_errors: 0,
    }
}

/// The board and the chip in front of it. The chip in front receives no signal from the board, so
/// it may run ahead.
struct Boards<'a> {
    main: Atmega128Board<'a>,
    front: Option<(Atmega128Board<'a>, Line)>,
}

impl<'a> Boards<'a> {
    fn new(
        spec: &RunSpec,
        chip: &'a Chip,
        image: &'a Image,
        front_image: Option<&'a Image>,
    ) -> Result<Self, RunError> {
        let mut main = Atmega128Board::new(chip, image, spec.clock_hz, spec.trace)?;
        for symbol in &spec.marks {
            main.mark(symbol)?;
        }
        let mut front = match (&spec.front, front_image) {
            (Some(controller), Some(image)) => {
                let mut board = Atmega128Board::new(chip, image, spec.clock_hz, false)?;
                board.watch(controller.output);
                main.drive(
                    controller.to,
                    Driver::Wire(std::collections::VecDeque::new()),
                );
                Some((board, controller.to))
            }
            _ => None,
        };
        for flood in &spec.floods {
            let limit = spec
                .hardware_limits
                .iter()
                .find(|limit| limit.line == flood.line);
            let driver = Driver::new(
                &flood.stimulus,
                spec.clock_hz,
                limit.map(|limit| limit.interval_cycles),
            )
            .map_err(|cause| RunError::Stimulus {
                line: flood.line,
                cause,
            })?;
            match (&mut front, &spec.front) {
                (Some((board, to)), Some(controller)) if *to == flood.line => {
                    board.drive(controller.input, driver)
                }
                _ => main.drive(flood.line, driver),
            }
        }
        Ok(Self { main, front })
    }

    fn run_until(&mut self, cycle: u64) -> Result<(), RunError> {
        if let Some((front, to)) = &mut self.front {
            front.run_until(cycle)?;
            let moves = front.take_watched_moves();
            if !moves.is_empty() {
                self.main.extend_wire(*to, moves.into_iter());
            }
        }
        self.main.run_until(cycle)
    }
}

/// The observed variables.
struct Variables {
    followed: Vec<Variable>,
}

struct Variable {
    name: String,
    symbol: DataSymbol,
    last: u64,
    grown: i64,
    settled: bool,
}

impl Variables {
    fn new(spec: &RunSpec, image: &Image) -> Result<Self, RunError> {
        let followed = spec
            .counters
            .iter()
            .map(|name| {
                let symbol = image.variable(name)?;
                Ok(Variable {
                    name: name.clone(),
                    symbol,
                    last: 0,
                    grown: 0,
                    settled: true,
                })
            })
            .collect::<Result<_, RunError>>()?;
        Ok(Self { followed })
    }

    fn sample(&mut self, board: &Atmega128Board<'_>) {
        for counter in &mut self.followed {
            let value = board.read(counter.symbol);
            // The difference is signed and has the variable's size. A program stores a carry byte
            // by byte, so a value read between two stores may be below the previous one.
            let unused = 64 - 8 * u32::from(counter.symbol.size);
            let difference = ((value.wrapping_sub(counter.last) << unused) as i64) >> unused;
            counter.grown = counter.grown.wrapping_add(difference);
            counter.last = value;
            // While the program has stored only some of the bytes, the carry is missing and the
            // value jumps up or down by 256 or more. Such a value is not settled.
            counter.settled = counter.symbol.size == 1 || (0..=255).contains(&difference);
        }
    }

    fn are_settled(&self) -> bool {
        self.followed.iter().all(|counter| counter.settled)
    }

    fn clear(&mut self) {
        for counter in &mut self.followed {
            counter.grown = 0;
        }
    }

    fn totals(&self) -> BTreeMap<String, u64> {
        self.followed
            .iter()
            .map(|counter| {
                (
                    counter.name.clone(),
                    u64::try_from(counter.grown).unwrap_or(0),
                )
            })
            .collect()
    }
}
