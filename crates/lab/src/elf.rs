// SPDX-License-Identifier: GPL-3.0-or-later
//! Loads a firmware: what goes into the flash, and where its symbols are.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use object::elf;
use object::read::elf::{ElfFile32, FileHeader, ProgramHeader};
use object::{Endianness, Object, ObjectSection, ObjectSymbol};

use crate::chip::Chip;

/// Data addresses are above this in an AVR ELF: flash, data and EEPROM share one address space there.
const DATA_SPACE: u64 = 0x80_0000;
const EEPROM_SPACE: u64 = 0x81_0000;

/// A firmware, ready to be loaded.
#[derive(Debug, Clone)]
pub struct Image {
    /// The file.
    pub path: PathBuf,
    /// The flash's content from address 0; shorter than the flash.
    pub flash: Vec<u8>,
    /// The end of the static variables in data space, if the ELF says: a stack below it destroys them.
    pub data_end: Option<u16>,
    data: BTreeMap<String, DataSymbol>,
    code: BTreeMap<String, u32>,
}

/// A variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataSymbol {
    /// In data space.
    pub address: u16,
    /// In bytes.
    pub size: u8,
}

/// Why a file is no firmware for the chip.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum ElfError {
    /// The file cannot be read.
    #[error("cannot read {}: {cause}", path.display())]
    #[diagnostic(help("give the path of a firmware in ELF format, as avr-gcc links it"))]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        #[source]
        cause: std::io::Error,
    },
    /// It is something else.
    #[error("{} is not an ELF file that can be loaded: {cause}", path.display())]
    #[diagnostic(help("give the ELF file that avr-gcc links, not a .hex, .bin or .o file"))]
    NotElf {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        cause: String,
    },
    /// It is for another architecture or chip.
    #[error("{} is for {found}, not for the {wanted}", path.display())]
    #[diagnostic(help("compile it with: avr-gcc -mmcu={wanted}"))]
    OtherChip {
        /// The file.
        path: PathBuf,
        /// What it is for.
        found: String,
        /// The board's chip.
        wanted: String,
    },
    /// It does not fit.
    #[error("{} does not fit: it needs {needed} bytes of flash and the {chip} has {flash}", path.display())]
    #[diagnostic(help("compile with -Os, or leave something out"))]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// In bytes.
        needed: u64,
        /// The chip.
        chip: String,
        /// In bytes.
        flash: u32,
    },
    /// There is no such symbol.
    #[error("{} has no {kind} `{name}`", path.display())]
    #[diagnostic(help("{help}"))]
    Symbol {
        /// The file.
        path: PathBuf,
        /// `variable` or `place in the code`.
        kind: &'static str,
        /// What was asked for.
        name: String,
        /// Near names, or those that exist.
        help: String,
    },
}

impl Image {
    /// Reads a firmware for `chip`.
    ///
    /// # Errors
    /// A file that cannot be read, is no linked ELF file, is for another chip or too large.
    pub fn load(path: &Path, chip: &Chip) -> Result<Self, ElfError> {
        let bytes = std::fs::read(path).map_err(|cause| ElfError::Read {
            path: path.to_owned(),
            cause,
        })?;
        let not_elf = |cause: String| ElfError::NotElf {
            path: path.to_owned(),
            cause,
        };
        let other = |found: String| ElfError::OtherChip {
            path: path.to_owned(),
            found,
            wanted: chip.name.clone(),
        };
        // Of another word size or byte order is an architecture too, and deserves the same message.
        match object::FileKind::parse(&*bytes)
            .map_err(|_| not_elf("it does not begin like one".to_owned()))?
        {
            object::FileKind::Elf32 => {}
            object::FileKind::Elf64 => return Err(other(architecture(&bytes))),
            _ => return Err(not_elf("it is of another object format".to_owned())),
        }
        let file: ElfFile32<'_, Endianness> =
            ElfFile32::parse(&*bytes).map_err(|error| not_elf(error.to_string().to_lowercase()))?;
        let endian = file.endian();
        let header = file.elf_header();
        if header.e_machine(endian) != elf::EM_AVR {
            return Err(other(architecture(&bytes)));
        }
        if header.e_type(endian) != elf::ET_EXEC {
            return Err(not_elf("it is not linked".to_owned()));
        }
        check_chip(&file, chip).map_err(other)?;

        let mut flash = Vec::new();
        for segment in file.elf_program_headers() {
            let load = u64::from(segment.p_paddr(endian));
            if segment.p_type(endian) != elf::PT_LOAD || load >= DATA_SPACE {
                continue;
            }
            let content = segment
                .data(endian, &*bytes)
                .map_err(|()| not_elf("a segment lies outside the file".to_owned()))?;
            let end = load + content.len() as u64;
            if end > u64::from(chip.flash_bytes) {
                return Err(ElfError::TooLarge {
                    path: path.to_owned(),
                    needed: end,
                    chip: chip.name.clone(),
                    flash: chip.flash_bytes,
                });
            }
            let (start, end) = (to_index(load), to_index(end));
            if flash.len() < end {
                flash.resize(end, 0xff);
            }
            flash[start..end].copy_from_slice(content);
        }
        if flash.is_empty() {
            return Err(not_elf("there is no code in it".to_owned()));
        }
        let mut image = Self {
            path: path.to_owned(),
            flash,
            data_end: None,
            data: BTreeMap::new(),
            code: BTreeMap::new(),
        };
        image.read_symbols(&file, chip);
        Ok(image)
    }

