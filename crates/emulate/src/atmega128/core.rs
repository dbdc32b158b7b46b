// SPDX-License-Identifier: GPL-3.0-or-later
//! The processor: simavr's instruction decoder, without its interrupt controller, timers and ports.
use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Once;

use simavr_ffi as simavr;

unsafe extern "C" {
    // sim_core.h declares this function, for which simavr-ffi has no bindings.
    fn avr_run_one(avr: *mut simavr::avr_t) -> u32;
    fn _avr_push_addr(avr: *mut simavr::avr_t, address: u32) -> c_int;
    // Frees a core. simavr allocates it with malloc and has no function that frees it.
    fn free(pointer: *mut c_void);
}

const FLAG_I: usize = 7;
/// The offset of an I/O address in data space.
const IO_OFFSET: u16 = 0x20;

/// A callback for reads of an I/O register, in the form that simavr stores.
pub type ReadHook = unsafe extern "C" fn(*mut simavr::avr_t, u16, *mut c_void) -> u8;
/// A callback for writes of an I/O register, in the form that simavr stores.
pub type WriteHook = unsafe extern "C" fn(*mut simavr::avr_t, u16, u8, *mut c_void);

/// The callbacks that simavr's own peripheral has registered at an address.
#[derive(Debug, Clone, Copy)]
pub struct Original {
    pub read: Option<ReadHook>,
    pub read_param: *mut c_void,
    pub write: Option<WriteHook>,
    pub write_param: *mut c_void,
}

/// An error inside simavr during the last instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoreFault {
    /// The chip does not have this instruction.
    BadOpcode,
    /// The instruction accessed an address beyond the RAM.
    OutsideRam,
}

thread_local! {
    /// The error that simavr's logger received last. simavr reports some errors to its logger only.
    /// A board runs on a single thread, so that a thread-local variable suffices.
    static CORE_FAULT: Cell<Option<CoreFault>> = const { Cell::new(None) };
}

thread_local! {
    /// The peripherals of a core that its watchdog has just reset, as a linked list.
    static RESET: Cell<*mut simavr::avr_io_t> = const { Cell::new(std::ptr::null_mut()) };
}

/// simavr calls this function in the middle of a reset. Only the watchdog resets a core, and the
/// run ends then. Otherwise simavr would go on to reset the peripherals, and would follow a null
/// pointer of the watchdog.
unsafe extern "C" fn stop_reset(avr: *mut simavr::avr_t) {
    // SAFETY: simavr gives the core that it resets.
    unsafe {
        RESET.set((*avr).io_port);
        (*avr).io_port = std::ptr::null_mut();
    }
}

/// The logger of simavr, of which there is one per process. It prints nothing and records the
/// errors that the board reports.
unsafe extern "C" fn note_mishap(
    _: *mut simavr::avr_t,
    level: c_int,
    format: *const c_char,
    _: *mut simavr::__va_list_tag,
) {
    if format.is_null() || !(2..=3).contains(&level) {
        return;
    }
    // SAFETY: simavr's formats are C string literals.
    let format = unsafe { CStr::from_ptr(format) }.to_bytes();
    let says = |words: &[u8]| format.windows(words.len()).any(|part| part == words);
    if says(b"Invalid Opcode") {
        CORE_FAULT.set(Some(CoreFault::BadOpcode));
    } else if says(b"*** Wrapping") {
        CORE_FAULT.set(Some(CoreFault::OutsideRam));
    }
}

/// The processor of an ATmega128 with its memories.
pub struct Core {
    avr: *mut simavr::avr_t,
}

// SAFETY: a core is reached through its owner only, and simavr keeps no state outside it but the
// logger, which is set once and is thread-safe.
unsafe impl Send for Core {}

