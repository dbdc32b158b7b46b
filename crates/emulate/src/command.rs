// SPDX-License-Identifier: GPL-3.0-or-later
//! `weir run`: any firmware on an emulated board, under a flood.
use std::io::IsTerminal;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration as WallTime;

use clap::ValueHint;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use miette::miette;
use weir_model::{Duration, QuantityError, Rate};
use weir_report::terminal::{print, print_json};

use crate::board::EmulatedBoard;
use crate::chip::ATMEGA128;
use crate::elf::{self, Image};
use crate::line::Line;
use crate::run::Frames;
use crate::run::{
    FrontController, HardwareLimit, RunResult, RunSpec, Target, check, run, run_with,
};

mod table;

/// Run a firmware on an emulated or simulated board and show what its interrupts cost
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// The firmware, an ELF file as the board's compiler links it
    #[arg(value_hint = ValueHint::FilePath)]
    firmware: PathBuf,

    /// The board: atmega128, soc or mps2-an385
    #[arg(long, default_value = "atmega128", long_help = BOARD_HELP)]
    board: String,

    /// Request interrupts on a line; may be repeated for other lines
    #[arg(long, value_name = "LINE=PATTERN", long_help = FLOOD_HELP)]
    flood: Vec<String>,

    /// The board's clock; if not given, the one that the firmware was compiled for
    #[arg(long, value_name = "RATE", long_help = CLOCK_HELP)]
    clock: Option<Rate>,

    /// How much of the board's time is measured
    #[arg(long = "for", value_name = "TIME", default_value = "1s")]
    run_for: Duration,

    /// How much of the board's time passes before the measurement
    #[arg(long, value_name = "TIME", default_value = "50ms")]
    warmup: Duration,

    /// Observe a variable of the firmware by its name; may be repeated
    #[arg(long, value_name = "NAME")]
    counter: Vec<String>,

    /// Put an ideal hardware limiter between the flood and a line; may be repeated
    #[arg(long, value_name = "LINE=RATE")]
    hardware_limit: Vec<String>,

    /// Bytes of each frame of a flood of ETH, without its checksum: 60 to 1514
    #[arg(long, value_name = "BYTES", default_value_t = Frames::default().bytes)]
    frame_bytes: usize,

    /// The address that the frames of a flood of ETH are for
    #[arg(long, value_name = "ADDRESS", default_value_t = Frames::default().to, long_help = FRAME_HELP)]
    frame_to: Ipv4Addr,

    /// Put a second chip with this firmware between the flood and a line
    #[arg(long, value_name = "FIRMWARE[:in=LINE][:out=PIN][:to=LINE]", long_help = FRONT_HELP)]
    front: Option<String>,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

const BOARD_HELP: &str = "\
The board

  atmega128   an AVR microcontroller with the lines INT0 to INT7, emulated in this program
  soc         a RISC-V (RV32I) at 4 MHz with the lines INT0 to INT7, which pass through weir_limit \
in silicon; simulated cycle by cycle by a program that boards/soc/build.sh makes, or that the \
variable WEIR_SOC names
  mps2-an385  a Cortex-M3 at 125 MHz (8 ns for each instruction) with the lines IRQ0 to IRQ31 of \
its interrupt controller and ETH, an Ethernet controller (LAN9118); emulated by qemu-system-arm, \
with a plugin beside this program, or that the variable WEIR_PEER names";

const CLOCK_HELP: &str = "\
The board's clock

If it is not given, the board has the clock that the firmware was compiled for: with ports/avr the \
ELF file says it (F_CPU). The board soc has 4 MHz then, which its firmware can read. The board \
mps2-an385 always has 125 MHz.";

const FLOOD_HELP: &str = "\
Request interrupts on a line; may be repeated for other lines

  INT0=20kHz                               evenly; INT0=20kHz:phase=10us begins later
  INT0=poisson:20kHz:seed=1                at random
  INT0=pairs:2ms:gap=10us                  two close together, every 2 ms
  INT0=bursts:16:gap=20us:period=25ms      sixteen close together, every 25 ms
  INT0=level:low=100us:high=1ms            the pin itself: low, then high
  INT0=trace:file.csv                      recorded: a column time_us or cycle

Lines are INT0 to INT7; on mps2-an385 IRQ0 to IRQ31, and ETH for frames. A request is the begin of \
a pulse of at most 8 cycles; its edge has the direction that the firmware has chosen for the line \
(soc and mps2-an385: it rises; there the pulse is over before the next instruction).";

const FRAME_HELP: &str = "\
The address that the frames of a flood of ETH are for

They are echo requests (ping) to this address and to the hardware address that QEMU gives to the \
board, 52:54:00:12:34:56. Only the board mps2-an385 has this.";

