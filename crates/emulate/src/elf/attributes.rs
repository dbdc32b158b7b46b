// SPDX-License-Identifier: GPL-3.0-or-later
//! Build attributes, with which a compiler records the target of a file. Arm's ABI has introduced
//! these sections, and RISC-V has adopted them.
use object::Endianness;
use object::read::elf::{ElfFile32, SectionHeader as _};

/// An attribute that applies to a whole file.
pub(super) struct Attribute {
    pub tag: u64,
    /// The number of the attribute. 0 if it has none.
    pub number: u64,
    /// The text of the attribute. Empty if it has none.
    pub text: Vec<u8>,
}

/// The name of the section with the attributes, and the types of their values.
pub(super) struct AttributeForm {
    pub section: &'static str,
    pub vendor: &'static str,
    /// Returns, for a tag, whether its attribute has a number and whether it has a text.
    pub holds: fn(u64) -> (bool, bool),
}

impl AttributeForm {
    /// Returns the attributes of `file`, up to the first one that cannot be parsed.
    pub fn read(&self, file: &ElfFile32<'_, Endianness>) -> Vec<Attribute> {
        let mut found = Vec::new();
        // A file without the section has no attributes.
        let _ = self.read_into(file, &mut found);
        found
    }

    fn read_into(
        &self,
        file: &ElfFile32<'_, Endianness>,
        found: &mut Vec<Attribute>,
    ) -> Option<()> {
        const TAG_FILE: u8 = 1;
        let endian = file.endian();
        let sections = file.elf_section_table();
        let (_, section) = sections.section_by_name(endian, self.section.as_bytes())?;
        let attributes = section.attributes(endian, file.data()).ok()?;
        let mut subsections = attributes.subsections().ok()?;
        while let Some(subsection) = subsections.next().ok()? {
            if subsection.vendor() != self.vendor.as_bytes() {
                continue;
            }
            let mut parts = subsection.subsubsections();
            while let Some(part) = parts.next().ok()? {
                if part.tag() != TAG_FILE {
                    continue;
                }
                let mut reader = part.attributes();
                while let Some(tag) = reader.read_tag().ok()? {
                    let (has_number, has_text) = (self.holds)(tag);
                    let mut attribute = Attribute {
                        tag,
                        number: 0,
                        text: Vec::new(),
                    };
                    if has_number {
                        attribute.number = reader.read_integer().ok()?;
                    }
                    if has_text {
                        attribute.text = reader.read_string().ok()?.to_vec();
                    }
                    found.push(attribute);
                }
            }
        }
        Some(())
    }
}
