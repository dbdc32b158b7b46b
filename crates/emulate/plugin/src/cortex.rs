// SPDX-License-Identifier: MIT OR Apache-2.0
//! Access to the guest's processor in QEMU: its registers and memory, the input lines of its
//! interrupt controller, and the instruction count.
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::pins::Controller;
use crate::processor::Processor;
use crate::qemu::{functions, symbol};
use crate::variables::Memory;

/// The QEMU object that contains the processor and its interrupt controller. Its unnamed GPIO
/// inputs are the controller's lines.
const CONTAINER: &CStr = c"/machine/armv7m";
/// The number of the status register in QEMU's debugger interface.
const STATUS: c_int = 25;
/// The bits of the status register that contain the exception number.
const EXCEPTION: u32 = 0x1ff;
/// The address of the first register with the pending bits of lines (NVIC_ISPR0).
const PENDING: u32 = 0xe000_e200;
/// The address of the register that contains the address of the vector table (VTOR).
const VECTOR_TABLE: u32 = 0xe000_ed08;
/// The number of exceptions of the board: 16 of the processor plus the controller's lines.
const EXCEPTIONS: u32 = 16 + 32;
/// QEMU's `QEMU_PLUGIN_CB_R_REGS`: the callback reads registers.
pub(crate) const READS_REGISTERS: c_int = 1;
/// QEMU's `QEMU_PLUGIN_INLINE_ADD_U64`.
const ADD: c_int = 0;

/// glib's `GByteArray`.
#[repr(C)]
pub(crate) struct Bytes {
    data: *mut u8,
    length: c_uint,
}

type TranslationCallback = unsafe extern "C" fn(plugin: u64, block: *mut c_void);
type ExecutionCallback = unsafe extern "C" fn(cpu: c_uint, data: *mut c_void);

functions! {
    Functions {
        object_resolve_path: fn(*const c_char, *mut bool) -> *mut c_void;
        qdev_get_gpio_in: fn(*mut c_void, c_int) -> *mut c_void;
        object_property_get_uint: fn(*mut c_void, *const c_char, *mut *mut c_void) -> u64;
        qemu_set_irq: fn(*mut c_void, c_int);
        qemu_get_cpu: fn(c_int) -> *mut c_void;
        arm_cpu_gdb_read_register: fn(*mut c_void, *mut Bytes, c_int) -> c_int;
        cpu_memory_rw_debug: fn(*mut c_void, u64, *mut c_void, usize, bool) -> c_int;
        g_byte_array_new: fn() -> *mut Bytes;
        g_byte_array_set_size: fn(*mut Bytes, c_uint) -> *mut Bytes;
        qemu_plugin_register_vcpu_tb_trans_cb: fn(u64, TranslationCallback);
        qemu_plugin_register_vcpu_tb_exec_cb: fn(*mut c_void, ExecutionCallback, c_int, *mut c_void);
        qemu_plugin_tb_n_insns: fn(*mut c_void) -> usize;
        qemu_plugin_tb_get_insn: fn(*mut c_void, usize) -> *mut c_void;
        qemu_plugin_insn_vaddr: fn(*mut c_void) -> u64;
        qemu_plugin_insn_size: fn(*mut c_void) -> usize;
    }
}

functions! {
    // QEMU's functions up to version 8.2.
    CounterFunctions {
        qemu_plugin_register_vcpu_insn_exec_inline: fn(*mut c_void, c_int, *mut c_void, u64);
    }
}

functions! {
    // QEMU's functions from version 9.0 on.
    ScoreFunctions {
        qemu_plugin_scoreboard_new: fn(usize) -> *mut c_void;
        qemu_plugin_scoreboard_find: fn(*mut c_void, c_uint) -> *mut c_void;
        qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu: fn(*mut c_void, c_int, Score, u64);
    }
}

/// QEMU's `qemu_plugin_u64`, which has a value for each processor.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Score {
    board: *mut c_void,
    offset: usize,
}