impl Core {
    /// Makes a core in its state after a reset, with `flash` from address 0 on. `None` if simavr
    /// does not know the chip, or if the chip's flash is too small.
    pub fn new(chip: &CStr, clock_hz: u64, flash: &[u8]) -> Option<Self> {
        static LOGGER: Once = Once::new();
        // SAFETY: the function has the type that simavr asks for and lives as long as the process.
        LOGGER.call_once(|| unsafe { simavr::avr_global_logger_set(Some(note_mishap)) });
        // SAFETY: the name is a C string; the result is checked before it is used.
        let avr = unsafe { simavr::avr_make_mcu_by_name(chip.as_ptr()) };
        if avr.is_null() {
            return None;
        }
        // SAFETY: a fresh core that nobody else knows; avr_init fills its pointers, so the flash
        // has flashend + 1 bytes.
        unsafe {
            simavr::avr_init(avr);
            (*avr).frequency = u32::try_from(clock_hz).unwrap_or(u32::MAX);
            (*avr).reset = Some(stop_reset);
            // simavr executes one instruction at a time, unless `run` allows more.
            (*avr).run_cycle_limit = 1;
            if flash.len() > (*avr).flashend as usize + 1 {
                drop(Self { avr });
                return None;
            }
            std::ptr::copy_nonoverlapping(flash.as_ptr(), (*avr).flash, flash.len());
            // simavr's serial ports must not print, and must not slow down the host when they are
            // polled.
            for name in [b'0', b'1'] {
                let set_flags = u32::from_be_bytes([b'u', b'a', b's', name]);
                let mut flags = 0_u32;
                simavr::avr_ioctl(avr, set_flags, (&raw mut flags).cast());
            }
        }
        CORE_FAULT.set(None);
        Some(Self { avr })
    }

    /// Returns a pointer for the peripherals, which access the core while it executes an
    /// instruction.
    pub fn pointer(&self) -> *mut simavr::avr_t {
        self.avr
    }

    /// Executes instructions until at least `cycles` have passed, or until a hook, SEI, RETI, SLEEP
    /// or an error breaks the batch. Executes at least one instruction.
    #[inline]
    pub fn run(&mut self, cycles: u64) {
        // SAFETY: the core is initialised; hooks reach it through the same pointer, and no
        // reference to it is alive.
        unsafe {
            (*self.avr).interrupt_state = 0;
            (*self.avr).run_cycle_count = cycles.max(1);
            (*self.avr).pc = avr_run_one(self.avr);
        }
    }

    /// Returns whether a hook or a set I flag ended the last batch.
    #[inline]
    pub fn has_broken_off(&self) -> bool {
        // SAFETY: the core lives as long as `self`.
        unsafe { (*self.avr).interrupt_state < 0 }
    }

    /// Runs the due events of simavr's own peripherals. Returns `false` after a watchdog reset,
    /// which ends the run.
    #[must_use]
    pub fn process_cycle_timers(&mut self) -> bool {
        // SAFETY: as in `run`; the list of peripherals is put back where `stop_reset` took it from.
        unsafe {
            simavr::avr_cycle_timer_process(self.avr);
            let peripherals = RESET.replace(std::ptr::null_mut());
            if !peripherals.is_null() {
                (*self.avr).io_port = peripherals;
                return false;
            }
        }
        true
    }

    /// Returns the cycle of the next event of simavr's own peripherals.
    #[inline]
    pub fn next_cycle_timer(&self) -> Option<u64> {
        // SAFETY: the list's head is null or a slot in the core itself.
        unsafe {
            (*self.avr)
                .cycle_timers
                .timer
                .as_ref()
                .map(|slot| slot.when)
        }
    }

    #[inline]
    pub fn cycle(&self) -> u64 {
        // SAFETY: the core lives as long as `self`.
        unsafe { (*self.avr).cycle }
    }

    pub fn set_cycle(&mut self, cycle: u64) {
        // SAFETY: the core lives as long as `self`.
        unsafe { (*self.avr).cycle = cycle }
    }

    /// Returns the program counter in bytes.
    #[inline]
    pub fn pc(&self) -> u32 {
        // SAFETY: the core lives as long as `self`.
        unsafe { (*self.avr).pc }
    }

    /// Returns the global interrupt enable bit.
    #[inline]
    pub fn interrupts_enabled(&self) -> bool {
        // SAFETY: the core lives as long as `self`.
        unsafe { (*self.avr).sreg[FLAG_I] != 0 }
    }

