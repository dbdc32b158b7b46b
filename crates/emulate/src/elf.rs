// SPDX-License-Identifier: GPL-3.0-or-later
//! Loads firmware: the content of the memory and the addresses of the symbols. This module contains
//! the code that all boards share.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use object::elf;
use object::read::elf::{ElfFile32, FileHeader, ProgramHeader};
use object::{Endianness, Object, ObjectSection, ObjectSymbol, SymbolKind};

mod attributes;
mod avr;
mod cortex;
mod riscv;

pub use avr::Image;
pub(crate) use cortex::CortexImage;
pub(crate) use riscv::MemoryImage;

/// A variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataSymbol {
    /// The address in data space.
    pub address: u32,
    /// The size in bytes.
    pub size: u8,
}

/// Why a file cannot be loaded as the board's firmware.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum ElfError {
    /// The file cannot be read.
    #[error("cannot read {}: {cause}", path.display())]
    #[diagnostic(help(
        "give the path of a firmware in ELF format, as the board's compiler links it"
    ))]
    Read {
        /// The path of the file.
        path: PathBuf,
        /// The operating system's error.
        cause: std::io::Error,
    },
    /// The file is not an ELF file, or it is damaged.
    #[error("{} is not an ELF file that can be loaded: {cause}", path.display())]
    #[diagnostic(help("give the ELF file that the compiler links, not a .hex, .bin or .o file"))]
    NotElf {
        /// The path of the file.
        path: PathBuf,
        /// The error in the file.
        cause: String,
    },
    /// The firmware is for another architecture or chip.
    #[error("{} is for {found}, not for the {wanted}", path.display())]
    #[diagnostic(help("compile the firmware with: {compiler}"))]
    OtherChip {
        /// The path of the file.
        path: PathBuf,
        /// The architecture or chip of the firmware.
        found: String,
        /// The board's chip.
        wanted: String,
        /// The command that compiles for the board.
        compiler: String,
    },
    /// The firmware does not fit into the memory.
    #[error("{} does not fit: it needs {needed} bytes of {memory} and the {chip} has {capacity}", path.display())]
    #[diagnostic(help("compile with -Os, or make the firmware smaller"))]
    TooLarge {
        /// The path of the file.
        path: PathBuf,
        /// The firmware's size in bytes.
        needed: u64,
        /// The kind of memory: `flash`.
        memory: &'static str,
        /// The name of the chip.
        chip: String,
        /// The memory's size in bytes.
        capacity: u32,
    },
    /// The parts of the firmware are compiled for different clocks.
    #[error("{} was compiled for {} Hz in one part and for {} Hz in another", path.display(), clocks[0], clocks[1])]
    #[diagnostic(help("compile all of it with the same -DF_CPU=...UL"))]
    Clocks {
        /// The path of the file.
        path: PathBuf,
        /// Two of the different clocks, in Hz.
        clocks: [u64; 2],
    },
    /// The firmware has no such symbol.
    #[error("{} has no {kind} `{name}`", path.display())]
    #[diagnostic(help("{help}"))]
    Symbol {
        /// The path of the file.
        path: PathBuf,
        /// `variable` or `place in the code`.
        kind: &'static str,
        /// The name that was searched for.
        name: String,
        /// Similar names, or all names.
        help: String,
    },
}

/// Returns the addresses of all symbols of a 32-bit ELF file. For functions of ARM firmware the bit
/// that marks Thumb code is cleared.
///
/// # Errors
/// Fails if the file cannot be read or is not an ELF file.
pub fn addresses(path: &Path) -> Result<BTreeMap<String, u32>, ElfError> {
    let bytes = std::fs::read(path).map_err(|cause| ElfError::Read {
        path: path.to_owned(),
        cause,
    })?;
    let file = ElfFile32::<Endianness>::parse(&*bytes).map_err(|cause| ElfError::NotElf {
        path: path.to_owned(),
        cause: cause.to_string(),
    })?;
    let addresses = file.symbols().filter_map(|symbol| {
        let thumb = u64::from(symbol.kind() == SymbolKind::Text);
        let address = u32::try_from(symbol.address() & !thumb).ok()?;
        Some((symbol.name().ok()?.to_owned(), address))
    });
    Ok(addresses.collect())
}

