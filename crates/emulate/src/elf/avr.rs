// SPDX-License-Identifier: GPL-3.0-or-later
//! Firmware of AVR microcontrollers.
use std::path::{Path, PathBuf};

use object::read::elf::ElfFile32;
use object::{Endianness, Object, ObjectSection, ObjectSymbol, elf};

use super::{DataSymbol, ElfError, LoadTarget, Symbols, to_index};
use crate::chip::Chip;

/// The offset of data addresses in an AVR ELF file. Flash, data and EEPROM share one address space
/// there.
const DATA_SPACE: u64 = 0x80_0000;
const EEPROM_SPACE: u64 = 0x81_0000;

/// A firmware, ready to be loaded.
#[derive(Debug, Clone)]
pub struct Image {
    /// The path of the file.
    pub path: PathBuf,
    /// The content of the flash from address 0, no longer than the flash.
    pub flash: Vec<u8>,
    /// The end of the static variables in data space. `None` if the ELF file does not state it. A
    /// stack that grows below this address overwrites the variables.
    pub data_end: Option<u16>,
    symbols: Symbols,
}

impl Image {
    /// Reads a firmware for `chip`.
    ///
    /// # Errors
    /// Fails if the file cannot be read, is not a linked ELF file, is for another chip, or is too
    /// large.
    pub fn load(path: &Path, chip: &Chip) -> Result<Self, ElfError> {
        let wanted = LoadTarget {
            path,
            machine: elf::EM_AVR,
            chip: chip.name(),
            compiler: &format!("avr-gcc -mmcu={}", chip.name()),
            memory: "flash",
            capacity: chip.avr.flash_bytes,
        };
        let bytes = wanted.read()?;
        let file = wanted.parse(&bytes)?;
        check_chip(&file, chip).map_err(|found| wanted.other(found))?;
        let mut image = Self {
            path: path.to_owned(),
            flash: wanted.memory(&file, DATA_SPACE, 0xff)?,
            data_end: None,
            symbols: Symbols::new(path),
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
                    u32::try_from(address - DATA_SPACE),
                    u8::try_from(symbol.size()),
                ) {
                    if symbol.kind() == object::SymbolKind::Data
                        && address + u32::from(size) <= u32::from(chip.avr.ram_end) + 1
                    {
                        self.symbols
                            .data
                            .insert(name.to_owned(), DataSymbol { address, size });
                    }
                }
            } else if address < u64::from(chip.avr.flash_bytes) && symbol.section_index().is_some()
            {
                if let Ok(address) = u32::try_from(address) {
                    self.symbols.code.insert(name.to_owned(), address);
                }
            }
        }
    }

    /// Returns the variable of this name. Its size must be 1, 2, 4 or 8 bytes.
    ///
    /// # Errors
    /// Fails if there is no such variable. The message lists similar names, or all names if there
    /// are few.
    pub fn variable(&self, name: &str) -> Result<DataSymbol, ElfError> {
        self.symbols.variable(name)
    }

    /// Returns the address of this symbol in the flash, in bytes.
    ///
    /// # Errors
    /// Fails if there is no such symbol. The message lists similar names.
    pub fn code_address(&self, name: &str) -> Result<u32, ElfError> {
        self.symbols.code_address(name)
    }

    /// Returns the function that contains `address`, with the address: `main+0x12 (0x01a4)`.
    #[must_use]
    pub fn place(&self, address: u32) -> String {
        let nearest = self
            .symbols
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

    /// Returns whether the vector at `address` leads to the C library's default handler, which
    /// traps interrupts without a handler.
    #[must_use]
    pub fn is_bad_interrupt(&self, address: u32) -> bool {
        let Some(&trap) = self.symbols.code.get("__bad_interrupt") else {
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
            // The operand of RJMP is a signed 12-bit offset in words, relative to the next
            // instruction.
            let words = i32::from((((opcode & 0x0fff) << 4) as i16) >> 4);
            return address.checked_add_signed(2 + 2 * words) == Some(trap);
        }
        false
    }
}

/// Checks the chip that the compiler recorded. A file without a record is accepted if it has the
/// chip's instruction set.
fn check_chip(file: &ElfFile32<'_, Endianness>, chip: &Chip) -> Result<(), String> {
    let arch = match object::Object::flags(file) {
        object::FileFlags::Elf { e_flags, .. } => e_flags & 0x7f,
        _ => 0,
    };
    if let Some(found) = noted_chip(file) {
        return if found == chip.name() {
            Ok(())
        } else {
            Err(format!("the {found}"))
        };
    }
    if arch == chip.avr.elf_arch {
        Ok(())
    } else {
        Err(format!("chips of the family avr{arch}"))
    }
}

/// Returns the chip's name from simavr's section `.mmcu` or from avr-libc's device note.
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
        // The section has tagged, length-prefixed entries: tag 1 is the name.
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
    // The device note contains six addresses and sizes, the size of the offset table, the offset of
    // the name, and the strings.
    let description = 12 + name_size.next_multiple_of(4);
    let table_size = usize::try_from(word(description + 24)?).ok()?;
    let strings = description + 24 + table_size.max(4);
    let offset = usize::try_from(word(description + 28)?).ok()?;
    text(note.get(strings.checked_add(offset)?..)?)
}