// SAFETY: QEMU finds and changes the number of a processor in any thread.
unsafe impl Send for Score {}

/// Counts the executed instructions, by the interface that this version of QEMU has.
pub(crate) enum Counter {
    Shared(CounterFunctions),
    PerProcessor(ScoreFunctions, Score),
}

/// The counter of [`Counter::Shared`].
static EXECUTED: AtomicU64 = AtomicU64::new(0);

impl Counter {
    pub(crate) fn find() -> Result<Self, &'static str> {
        if symbol("qemu_plugin_scoreboard_new\0").is_none() {
            return CounterFunctions::find().map(Self::Shared);
        }
        let functions = ScoreFunctions::find()?;
        // SAFETY: a scoreboard can be made at any time from the installation on.
        let board = unsafe { (functions.qemu_plugin_scoreboard_new)(size_of::<u64>()) };
        Ok(Self::PerProcessor(functions, Score { board, offset: 0 }))
    }

    /// Adds code to an instruction that counts its executions.
    ///
    /// # Safety
    /// The instruction must belong to a block that is being translated.
    pub(crate) unsafe fn count(&self, instruction: *mut c_void) {
        match self {
            // SAFETY: the counter lives for ever; only the guest's one processor changes it.
            Self::Shared(functions) => unsafe {
                (functions.qemu_plugin_register_vcpu_insn_exec_inline)(
                    instruction,
                    ADD,
                    EXECUTED.as_ptr().cast(),
                    1,
                );
            },
            // SAFETY: the scoreboard lives for ever.
            Self::PerProcessor(functions, score) => unsafe {
                (functions.qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu)(
                    instruction,
                    ADD,
                    *score,
                    1,
                );
            },
        }
    }

    pub(crate) fn read(&self) -> u64 {
        match self {
            Self::Shared(_) => EXECUTED.load(Ordering::Relaxed),
            Self::PerProcessor(functions, score) => {
                // SAFETY: the board has a number for each processor, also for one that is yet to
                // come, which is the first here.
                unsafe { *(functions.qemu_plugin_scoreboard_find)(score.board, 0).cast::<u64>() }
            }
        }
    }
}

/// The guest's processor and its interrupt controller, once QEMU has created them.
#[derive(Clone, Copy)]
pub struct Cortex {
    pub(crate) functions: Functions,
    cpu: *mut c_void,
    container: *mut c_void,
    bytes: *mut Bytes,
    /// The address of the word that identifies the running thread. `None` if there is only one
    /// thread.
    pub(crate) thread: Option<u32>,
}

// SAFETY: the pointers are QEMU's. Its lines are used in threads that hold its big lock, its
// registers in the processor's own thread or while it does not run.
unsafe impl Send for Cortex {}
// SAFETY: as above. The array of bytes is used with the registers only.
unsafe impl Sync for Cortex {}

