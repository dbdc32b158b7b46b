// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ways from one block of instructions to the next on which the profile need not look.
//!
//! To look at the processor takes longer than to execute a block. An exception may begin or end
//! between two blocks: it ends by a return only, and it begins with the first block of a handler.
//! So a way between others, on which nothing changed once, never changes anything, and behind a
//! return it is enough that the number of the exception is as before. What is executed there is
//! charged with the next look.
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU16, Ordering};

use crate::block::BlockEnd;

/// How many ways into a block are known at most.
const KNOWN: usize = 16;

/// A block of instructions, which is never forgotten. The thread of the guest's processor is the
/// only one that uses it.
#[derive(Debug)]
pub struct Block {
    pub begin: u32,
    pub end: BlockEnd,
    /// Whether an exception begins with it, once that was asked.
    is_handler: OnceLock<bool>,
    /// The blocks from which it is known that nothing changes on the way to this one.
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

    /// Is it still to be asked whether an exception begins with it?
    pub fn is_unasked(&self) -> bool {
        self.is_handler.get().is_none()
    }

    /// An exception begins with it, or does not.
    pub fn tell(&self, is_handler: bool) {
        // Who told it first knew it, too.
        let _ = self.is_handler.set(is_handler);
    }

    /// Where `last` stands among the blocks before this one.
    fn place(&self, last: &'static Self) -> &AtomicPtr<Self> {
        let halfword = last.begin as usize / 2;
        &self.before[(halfword ^ halfword / KNOWN) % KNOWN]
    }
}

/// Where the processor is.
#[derive(Debug, Default)]
pub struct Ways {
    /// The block that was executed last.
    last: AtomicPtr<Block>,
    /// The exception of the last look.
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

    /// How the last block has ended.
    pub fn end(&self) -> BlockEnd {
        self.last().map_or(BlockEnd::Other, |last| last.end)
    }

    /// The block is executed next. Is it known that nothing changes on the way there? `exception`
    /// is the number of the exception now.
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

    /// The block is executed next, and the processor was seen in this exception.
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

    /// The registers where a block begins: an exception, the stack and the link.
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

    /// The first block of each handler.
    const HANDLERS: [(u16, usize); 3] = [(14, 6), (20, 9), (21, 12)];
    /// Blocks of the thread are 0 to 5, and the first handler's first one, as of a function; a
    /// handler has three, and the last one returns.
    const BLOCKS: usize = 15;

    /// A program that goes from block to block at random, and what interrupts it.
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
            // What comes next, if nothing interrupts.
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
                    // 8, 11 and 14 end their handlers, the others functions.
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
