// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interface through which the profile reads the processor.

/// The state of the processor at the beginning of an instruction block.
pub trait Processor {
    /// Returns the number of the current exception (IPSR), or 0 in a thread.
    fn exception(&self) -> u16;
    /// Returns the value of a register.
    fn register(&self, number: u8) -> u32;
    /// Returns the value by which the guest's operating system identifies the running thread.
    fn thread(&self) -> u32;

    /// Returns the stack pointer.
    fn stack(&self) -> u32 {
        self.register(13)
    }

    /// Returns the link register.
    fn link(&self) -> u32 {
        self.register(14)
    }
}