impl Cortex {
    /// Looks up QEMU's functions.
    ///
    /// # Errors
    /// The error is the name of a function that this QEMU does not have.
    pub fn find() -> Result<Self, &'static str> {
        let functions = Functions::find()?;
        Ok(Self {
            functions,
            cpu: std::ptr::null_mut(),
            container: std::ptr::null_mut(),
            // SAFETY: it makes an empty array, which lives for ever.
            bytes: unsafe { (functions.g_byte_array_new)() },
            thread: None,
        })
    }

    /// Finds the processor and its interrupt controller. The machine must have been created.
    ///
    /// # Errors
    /// Fails if the machine has no such processor or controller.
    pub fn connect(&mut self) -> Result<(), String> {
        // SAFETY: the path ends with a zero; QEMU needs no answer to whether it is ambiguous. The
        // first processor has the number 0.
        unsafe {
            self.container =
                (self.functions.object_resolve_path)(CONTAINER.as_ptr(), std::ptr::null_mut());
            self.cpu = (self.functions.qemu_get_cpu)(0);
        }
        if self.container.is_null() || self.cpu.is_null() {
            return Err(
                "the machine has no Cortex-M: start QEMU with -machine mps2-an385".to_owned(),
            );
        }
        Ok(())
    }

    /// Returns whether the interrupt controller has this line.
    pub fn has_line(&self, irq: u16) -> bool {
        // SAFETY: the container is there from `connect` on; the name ends with a zero, and without
        // the property the answer is 0.
        let lines = unsafe {
            (self.functions.object_property_get_uint)(
                self.container,
                c"num-irq".as_ptr(),
                std::ptr::null_mut(),
            )
        };
        u64::from(irq) < lines
    }

    fn line(&self, irq: u16) -> *mut c_void {
        // SAFETY: the container is there from `connect` on, and so are its lines.
        unsafe { (self.functions.qdev_get_gpio_in)(self.container, c_int::from(irq)) }
    }

    /// Reads memory or a device register. `None` if there is nothing at the address.
    pub fn read<const BYTES: usize>(&self, address: u32) -> Option<[u8; BYTES]> {
        let mut content = [0; BYTES];
        if self.cpu.is_null() {
            return None;
        }
        // SAFETY: the processor is QEMU's, and the memory is as large as is said.
        let answer = unsafe {
            (self.functions.cpu_memory_rw_debug)(
                self.cpu,
                u64::from(address),
                content.as_mut_ptr().cast(),
                BYTES,
                false,
            )
        };
        (answer == 0).then_some(content)
    }

    /// Returns whether a vector in the vector table contains this address.
    pub(crate) fn has_handler(&self, address: u32) -> bool {
        let word = |address| self.read::<4>(address).map(u32::from_le_bytes);
        let Some(table) = word(VECTOR_TABLE) else {
            return false;
        };
        (1..EXCEPTIONS).any(|number| word(table + 4 * number) == Some(address | 1))
    }

    fn debugged(&self, number: c_int) -> u32 {
        // SAFETY: the array is this structure's own; the processor is there when it executes.
        unsafe {
            (self.functions.g_byte_array_set_size)(self.bytes, 0);
            (self.functions.arm_cpu_gdb_read_register)(self.cpu, self.bytes, number);
            if (*self.bytes).length < 4 {
                return 0;
            }
            // Debuggers get registers in the guest's byte order, which is little-endian.
            u32::from_le_bytes(*(*self.bytes).data.cast::<[u8; 4]>())
        }
    }
}

impl Controller for Cortex {
    fn set_line(&mut self, irq: u16, is_high: bool) {
        // SAFETY: the line is QEMU's, and this thread holds its big lock.
        unsafe { (self.functions.qemu_set_irq)(self.line(irq), c_int::from(is_high)) }
    }

    fn is_pending(&self, irq: u16) -> bool {
        let (word, bit) = (u32::from(irq) / 32, irq % 32);
        self.read::<4>(PENDING + 4 * word)
            .is_some_and(|content| u32::from_le_bytes(content) >> bit & 1 != 0)
    }
}

impl Memory for Cortex {
    fn number(&self, address: u32, bytes: u8) -> Option<u64> {
        match bytes {
            1 => self.read(address).map(u8::from_le_bytes).map(u64::from),
            2 => self.read(address).map(u16::from_le_bytes).map(u64::from),
            4 => self.read(address).map(u32::from_le_bytes).map(u64::from),
            _ => self.read(address).map(u64::from_le_bytes),
        }
    }
}

impl Processor for Cortex {
    fn exception(&self) -> u16 {
        u16::try_from(self.debugged(STATUS) & EXCEPTION).unwrap_or(0)
    }

    fn register(&self, number: u8) -> u32 {
        self.debugged(c_int::from(number))
    }

    fn thread(&self) -> u32 {
        let word = self.thread.and_then(|address| self.read(address));
        word.map_or(0, u32::from_le_bytes)
    }
}
