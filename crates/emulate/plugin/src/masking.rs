// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures for how long interrupts are masked.
use crate::block::Mask;

/// The owner of instructions: a thread, or an exception with its nesting depth.
pub(crate) type Context = (usize, u32);

/// Tracks the masking of interrupts.
#[derive(Debug, Default)]
pub(crate) struct Masking {
    all: bool,
    some: bool,
    /// The context that has masked interrupts, and the number of its instructions up to then.
    /// `None` while nothing is masked.
    since: Option<(Context, u64)>,
    /// The most instructions that a context executed while it had masked interrupts.
    pub longest: u64,
}

impl Masking {
    /// Handles a mask instruction. `context` has executed `own` instructions, and `value` is the
    /// value of the instruction's register.
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

    /// Resets the measurement. A masked section that has already begun is not measured.
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
        // This section is shorter. The next one is ended by another context.
        masking.change(Mask::Some(3), 0x40, thread, 30);
        masking.change(Mask::Some(3), 0, thread, 35);
        masking.change(Mask::All(true), 0, thread, 40);
        masking.change(Mask::All(false), 0, (1, 14), 90);
        assert_eq!(masking.longest, 12);
        masking.clear();
        assert_eq!(masking.longest, 0);
    }
}
