// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records the transitions between blocks at which the profile need not examine the processor.
//!
//! Examining the processor takes longer than executing a block. An exception may begin or end only
//! between two blocks. It ends by a return only, and it begins with the first block of a handler.
//! So a transition between other blocks that changed nothing once never changes anything. After a
//! return it is enough to check that the exception number is the same. The executed instructions
//! are charged at the next examination.
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU16, Ordering};

use crate::block::BlockEnd;

/// The most known transitions into a block.
const KNOWN: usize = 16;

/// A block of instructions, which is never freed. Only the thread of the guest's processor uses it.
#[derive(Debug)]
pub struct Block {
    pub begin: u32,
    pub end: BlockEnd,
    /// Whether an exception begins with this block. Unset until it has been looked up.
    is_handler: OnceLock<bool>,
    /// The blocks from which a transition to this one is known to change nothing.
    before: [AtomicPtr<Block>; KNOWN],
}

impl Block {
    pub fn new(begin: u32, end: BlockEnd) -> &'static Self {
        Box::leak(Box::new(Self {
            begin,
            end,
            is_handler: OnceLock::new(),
            before: Default::default(),
        }))
    }

    /// Returns whether it is still unknown if an exception begins with this block.
    pub fn is_unasked(&self) -> bool {
        self.is_handler.get().is_none()
    }

    /// Stores whether an exception begins with this block.
    pub fn tell(&self, is_handler: bool) {
        // If the value is already set, it is the same.
        let _ = self.is_handler.set(is_handler);
    }

    /// Returns the place of `last` among the blocks before this one.
    fn place(&self, last: &'static Self) -> &AtomicPtr<Self> {
        let halfword = last.begin as usize / 2;
        &self.before[(halfword ^ halfword / KNOWN) % KNOWN]
    }
}

/// The position of the processor.
#[derive(Debug, Default)]
pub struct Ways {
    /// The block executed last.
    last: AtomicPtr<Block>,
    /// The exception number at the last examination.
    exception: AtomicU16,
}

impl Ways {
    pub const fn new() -> Self {
        Self {
            last: AtomicPtr::new(std::ptr::null_mut()),
            exception: AtomicU16::new(0),
        }
    }

    fn last(&self) -> Option<&'static Block> {
        // SAFETY: it is null, or a block, which is never forgotten.
        unsafe { self.last.load(Ordering::Relaxed).as_ref() }
    }

    /// Returns the end of the last block.
    pub fn end(&self) -> BlockEnd {
        self.last().map_or(BlockEnd::Other, |last| last.end)
    }

    /// Reports that `block` is executed next. Returns whether the transition is known to change
    /// nothing. `exception` returns the current exception number.
    pub fn is_known(&self, block: &'static Block, exception: impl FnOnce() -> u16) -> bool {
        let is_known = self.last().is_some_and(|last| match last.end {
            BlockEnd::Other => block.place(last).load(Ordering::Relaxed) == pointer(last),
            BlockEnd::Return => {
                block.is_handler.get() == Some(&false)
                    && exception() == self.exception.load(Ordering::Relaxed)
            }
            BlockEnd::Sleep | BlockEnd::Mask(_) => false,
        });
        if is_known {
            self.last.store(pointer(block), Ordering::Relaxed);
        }
        is_known
    }

    /// Reports that `block` is executed next, after the processor was found in this exception.
    pub fn learn(&self, block: &'static Block, exception: u16) {
        let before = self.exception.swap(exception, Ordering::Relaxed);
        let last = self.last().filter(|last| last.end == BlockEnd::Other);
        self.last.store(pointer(block), Ordering::Relaxed);
        let is_plain = before == exception && block.is_handler.get() == Some(&false);
        if let Some(last) = last.filter(|_| is_plain) {
            block.place(last).store(pointer(last), Ordering::Relaxed);
        }
    }
}

fn pointer(block: &'static Block) -> *mut Block {
    std::ptr::from_ref(block).cast_mut()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::processor::Processor;
    use crate::profile::Profile;
    use crate::report::ProfileReport;

    /// The registers at the start of a block: exception number, stack pointer and link register.
    #[derive(Debug, Clone, Copy)]
    struct At(u16, u32, u32);

    impl Processor for At {
        fn exception(&self) -> u16 {
            self.0
        }

        fn register(&self, number: u8) -> u32 {
            match number {
                13 => self.1,
                14 => self.2,
                _ => u32::from(number),
            }
        }

        fn thread(&self) -> u32 {
            0
        }
    }

    /// The number and the first block of each handler.
    const HANDLERS: [(u16, usize); 3] = [(14, 6), (20, 9), (21, 12)];
    /// The number of blocks. Blocks 0 to 5 belong to the thread, which may also call the first
    /// handler's first block as a function. Each handler has three blocks, of which the last
    /// returns.
    const BLOCKS: usize = 15;

    /// Returns a random path through the blocks with random interrupts.
    fn program(choices: &[(u8, u8)]) -> Vec<(usize, At)> {
        let mut active: Vec<(u16, usize)> = Vec::new();
        let mut thread = 0;
        let mut all = Vec::new();
        let mut link = 1;
        for &(choice, to) in choices {
            let (number, block) = active.last().copied().unwrap_or((0, thread));
            let stack = 1000 - 32 * u32::try_from(active.len()).unwrap();
            all.push((block, At(number, stack, link)));
            link = 1;
            // Computes the next block if no interrupt comes.
            let is_last = block >= 6 && block % 3 == 2;
            if is_last {
                active.pop();
            } else if let Some(running) = active.last_mut() {
                running.1 += usize::from(to % 4 != 0);
            } else {
                thread = usize::from(to) % 7;
            }
            let (taken, first) = HANDLERS[usize::from(choice) % HANDLERS.len()];
            if choice > 220 && active.iter().all(|(number, _)| *number < taken) {
                active.push((taken, first));
                link = 0xffff_fff1;
            }
        }
        all
    }

    fn profiled(program: &[(usize, At)], skips: bool) -> (ProfileReport, usize) {
        let blocks: Vec<&'static Block> = (0..BLOCKS)
            .map(|number| {
                let end = match number {
                    // Blocks 8, 11 and 14 end their handlers; the others end functions.
                    2 | 8 | 10 | 11 | 14 => BlockEnd::Return,
                    3 => BlockEnd::Sleep,
                    _ => BlockEnd::Other,
                };
                let block = Block::new(0x100 + 8 * u32::try_from(number).unwrap(), end);
                block.tell(HANDLERS.iter().any(|(_, first)| *first == number));
                block
            })
            .collect();
        let (ways, mut profile, mut executed, mut looks) = (Ways::new(), Profile::default(), 0, 0);
        let mut last = BlockEnd::Other;
        for (number, at) in program {
            let block = blocks[*number];
            if !skips || !ways.is_known(block, || at.0) {
                looks += 1;
                let exception = profile.block_begins(executed, block.begin, last, at);
                ways.learn(block, exception);
            }
            last = block.end;
            executed += 1 + *number as u64;
        }
        (profile.report(executed), looks)
    }

    proptest! {
        #[test]
        fn a_profile_is_the_same_without_the_looks_that_change_nothing(
            choices in prop::collection::vec(any::<(u8, u8)>(), 1000)
        ) {
            let program = program(&choices);
            let (all, every) = profiled(&program, false);
            let (skipped, some) = profiled(&program, true);
            prop_assert_eq!(format!("{all:?}"), format!("{skipped:?}"));
            prop_assert!(some < every / 2, "{} looks of {}", some, every);
        }
    }
}
