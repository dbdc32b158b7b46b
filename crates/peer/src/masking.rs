// SPDX-License-Identifier: MIT OR Apache-2.0
//! For how long interrupts are masked.

/// An instruction that masks interrupts or lets them come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mask {
    /// CPSID i, or else CPSIE i.
    All(bool),
    /// MSR BASEPRI, or BASEPRI_MAX, from this register: interrupts of some urgencies, none if it
    /// is 0.
    Some(u8),
}

impl Mask {
    /// The instruction with these halfwords, if it is one.
    pub(crate) fn of(first: u16, second: u16) -> Option<Self> {
        match (first, second) {
            (0xb672, _) => Some(Self::All(true)),
            (0xb662, _) => Some(Self::All(false)),
            (0xf380..=0xf38f, 0x8811 | 0x8812) => Some(Self::Some((first & 15) as u8)),
            _ => None,
        }
    }
}

/// Whose instructions they are: a thread, or an exception and how many it is nested in.
pub(crate) type Context = (usize, u32);

/// Follows what is masked.
#[derive(Debug, Default)]
pub(crate) struct Masking {
    all: bool,
    some: bool,
    /// Who has masked interrupts, and how many instructions it had executed.
    since: Option<(Context, u64)>,
    /// The most instructions that one executed while it had interrupts masked.
    pub longest: u64,
}

impl Masking {
    /// A context that has executed `own` instructions changes what is masked. `value` is that of
    /// the instruction's register.
    pub fn change(&mut self, mask: Mask, value: u32, context: Context, own: u64) {
        let before = self.all || self.some;
        match mask {
            Mask::All(on) => self.all = on,
            Mask::Some(_) => self.some = value != 0,
        }
        let is_masked = self.all || self.some;
        if is_masked && !before {
            self.since = Some((context, own));
        } else if before && !is_masked {
            let section = self.since.take().filter(|(whose, _)| *whose == context);
            if let Some((_, begin)) = section {
                self.longest = self.longest.max(own.saturating_sub(begin));
            }
        }
    }

    /// Forgets what was measured. A section that has begun is not measured.
    pub fn clear(&mut self) {
        self.since = None;
        self.longest = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_lasts_from_the_first_mask_to_the_last() {
        let mut masking = Masking::default();
        let thread = (0, 7);
        masking.change(Mask::Some(3), 0x40, thread, 10);
        masking.change(Mask::All(true), 0, thread, 15);
        masking.change(Mask::Some(3), 0, thread, 20);
        assert_eq!(masking.longest, 0);
        masking.change(Mask::All(false), 0, thread, 22);
        assert_eq!(masking.longest, 12);
        // A shorter one, and one that another context ends.
        masking.change(Mask::Some(3), 0x40, thread, 30);
        masking.change(Mask::Some(3), 0, thread, 35);
        masking.change(Mask::All(true), 0, thread, 40);
        masking.change(Mask::All(false), 0, (1, 14), 90);
        assert_eq!(masking.longest, 12);
        masking.clear();
        assert_eq!(masking.longest, 0);
    }

    #[test]
    fn instructions_that_mask_are_known() {
        assert_eq!(Mask::of(0xb672, 0), Some(Mask::All(true)));
        assert_eq!(Mask::of(0xb662, 0), Some(Mask::All(false)));
        assert_eq!(Mask::of(0xf383, 0x8811), Some(Mask::Some(3)));
        assert_eq!(Mask::of(0xf380, 0x8812), Some(Mask::Some(0)));
        // msr psp, r0; cpsid f.
        assert_eq!(Mask::of(0xf380, 0x8809), None);
        assert_eq!(Mask::of(0xb671, 0), None);
    }
}