const FRONT_HELP: &str = "\
Put a second chip with this firmware between the flood and a line

The flood on the line `to` reaches the line `in` of the chip in front, whose pin `out` drives \
`to`. If they are not given, they are in=INT0, out=PB0 and to=INT0. Only the board atmega128 has \
this.";

const EXAMPLES: &str = "\
Examples:
  weir run app.elf --clock 16MHz --flood INT0=20kHz
  weir run app.elf --flood INT0=poisson:8kHz:seed=1 --counter progress --counter handled
  weir run app.elf --flood INT0=20kHz --hardware-limit INT0=4kHz --for 10s
  weir run app.elf --flood INT0=20kHz --front limiter.elf:in=INT0:out=PB0:to=INT0
  weir run app.elf --board soc --flood INT0=20kHz --clock 50MHz --for 100ms
  weir run app.elf --board mps2-an385 --flood IRQ20=poisson:20kHz:seed=1
  weir run app.elf --board mps2-an385 --flood ETH=bursts:100:gap=10us:period=10ms";

/// A run that takes longer than this shows a progress bar.
const SILENT: WallTime = WallTime::from_secs(2);

/// Executes the command.
///
/// # Errors
/// Fails for invalid arguments, and for a firmware that cannot be loaded or crashes.
pub fn execute(arguments: &Args) -> miette::Result<()> {
    let board = EmulatedBoard::named(&arguments.board).map_err(|message| miette!("{message}"))?;
    let mut spec = specification(arguments, board)?;
    // The run is checked first, because the first build of a simulator takes minutes.
    check(&spec)?;
    spec.target = Target::find(&std::env::current_dir().unwrap_or_default(), board)?;
    let result = run_showing_progress(&spec)?;
    if arguments.json {
        let json = table::json(&spec, &arguments.board, &result);
        print_json(&json)
    } else {
        let text = table::text(&spec, &result);
        print(text.strip_suffix('\n').unwrap_or(&text))
    }
}

fn specification(arguments: &Args, board: EmulatedBoard) -> miette::Result<RunSpec> {
    let clock_hz = clock(arguments, board)?;
    let floods = arguments
        .flood
        .iter()
        .map(|text| {
            board
                .stimulus(text, clock_hz)
                .map_err(|error| miette!("--flood: {error}"))
        })
        .collect::<miette::Result<_>>()?;
    let hardware_limits = arguments
        .hardware_limit
        .iter()
        .map(|text| {
            hardware_limit(board, text, clock_hz)
                .map_err(|message| miette!("--hardware-limit: {message}"))
        })
        .collect::<miette::Result<_>>()?;
    let front = arguments.front.as_deref().map(front_controller).transpose();
    let in_cycles = |name: &str, time: Duration| {
        time.cycles(clock_hz)
            .map_err(|error: QuantityError| miette!("--{name}: {error}"))
    };
    Ok(RunSpec {
        target: Target::unfound(board),
        elf: arguments.firmware.clone(),
        clock_hz,
        warmup_cycles: in_cycles("warmup", arguments.warmup)?,
        cycles: in_cycles("for", arguments.run_for)?,
        floods,
        frames: Frames {
            bytes: arguments.frame_bytes,
            to: arguments.frame_to,
        },
        hardware_limits,
        front: front.map_err(|message| miette!("--front: {message}"))?,
        counters: arguments.counter.clone(),
        marks: Vec::new(),
        trace: false,
    })
}

/// Returns the board's clock in Hz. The clock of a microcontroller is never guessed: with a wrong
/// clock all rates would be wrong.
fn clock(arguments: &Args, board: EmulatedBoard) -> miette::Result<u64> {
    let stated = arguments.clock.map(Rate::whole_hertz);
    if !board.abilities().clock_by_firmware {
        return Ok(stated.unwrap_or(board.clock_hz()));
    }
    let firmware = &arguments.firmware;
    match (stated, elf::clock_hz(firmware)?) {
        (Some(stated), Some(compiled)) if stated != compiled => {
            let help =
                format!("leave --clock out, or compile the firmware with -DF_CPU={stated}UL");
            let [stated, compiled] = [stated, compiled].map(|hz| table::rate(hz as f64));
            Err(miette!(
                help = help,
                "--clock: the firmware was compiled for {compiled}, not for {stated}"
            ))
        }
        (Some(clock), _) | (None, Some(clock)) => Ok(clock),
        (None, None) => {
            // For a file that is not firmware, the loader has a better message.
            Image::load(firmware, &ATMEGA128)?;
            Err(miette!(
                help = "state it, for example --clock 16MHz; a firmware that includes <weir/avr.h> and is compiled with -DF_CPU=16000000UL says it itself",
                "{} does not say which clock it was compiled for",
                firmware.display()
            ))
        }
    }
}

