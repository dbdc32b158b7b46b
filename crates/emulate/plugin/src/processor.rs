// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the profile asks of the processor.

/// The processor where a block of instructions begins.
pub trait Processor {
    /// The number of the current exception (IPSR); 0 in a thread.
    fn exception(&self) -> u16;
    /// A register.
    fn register(&self, number: u8) -> u32;
    /// What the guest's operating system calls the running thread by.
    fn thread(&self) -> u32;

    /// The stack pointer.
    fn stack(&self) -> u32 {
        self.register(13)
    }

    /// The link register.
    fn link(&self) -> u32 {
        self.register(14)
    }
}
