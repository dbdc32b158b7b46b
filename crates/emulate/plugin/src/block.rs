// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classifies the ends of the guest's instruction blocks.

/// The kind of instruction that ends a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlockEnd {
    /// An instruction that can return from an exception: BX, or a load of the PC.
    Return,
    /// WFI.
    Sleep,
    /// An instruction that masks or unmasks interrupts.
    Mask(Mask),
    /// Any other instruction.
    Other,
}

impl BlockEnd {
    /// Classifies a block by the halfwords of its last instruction.
    #[must_use]
    pub fn of(first: u16, second: u16) -> Self {
        let loads_pc = match first {
            // POP {..., pc}. BX is handled below.
            0xbd00..=0xbdff => true,
            // LDMIA and LDMDB, with or without writeback.
            _ if matches!(first & 0xffd0, 0xe890 | 0xe910) => second & 0x8000 != 0,
            // LDR.W.
            _ if matches!(first & 0xfff0, 0xf850 | 0xf8d0) => second >> 12 == 15,
            _ => false,
        };
        if loads_pc || first & 0xff87 == 0x4700 {
            Self::Return
        } else if first == 0xbf30 || (first, second) == (0xf3af, 0x8003) {
            Self::Sleep
        } else {
            Mask::of(first, second).map_or(Self::Other, Self::Mask)
        }
    }
}

/// An instruction that masks or unmasks interrupts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mask {
    /// CPSID i if true, CPSIE i if false.
    All(bool),
    /// MSR BASEPRI or BASEPRI_MAX from the register of this number. The register's value masks
    /// interrupts of some urgencies, or none if it is 0.
    Some(u8),
}

impl Mask {
    /// Decodes an instruction from its halfwords. `None` if it does not change the mask.
    pub(crate) fn of(first: u16, second: u16) -> Option<Self> {
        match (first, second) {
            (0xb672, _) => Some(Self::All(true)),
            (0xb662, _) => Some(Self::All(false)),
            (0xf380..=0xf38f, 0x8811 | 0x8812) => Some(Self::Some((first & 15) as u8)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_blocks_are_known() {
        use BlockEnd::{Other, Return, Sleep};
        for (first, second, end) in [
            (0x4770, 0, Return),      // bx lr
            (0x4718, 0, Return),      // bx r3
            (0x4798, 0, Other),       // blx r3
            (0xbd10, 0, Return),      // pop {r4, pc}
            (0xbc10, 0, Other),       // pop {r4}
            (0xe8bd, 0x87f0, Return), // ldmia.w sp!, {r4-r10, pc}
            (0xe8bd, 0x47f0, Other),  // ldmia.w sp!, {r4-r10, lr}
            (0xf85d, 0xfb04, Return), // ldr.w pc, [sp], #4
            (0xf85d, 0xeb04, Other),  // ldr.w lr, [sp], #4
            (0xbf30, 0, Sleep),
            (0xf3af, 0x8003, Sleep),
            (0xe7fe, 0, Other),                           // b .
            (0xb672, 0, BlockEnd::Mask(Mask::All(true))), // cpsid i
        ] {
            assert_eq!(BlockEnd::of(first, second), end, "{first:x} {second:x}");
        }
    }

    #[test]
    fn instructions_that_mask_are_known() {
        assert_eq!(Mask::of(0xb672, 0), Some(Mask::All(true)));
        assert_eq!(Mask::of(0xb662, 0), Some(Mask::All(false)));
        assert_eq!(Mask::of(0xf383, 0x8811), Some(Mask::Some(3)));
        assert_eq!(Mask::of(0xf380, 0x8812), Some(Mask::Some(0)));
        // The halfwords of `msr psp, r0` and `cpsid f`.
        assert_eq!(Mask::of(0xf380, 0x8809), None);
        assert_eq!(Mask::of(0xb671, 0), None);
    }
}