fn hardware_limit(
    board: EmulatedBoard,
    text: &str,
    clock_hz: u64,
) -> Result<HardwareLimit, String> {
    let (line, rate) = text
        .split_once('=')
        .ok_or_else(|| format!("`{text}`: write LINE=RATE, for example INT0=4kHz"))?;
    let line = board.line(line).map_err(|error| format!("{error}"))?;
    let rate: Rate = rate.parse().map_err(|error| format!("{error}"))?;
    // The limiter must not admit more than the rate, so the interval is rounded up to whole cycles.
    let interval = rate.period_cycles(clock_hz).ceil();
    if interval > 9e15 {
        return Err(format!(
            "{rate} is less than once in the longest run: give a higher rate"
        ));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked above, and positive"
    )]
    let interval_cycles = (interval as u64).max(1);
    Ok(HardwareLimit {
        line,
        interval_cycles,
    })
}

fn front_controller(text: &str) -> Result<FrontController, String> {
    let mut pieces: Vec<&str> = text.split(':').collect();
    let mut front = FrontController {
        elf: PathBuf::new(),
        input: Line::INT0,
        output: "PB0".parse().map_err(|error| format!("{error}"))?,
        to: Line::INT0,
    };
    // The options are taken from the end, because a file name may contain colons.
    while let Some((name, value)) = pieces.last().and_then(|piece| piece.split_once('=')) {
        match name {
            "in" => front.input = value.parse().map_err(|error| format!("{error}"))?,
            "out" => front.output = value.parse().map_err(|error| format!("{error}"))?,
            "to" => front.to = value.parse().map_err(|error| format!("{error}"))?,
            _ => break,
        }
        pieces.pop();
    }
    front.elf = PathBuf::from(pieces.join(":"));
    if front.elf.as_os_str().is_empty() {
        return Err(format!(
            "`{text}` names no firmware: write FIRMWARE:in=INT0:out=PB0:to=INT0"
        ));
    }
    Ok(front)
}

fn run_showing_progress(spec: &RunSpec) -> miette::Result<RunResult> {
    let all = spec.cycles.saturating_add(spec.warmup_cycles);
    if !spec.target.board().abilities().progress {
        // The emulator's process reports no progress; the spinner is visible only on a terminal.
        let spinner = ProgressBar::new_spinner().with_message("simulating");
        spinner.enable_steady_tick(WallTime::from_millis(200));
        let result = run(spec);
        spinner.finish_and_clear();
        return Ok(result?);
    }
    let bar = ProgressBar::with_draw_target(Some(all), ProgressDrawTarget::hidden());
    if let Ok(style) = ProgressStyle::with_template("{wide_bar} {percent:>3} %, {eta} left") {
        bar.set_style(style);
    }
    let started = std::time::Instant::now();
    let result = run_with(spec, &mut |cycles| {
        if bar.is_hidden() && started.elapsed() > SILENT && std::io::stderr().is_terminal() {
            bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        bar.set_position(cycles);
    });
    bar.finish_and_clear();
    Ok(result?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hardware_limit_is_rounded_to_the_safe_side() {
        let limit = hardware_limit(EmulatedBoard::ATMEGA128, "INT3=3kHz", 4_000_000).unwrap();
        assert_eq!((limit.line, limit.interval_cycles), (Line::INT3, 1334));
        for text in ["INT0", "INT0=0Hz", "INT9=1kHz", "INT0=1e-300Hz"] {
            assert!(
                hardware_limit(EmulatedBoard::SOC, text, 4_000_000).is_err(),
                "{text}"
            );
        }
    }

    /// Commands that write files follow a rule for their names (docs/outputs.md). This command
    /// writes no files.
    #[test]
    fn the_only_path_is_the_firmware_that_it_reads() {
        let command = <Args as clap::Args>::augment_args(clap::Command::new("run"));
        let path = std::any::TypeId::of::<PathBuf>();
        let paths = command
            .get_arguments()
            .filter(|of| of.get_value_parser().type_id() == path);
        let paths: Vec<&str> = paths.map(|of| of.get_id().as_str()).collect();
        assert_eq!(paths, ["firmware"]);
    }

    #[test]
    fn a_front_controller_has_its_usual_pins() {
        let front = front_controller("dir:x/limiter.elf:to=INT4:out=PA3").unwrap();
        assert_eq!(front.elf, PathBuf::from("dir:x/limiter.elf"));
        assert_eq!(
            (front.input, front.output.to_string(), front.to),
            (Line::INT0, "PA3".to_owned(), Line::INT4)
        );
        assert!(front_controller("").is_err());
        assert!(front_controller("x.elf:to=INT8").is_err());
    }
}