/// The section in which ports/avr stores the clock that a firmware was compiled for
/// (ports/avr/include/weir/avr/timers.h).
const CLOCK_SECTION: &str = ".weir.clock";

/// Returns the clock in Hz that a firmware was compiled for. `None` if the firmware does not state
/// it, or if the file is not a 32-bit ELF file.
///
/// # Errors
/// Fails if the file cannot be read, or if parts of the firmware were compiled for different
/// clocks.
pub fn clock_hz(path: &Path) -> Result<Option<u64>, ElfError> {
    let bytes = std::fs::read(path).map_err(|cause| ElfError::Read {
        path: path.to_owned(),
        cause,
    })?;
    // If the file is not a 32-bit ELF file, the loader reports that later.
    let Ok(file) = ElfFile32::<Endianness>::parse(&*bytes) else {
        return Ok(None);
    };
    let section = file.section_by_name(CLOCK_SECTION);
    let content = section
        .and_then(|section| section.data().ok())
        .unwrap_or_default();
    let words = content.chunks_exact(4);
    let mut clocks = words
        .filter_map(|word| word.try_into().ok())
        .map(|word| u64::from(u32::from_le_bytes(word)));
    let Some(first) = clocks.next().filter(|&hz| hz != 0) else {
        return Ok(None);
    };
    match clocks.find(|&hz| hz != first) {
        Some(other) => Err(ElfError::Clocks {
            path: path.to_owned(),
            clocks: [first, other],
        }),
        None => Ok(Some(first)),
    }
}

/// The board's requirements for a firmware file.
struct LoadTarget<'a> {
    path: &'a Path,
    /// The architecture's number in ELF.
    machine: u16,
    /// The chip's name in messages.
    chip: &'a str,
    compiler: &'a str,
    memory: &'static str,
    /// The memory's size in bytes.
    capacity: u32,
}

impl LoadTarget<'_> {
    fn not_elf(&self, cause: impl Into<String>) -> ElfError {
        ElfError::NotElf {
            path: self.path.to_owned(),
            cause: cause.into(),
        }
    }

    fn other(&self, found: String) -> ElfError {
        ElfError::OtherChip {
            path: self.path.to_owned(),
            found,
            wanted: self.chip.to_owned(),
            compiler: self.compiler.to_owned(),
        }
    }

    fn too_large(&self, needed: u64) -> ElfError {
        ElfError::TooLarge {
            path: self.path.to_owned(),
            needed,
            memory: self.memory,
            chip: self.chip.to_owned(),
            capacity: self.capacity,
        }
    }

    fn read(&self) -> Result<Vec<u8>, ElfError> {
        std::fs::read(self.path).map_err(|cause| ElfError::Read {
            path: self.path.to_owned(),
            cause,
        })
    }

    /// Parses a linked file for the board's architecture.
    fn parse<'data>(&self, bytes: &'data [u8]) -> Result<ElfFile32<'data, Endianness>, ElfError> {
        // Another word size or byte order also means another architecture, so it gets the same
        // message.
        match object::FileKind::parse(bytes)
            .map_err(|_| self.not_elf("it does not begin with an ELF header"))?
        {
            object::FileKind::Elf32 => {}
            object::FileKind::Elf64 => return Err(self.other(architecture(bytes))),
            _ => return Err(self.not_elf("it has another object format")),
        }
        let file: ElfFile32<'_, Endianness> = ElfFile32::parse(bytes)
            .map_err(|error| self.not_elf(error.to_string().to_lowercase()))?;
        let endian = file.endian();
        let header = file.elf_header();
        if header.e_machine(endian) != self.machine {
            return Err(self.other(architecture(bytes)));
        }
        if header.e_type(endian) != elf::ET_EXEC {
            return Err(self.not_elf("it is not linked"));
        }
        Ok(file)
    }

    /// Returns the content of memory from address 0 to the last loaded byte below `end`. Gaps are
    /// filled with `fill`.
    fn memory(
        &self,
        file: &ElfFile32<'_, Endianness>,
        end: u64,
        fill: u8,
    ) -> Result<Vec<u8>, ElfError> {
        let endian = file.endian();
        let mut memory = Vec::new();
        for segment in file.elf_program_headers() {
            let load = u64::from(segment.p_paddr(endian));
            if segment.p_type(endian) != elf::PT_LOAD || load >= end {
                continue;
            }
            let content = segment
                .data(endian, file.data())
                .map_err(|()| self.not_elf("a segment lies outside the file"))?;
            let last = load + content.len() as u64;
            if last > u64::from(self.capacity) {
                return Err(self.too_large(last));
            }
            let (start, last) = (to_index(load), to_index(last));
            if memory.len() < last {
                memory.resize(last, fill);
            }
            memory[start..last].copy_from_slice(content);
        }
        if memory.is_empty() {
            return Err(self.not_elf("it has no code"));
        }
        Ok(memory)
    }
}

