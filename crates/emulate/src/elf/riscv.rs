// SPDX-License-Identifier: GPL-3.0-or-later
//! Firmware of the RISC-V on the board soc.
use std::path::Path;

use object::read::elf::{ElfFile32, ProgramHeader};
use object::{Endianness, Object, ObjectSection, ObjectSymbol, SymbolKind, elf};

use super::attributes::AttributeForm;
use super::{DataSymbol, ElfError, LoadTarget, Symbols};

/// The compiler command for the instructions that the processor executes.
const COMPILER: &str = "riscv64-unknown-elf-gcc -march=rv32i_zicsr -mabi=ilp32";
/// The extensions of RV32I that the processor has, or that need no support by the processor.
const EXTENSIONS: &[&str] = &["zicsr", "zifencei"];

/// A firmware, ready to be loaded.
#[derive(Debug, Clone)]
pub(crate) struct MemoryImage {
    /// The content of the RAM from address 0, no longer than the RAM.
    pub memory: Vec<u8>,
    symbols: Symbols,
}

impl MemoryImage {
    /// Reads firmware for a RAM of `ram_bytes` bytes at address 0, where the processor starts.
    pub fn load(path: &Path, chip: &str, ram_bytes: u32) -> Result<Self, ElfError> {
        let wanted = LoadTarget {
            path,
            machine: elf::EM_RISCV,
            chip,
            compiler: COMPILER,
            memory: "RAM",
            capacity: ram_bytes,
        };
        let bytes = wanted.read()?;
        let file = wanted.parse(&bytes)?;
        check_instructions(&file).map_err(|found| wanted.other(found))?;
        let memory = wanted.memory(&file, u64::MAX, 0)?;
        let variables = file.elf_program_headers().iter().map(|segment| {
            u64::from(segment.p_vaddr(file.endian())) + u64::from(segment.p_memsz(file.endian()))
        });
        if let Some(needed) = variables.max().filter(|end| *end > u64::from(ram_bytes)) {
            return Err(wanted.too_large(needed));
        }
        if file
            .section_by_name(".text")
            .is_some_and(|text| text.address() >= u64::from(ram_bytes))
        {
            return Err(wanted.not_elf("its code lies outside the RAM"));
        }
        let mut symbols = Symbols::new(path);
        for symbol in file.symbols() {
            let (Ok(name), Ok(address)) = (symbol.name(), u32::try_from(symbol.address())) else {
                continue;
            };
            if name.is_empty() || symbol.is_undefined() || symbol.section_index().is_none() {
                continue;
            }
            match (symbol.kind(), u8::try_from(symbol.size())) {
                (SymbolKind::Data, Ok(size)) if inside(address, size, ram_bytes) => {
                    symbols
                        .data
                        .insert(name.to_owned(), DataSymbol { address, size });
                }
                (SymbolKind::Text | SymbolKind::Label | SymbolKind::Unknown, _)
                    if address < ram_bytes =>
                {
                    symbols.code.insert(name.to_owned(), address);
                }
                _ => {}
            }
        }
        Ok(Self { memory, symbols })
    }

    /// Returns the variable of this name. Its size must be 1, 2, 4 or 8 bytes.
    pub fn variable(&self, name: &str) -> Result<DataSymbol, ElfError> {
        self.symbols.variable(name)
    }

    /// Returns the code address of this symbol.
    pub fn code_address(&self, name: &str) -> Result<u32, ElfError> {
        self.symbols.code_address(name)
    }
}

fn inside(address: u32, size: u8, ram_bytes: u32) -> bool {
    address
        .checked_add(u32::from(size))
        .is_some_and(|end| end <= ram_bytes)
}

/// Checks that the processor has the instructions that the file was compiled for. The error names
/// them.
fn check_instructions(file: &ElfFile32<'_, Endianness>) -> Result<(), String> {
    let flags = match Object::flags(file) {
        object::FileFlags::Elf { e_flags, .. } => e_flags,
        _ => 0,
    };
    if flags & elf::EF_RISCV_RVC != 0 {
        return Err("a RISC-V with compressed instructions".to_owned());
    }
    if flags & elf::EF_RISCV_FLOAT_ABI != 0 {
        return Err("a RISC-V with floating-point registers".to_owned());
    }
    match noted_instructions(file) {
        Some(noted) if !executes(&noted) => Err(format!("the instruction set {noted}")),
        _ => Ok(()),
    }
}

/// Returns Tag_RISCV_arch of the section `.riscv.attributes` (RISC-V ELF psABI), such as
/// `rv32i2p1_zicsr2p0`.
fn noted_instructions(file: &ElfFile32<'_, Endianness>) -> Option<String> {
    const FORM: AttributeForm = AttributeForm {
        section: ".riscv.attributes",
        vendor: "riscv",
        // Odd tags have a text, even tags a number.
        holds: |tag| (tag % 2 == 0, tag % 2 == 1),
    };
    const TAG_ARCH: u64 = 5;
    let mut attributes = FORM.read(file).into_iter();
    let noted = attributes.find(|of| of.tag == TAG_ARCH)?;
    String::from_utf8(noted.text).ok()
}

/// Returns whether the processor executes code compiled for `noted`.
fn executes(noted: &str) -> bool {
    let mut parts = noted.split('_').map(without_version);
    matches!(parts.next(), Some("rv32i" | "rv32e"))
        && parts.all(|extension| EXTENSIONS.contains(&extension))
}

/// Removes the version from an extension: `zicsr2p0` is version 2.0 of `zicsr`.
fn without_version(part: &str) -> &str {
    let Some((name, minor)) = part.rsplit_once('p') else {
        return part;
    };
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit());
    if minor.chars().all(|c| c.is_ascii_digit()) && bare.len() < name.len() {
        bare
    } else {
        part
    }
}

#[cfg(test)]
mod tests {
    use super::executes;

    #[test]
    fn only_instructions_that_the_processor_has_pass() {
        for noted in [
            "rv32i2p1_zicsr2p0",
            "rv32i2p1_zicsr2p0_zifencei2p0",
            "rv32e1p9",
            "rv32i",
        ] {
            assert!(executes(noted), "{noted}");
        }
        for noted in [
            "rv32i2p1_m2p0_zicsr2p0",
            "rv64i2p1",
            "rv32i2p1_c2p0",
            "rv32imac",
            "",
        ] {
            assert!(!executes(noted), "{noted}");
        }
    }
}
