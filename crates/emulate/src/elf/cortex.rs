// SPDX-License-Identifier: GPL-3.0-or-later
//! Firmware of the Cortex-M3 on the board mps2-an385.
use std::ops::Range;
use std::path::Path;

use object::read::elf::{ElfFile32, ProgramHeader};
use object::{Endianness, Object, ObjectSymbol, SymbolKind, elf};

use super::attributes::AttributeForm;
use super::{DataSymbol, ElfError, LoadTarget, Symbols};

/// The compiler command for the instructions that the processor executes.
const COMPILER: &str = "arm-none-eabi-gcc -mcpu=cortex-m3 -mthumb";
/// The board's memories (AN385): code and data at 0, data, the block RAM, and the PSRAM.
const MEMORIES: [Range<u64>; 4] = [
    0..0x40_0000,
    0x0100_0000..0x0101_0000,
    0x2000_0000..0x2040_0000,
    0x2100_0000..0x2200_0000,
];

/// A firmware that QEMU can load.
#[derive(Debug, Clone)]
pub(crate) struct CortexImage {
    symbols: Symbols,
}

impl CortexImage {
    /// Reads a firmware.
    pub fn load(path: &Path, chip: &str) -> Result<Self, ElfError> {
        let wanted = LoadTarget {
            path,
            machine: elf::EM_ARM,
            chip,
            compiler: COMPILER,
            memory: "memory",
            capacity: 0x40_0000,
        };
        let bytes = wanted.read()?;
        let file = wanted.parse(&bytes)?;
        if let Some(found) = noted_core(&file) {
            return Err(wanted.other(found));
        }
        check_memory(&file).map_err(|cause| wanted.not_elf(cause))?;
        let mut symbols = Symbols::new(path);
        for symbol in file.symbols() {
            let (Ok(name), Ok(address)) = (symbol.name(), u32::try_from(symbol.address())) else {
                continue;
            };
            // Mapping symbols such as `$t` mark the kinds of bytes.
            if name.is_empty() || name.starts_with('$') || symbol.section_index().is_none() {
                continue;
            }
            match (symbol.kind(), u8::try_from(symbol.size())) {
                (SymbolKind::Data, Ok(size)) => {
                    let symbol = DataSymbol { address, size };
                    symbols.data.insert(name.to_owned(), symbol);
                }
                // Bit 0 marks Thumb code.
                (SymbolKind::Text, _) => {
                    symbols.code.insert(name.to_owned(), address & !1);
                }
                _ => {}
            }
        }
        Ok(Self { symbols })
    }

    /// Returns the variable of this name. Its size must be 1, 2, 4 or 8 bytes.
    pub fn variable(&self, name: &str) -> Result<DataSymbol, ElfError> {
        self.symbols.variable(name)
    }

    /// Describes the place of an instruction for users.
    pub fn place(&self, address: u32) -> String {
        let before = self.symbols.code.iter().filter(|(_, at)| **at <= address);
        match before.max_by_key(|(_, at)| **at) {
            Some((name, _)) => format!("{name} (0x{address:x})"),
            None => format!("0x{address:x}"),
        }
    }
}

/// Checks that all loaded bytes fit the board's memories, and that the processor finds its first
/// instruction.
fn check_memory(file: &ElfFile32<'_, Endianness>) -> Result<(), String> {
    let endian = file.endian();
    let mut vectors: Option<[u8; 8]> = None;
    for segment in file.elf_program_headers() {
        let (load, size) = (
            u64::from(segment.p_paddr(endian)),
            u64::from(segment.p_memsz(endian)),
        );
        if segment.p_type(endian) != elf::PT_LOAD || size == 0 {
            continue;
        }
        let content = segment
            .data(endian, file.data())
            .map_err(|()| "a segment lies outside the file".to_owned())?;
        let runs = u64::from(segment.p_vaddr(endian));
        for begin in [load, runs] {
            let is_inside =
                |memory: &Range<u64>| memory.start <= begin && begin + size <= memory.end;
            if !MEMORIES.iter().any(is_inside) {
                return Err(format!(
                    "the board has no memory for a segment of {size} bytes at 0x{begin:x}: there are 4 MiB at 0, 4 MiB at 0x20000000 and 16 MiB at 0x21000000"
                ));
            }
        }
        if load == 0 {
            vectors = content.get(..8).and_then(|bytes| bytes.try_into().ok());
        }
    }
    let Some([_, _, _, _, a, b, c, d]) = vectors else {
        return Err("it has no vector table at address 0, where the processor looks".to_owned());
    };
    let reset = u64::from(u32::from_le_bytes([a, b, c, d]));
    if reset & 1 == 0 || !MEMORIES.iter().any(|memory| memory.contains(&reset)) {
        return Err(format!(
            "its reset vector, the second word at address 0, is 0x{reset:x}, which is no Thumb code in the board's memory"
        ));
    }
    Ok(())
}

/// Returns the core that a file was compiled for if the Cortex-M3 cannot execute its code, else
/// `None`. The core is read from Tag_CPU_arch and Tag_CPU_arch_profile in the section
/// `.ARM.attributes` (ABI for the Arm Architecture, Addenda).
fn noted_core(file: &ElfFile32<'_, Endianness>) -> Option<String> {
    const FORM: AttributeForm = AttributeForm {
        section: ".ARM.attributes",
        vendor: "aeabi",
        holds: |tag| match tag {
            32 => (true, true),
            // CPU_raw_name, CPU_name, and all odd tags from 32 on have texts.
            4 | 5 => (false, true),
            _ => (tag < 32 || tag % 2 == 0, tag > 32 && tag % 2 == 1),
        },
    };
    const TAG_CPU_ARCH: u64 = 6;
    const TAG_CPU_ARCH_PROFILE: u64 = 7;
    const MICROCONTROLLER: u64 = b'M' as u64;
    let attributes = FORM.read(file);
    let number = |tag: u64| {
        let mut latest = attributes.iter().rev();
        latest.find(|of| of.tag == tag).map(|of| of.number)
    };
    let (arch, profile) = (number(TAG_CPU_ARCH), number(TAG_CPU_ARCH_PROFILE));
    match (arch?, profile) {
        // ARMv7-M, ARMv6-M and ARMv6S-M.
        (10, Some(MICROCONTROLLER)) | (11 | 12, _) => None,
        (13, _) => Some("a Cortex-M4 or M7 (ARMv7E-M)".to_owned()),
        (16 | 17 | 21, _) => Some("a Cortex-M23 or newer (ARMv8-M)".to_owned()),
        _ => Some("an Arm that is no Cortex-M3".to_owned()),
    }
}