/// The symbols of a firmware, by name.
#[derive(Debug, Clone)]
struct Symbols {
    path: PathBuf,
    data: BTreeMap<String, DataSymbol>,
    code: BTreeMap<String, u32>,
}

impl Symbols {
    fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            data: BTreeMap::new(),
            code: BTreeMap::new(),
        }
    }

    /// Returns the variable of this name. Its size must be 1, 2, 4 or 8 bytes.
    fn variable(&self, name: &str) -> Result<DataSymbol, ElfError> {
        self.data
            .get(name)
            .copied()
            .filter(|symbol| matches!(symbol.size, 1 | 2 | 4 | 8))
            .ok_or_else(|| {
                let help = match self.data.get(name) {
                    Some(symbol) => format!(
                        "`{name}` has {} bytes: only variables of 1, 2, 4 or 8 bytes count",
                        symbol.size
                    ),
                    None => near(name, self.data.keys()),
                };
                self.no_symbol("variable", name, help)
            })
    }

    /// Returns the code address of this symbol, in bytes.
    fn code_address(&self, name: &str) -> Result<u32, ElfError> {
        self.code
            .get(name)
            .copied()
            .ok_or_else(|| self.no_symbol("place in the code", name, near(name, self.code.keys())))
    }

    fn no_symbol(&self, kind: &'static str, name: &str, help: String) -> ElfError {
        ElfError::Symbol {
            path: self.path.clone(),
            kind,
            name: name.to_owned(),
            help,
        }
    }
}

fn to_index(address: u64) -> usize {
    usize::try_from(address).unwrap_or(usize::MAX)
}

/// Returns the name of an ELF file's architecture.
fn architecture(bytes: &[u8]) -> String {
    match object::File::parse(bytes) {
        Ok(file) => format!("the architecture {:?}", file.architecture()),
        Err(_) => "another architecture".to_owned(),
    }
}

fn near<'a>(wanted: &str, names: impl Iterator<Item = &'a String>) -> String {
    let mut names: Vec<(usize, &str)> = names
        .filter(|name| !name.starts_with("__"))
        .map(|name| (distance(wanted, name), name.as_str()))
        .collect();
    names.sort_unstable();
    let list: Vec<&str> = names.iter().take(8).map(|(_, name)| *name).collect();
    match list.len() {
        0 => "the ELF has no symbols: link without -s".to_owned(),
        count if count == names.len() => format!("there are: {}", list.join(", ")),
        _ => format!("near names: {}", list.join(", ")),
    }
}

/// Returns the Levenshtein distance in bytes. The result is small if one name contains the other.
fn distance(a: &str, b: &str) -> usize {
    if b.contains(a) || a.contains(b) {
        return a.len().abs_diff(b.len()).min(2);
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let above = row[j + 1];
            row[j + 1] = (diagonal + usize::from(x != y))
                .min(above + 1)
                .min(row[j] + 1);
            diagonal = above;
        }
    }
    row[b.len()]
}