    #[inline]
    pub fn is_sleeping(&self) -> bool {
        self.state() == simavr::cpu_Sleeping
    }

    pub fn is_crashed(&self) -> bool {
        !matches!(self.state(), simavr::cpu_Sleeping | simavr::cpu_Running)
    }

    #[inline]
    fn state(&self) -> u32 {
        // SAFETY: the core lives as long as `self`.
        unsafe { (*self.avr).state as u32 }
    }

    pub fn wake(&mut self) {
        // SAFETY: the core lives as long as `self`.
        unsafe { (*self.avr).state = simavr::cpu_Running as c_int }
    }

    /// Enters an interrupt: pushes the return address, clears I, and jumps to `vector`, an address
    /// in bytes.
    pub fn enter(&mut self, vector: u32) {
        // SAFETY: the core lives as long as `self`.
        unsafe {
            _avr_push_addr(self.avr, (*self.avr).pc);
            (*self.avr).sreg[FLAG_I] = 0;
            (*self.avr).pc = vector;
        }
    }

    pub fn stack_pointer(&self) -> u16 {
        u16::from_le_bytes([
            self.byte(super::registers::SPL),
            self.byte(super::registers::SPL + 1),
        ])
    }

    /// Returns a byte of data space, without the side effects of reading a register. The address
    /// must not be beyond the end of the RAM.
    #[inline]
    pub fn byte(&self, address: u16) -> u8 {
        // SAFETY: the data memory has ramend + 1 bytes; every caller's address is a register's or
        // was checked when its symbol was read.
        unsafe { *(*self.avr).data.add(usize::from(address)) }
    }

    /// Returns the error that simavr has reported since the last call on this thread.
    pub fn take_mishap(&self) -> Option<CoreFault> {
        CORE_FAULT.take()
    }

    /// Returns the callbacks at an address. `None` if there are none.
    pub fn original(&self, address: u16) -> Option<Original> {
        // SAFETY: the core lives as long as `self`; the callbacks were registered by simavr with
        // these types.
        let slot = unsafe { &(*self.avr).io[usize::from(address - IO_OFFSET)] };
        (slot.r.c.is_some() || slot.w.c.is_some()).then_some(Original {
            read: slot.r.c,
            read_param: slot.r.param,
            write: slot.w.c,
            write_param: slot.w.param,
        })
    }

    /// Replaces the callbacks at an address, and simavr's shortcut for SBI and CBI at that address.
    ///
    /// # Safety
    /// The callbacks are called with `param` as long as the core runs. `param` must stay valid for
    /// that time.
    pub unsafe fn hook(
        &mut self,
        address: u16,
        read: Option<ReadHook>,
        write: Option<WriteHook>,
        param: *mut c_void,
    ) {
        let index = usize::from(address - IO_OFFSET);
        // SAFETY: the core lives as long as `self`, no other reference to it is alive.
        let avr = unsafe { &mut *self.avr };
        let slot = &mut avr.io[index];
        slot.r.c = read;
        slot.r.param = param;
        slot.w.c = write;
        slot.w.param = param;
        if let Some(bit) = avr.bit_io.get_mut(index) {
            // simavr still owns the table behind this pointer, but frees it only if its own
            // callback is still installed.
            bit.c = None;
        }
    }

    /// Makes every RETI call `notify`.
    ///
    /// # Safety
    /// The conditions of [`Self::hook`] apply.
    pub unsafe fn on_reti(
        &mut self,
        notify: unsafe extern "C" fn(*mut simavr::avr_irq_t, u32, *mut c_void),
        param: *mut c_void,
    ) {
        // SAFETY: the interrupt table and its two signals are part of the core.
        unsafe {
            let signal = &raw mut (*self.avr).interrupts.irq[simavr::AVR_INT_IRQ_RUNNING as usize];
            simavr::avr_irq_register_notify(signal, Some(notify), param);
        }
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        // SAFETY: the core was made by simavr and is not used again. What avr_terminate leaves was
        // allocated by malloc.
        unsafe {
            let names = (*self.avr).data_names;
            simavr::avr_terminate(self.avr);
            free(names.cast());
            free(self.avr.cast());
        }
    }
}