    fn read_symbols(&mut self, file: &ElfFile32<'_, Endianness>, chip: &Chip) {
        for symbol in file.symbols() {
            let (Ok(name), address) = (symbol.name(), symbol.address()) else {
                continue;
            };
            if name.is_empty() || symbol.is_undefined() {
                continue;
            }
            if name == "_end" && (DATA_SPACE..EEPROM_SPACE).contains(&address) {
                self.data_end = u16::try_from(address - DATA_SPACE).ok();
            } else if (DATA_SPACE..EEPROM_SPACE).contains(&address) {
                if let (Ok(address), Ok(size)) = (
                    u16::try_from(address - DATA_SPACE),
                    u8::try_from(symbol.size()),
                ) {
                    if symbol.kind() == object::SymbolKind::Data
                        && u32::from(address) + u32::from(size) <= u32::from(chip.ram_end) + 1
                    {
                        self.data
                            .insert(name.to_owned(), DataSymbol { address, size });
                    }
                }
            } else if address < u64::from(chip.flash_bytes) && symbol.section_index().is_some() {
                if let Ok(address) = u32::try_from(address) {
                    self.code.insert(name.to_owned(), address);
                }
            }
        }
    }

    /// The variable of this name: 1, 2, 4 or 8 bytes.
    ///
    /// # Errors
    /// When there is none; the message lists near names, or all when there are few.
    pub fn variable(&self, name: &str) -> Result<DataSymbol, ElfError> {
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

    /// The address of this symbol in the flash, in bytes.
    ///
    /// # Errors
    /// When there is none; the message lists near names.
    pub fn code_address(&self, name: &str) -> Result<u32, ElfError> {
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

    /// The function that holds `address`, and the address: `main+0x12 (0x01a4)`.
    #[must_use]
    pub fn place(&self, address: u32) -> String {
        let nearest = self
            .code
            .iter()
            .filter(|(_, start)| **start <= address)
            .max_by_key(|(_, start)| **start);
        match nearest {
            Some((name, start)) if *start == address => format!("{name} (0x{address:04x})"),
            Some((name, start)) => format!("{name}+0x{:x} (0x{address:04x})", address - start),
            None => format!("0x{address:04x}"),
        }
    }

    /// Whether the vector at `address` leads to the C library's trap for interrupts without a handler.
    #[must_use]
    pub fn is_bad_interrupt(&self, address: u32) -> bool {
        let Some(&trap) = self.code.get("__bad_interrupt") else {
            return false;
        };
        let at = to_index(u64::from(address));
        let Some(&[a, b, c, d]) = self.flash.get(at..at + 4) else {
            return false;
        };
        let opcode = u16::from_le_bytes([a, b]);
        if opcode & 0xfe0e == 0x940c {
            let low = u32::from(u16::from_le_bytes([c, d]));
            let high = (u32::from(opcode & 0x01f0) >> 3) | u32::from(opcode & 1);
            return ((high << 16) | low) << 1 == trap;
        }
        if opcode & 0xf000 == 0xc000 {
            // RJMP: twelve bits of words, signed, from the next instruction.
            let words = i32::from((((opcode & 0x0fff) << 4) as i16) >> 4);
            return address.checked_add_signed(2 + 2 * words) == Some(trap);
        }
        false
    }
}

fn to_index(address: u64) -> usize {
    usize::try_from(address).unwrap_or(usize::MAX)
}

/// The machine of an ELF file in words.
fn architecture(bytes: &[u8]) -> String {
    match object::File::parse(bytes) {
        Ok(file) => format!("the architecture {:?}", file.architecture()),
        Err(_) => "another architecture".to_owned(),
    }
}

/// The chip as the compiler noted it; an ELF without a note passes if its instruction set is the chip's.
fn check_chip(file: &ElfFile32<'_, Endianness>, chip: &Chip) -> Result<(), String> {
    let arch = match object::Object::flags(file) {
        object::FileFlags::Elf { e_flags, .. } => e_flags & 0x7f,
        _ => 0,
    };
    if let Some(found) = noted_chip(file) {
        return if found == chip.name {
            Ok(())
        } else {
            Err(format!("the {found}"))
        };
    }
    if arch == chip.elf_arch {
        Ok(())
    } else {
        Err(format!("chips of the family avr{arch}"))
    }
}

/// From simavr's section `.mmcu` or from avr-libc's device note.
fn noted_chip(file: &ElfFile32<'_, Endianness>) -> Option<String> {
    let text = |bytes: &[u8]| {
        let end = bytes
            .iter()
            .position(|&byte| byte == 0)
            .unwrap_or(bytes.len());
        let name = std::str::from_utf8(&bytes[..end]).ok()?;
        (!name.is_empty() && name.is_ascii()).then(|| name.to_ascii_lowercase())
    };
    if let Some(section) = file.section_by_name(".mmcu") {
        // Tagged, length-prefixed entries: tag 1 is the name.
        let mut rest = section.data().ok()?;
        while let [tag, length, after @ ..] = rest {
            let value = after.get(..usize::from(*length))?;
            if *tag == 1 {
                return text(value);
            }
            rest = &after[usize::from(*length)..];
        }
    }
    let note = file
        .section_by_name(".note.gnu.avr.deviceinfo")?
        .data()
        .ok()?;
    let word = |at: usize| {
        note.get(at..at + 4)
            .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
    };
    let name_size = usize::try_from(word(0)?).ok()?;
    // The description: six addresses and sizes, the offsets' table's size, the offset of the name, then the strings.
    let description = 12 + name_size.next_multiple_of(4);
    let table_size = usize::try_from(word(description + 24)?).ok()?;
    let strings = description + 24 + table_size.max(4);
    let offset = usize::try_from(word(description + 28)?).ok()?;
    text(note.get(strings.checked_add(offset)?..)?)
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

/// Levenshtein's distance, in bytes; a name that contains the other is near.
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
