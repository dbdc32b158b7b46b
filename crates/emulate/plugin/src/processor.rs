// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guest's processor in QEMU: its registers and memory, the input lines of its interrupt
//! controller, and the instructions that it executes.
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::block::BlockEnd;
use crate::outputs::OutputPlan;
use crate::pins::Controller;
use crate::plan::MeasurePlan;
use crate::profile::{Processor, Profile};
use crate::qemu::{functions, symbol};
use crate::stores;
use crate::variables::Memory;
use crate::ways::{Block, Ways};

/// QEMU's path of the container that has the processor and its interrupt controller. Its nameless
/// inputs are the controller's lines.
const CONTAINER: &CStr = c"/machine/armv7m";
/// QEMU's number of the status register for a debugger.
const STATUS: c_int = 25;
/// The bits of the status that are the number of the exception.
const EXCEPTION: u32 = 0x1ff;
/// The first of the registers that say which lines are pending (NVIC_ISPR0).
const PENDING: u32 = 0xe000_e200;
/// The register that says where the vector table is (VTOR).
const VECTOR_TABLE: u32 = 0xe000_ed08;
/// The exceptions of the board: 16 of the processor, and its controller's lines.
const EXCEPTIONS: u32 = 16 + 32;
/// QEMU's `QEMU_PLUGIN_CB_R_REGS`: a callback reads registers.
const READS_REGISTERS: c_int = 1;
/// QEMU's `QEMU_PLUGIN_INLINE_ADD_U64`.
const ADD: c_int = 0;

/// glib's `GByteArray`.
#[repr(C)]
struct Bytes {
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
    // Up to 8.2.
    CounterFunctions {
        qemu_plugin_register_vcpu_insn_exec_inline: fn(*mut c_void, c_int, *mut c_void, u64);
    }
}

functions! {
    // From 9.0 on.
    ScoreFunctions {
        qemu_plugin_scoreboard_new: fn(usize) -> *mut c_void;
        qemu_plugin_scoreboard_find: fn(*mut c_void, c_uint) -> *mut c_void;
        qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu: fn(*mut c_void, c_int, Score, u64);
    }
}

/// QEMU's `qemu_plugin_u64`: a number per processor.
#[repr(C)]
#[derive(Clone, Copy)]
struct Score {
    board: *mut c_void,
    offset: usize,
}

// SAFETY: QEMU finds and changes the number of a processor in any thread.
unsafe impl Send for Score {}

/// Counts the executed instructions, in the way of this QEMU.
enum Counter {
    Shared(CounterFunctions),
    PerProcessor(ScoreFunctions, Score),
}

/// What [`Counter::Shared`] counts in.
static EXECUTED: AtomicU64 = AtomicU64::new(0);

impl Counter {
    fn find() -> Result<Self, &'static str> {
        if symbol("qemu_plugin_scoreboard_new\0").is_none() {
            return CounterFunctions::find().map(Self::Shared);
        }
        let functions = ScoreFunctions::find()?;
        // SAFETY: a scoreboard can be made at any time from the installation on.
        let board = unsafe { (functions.qemu_plugin_scoreboard_new)(size_of::<u64>()) };
        Ok(Self::PerProcessor(functions, Score { board, offset: 0 }))
    }

    /// Makes an instruction count.
    ///
    /// # Safety
    /// The instruction is one of a block that is being translated.
    unsafe fn count(&self, instruction: *mut c_void) {
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

    fn read(&self) -> u64 {
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

/// The guest's processor and its interrupt controller, once there are some.
#[derive(Clone, Copy)]
pub struct Cortex {
    functions: Functions,
    cpu: *mut c_void,
    container: *mut c_void,
    bytes: *mut Bytes,
    /// The address of the word that tells the running thread, if there is one.
    thread: Option<u32>,
}

// SAFETY: the pointers are QEMU's. Its lines are used in threads that hold its big lock, its
// registers in the processor's own thread or while it does not run.
unsafe impl Send for Cortex {}
// SAFETY: as above. The array of bytes is used with the registers only.
unsafe impl Sync for Cortex {}

impl Cortex {
    /// Looks QEMU's functions up.
    ///
    /// # Errors
    /// The name of a function that this QEMU does not have.
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

    /// Finds the processor and its interrupt controller, after the machine was made.
    ///
    /// # Errors
    /// The machine has none of the kind.
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

    /// Has the interrupt controller this line?
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

    /// Reads memory, or a register of a device; none where there is nothing.
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

    /// Does the vector table name this address?
    fn has_handler(&self, address: u32) -> bool {
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
            // Debuggers get registers in the guest's byte order, which is little endian.
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

/// Counts what the guest executes. Blocks are translated and executed in the processor's thread,
/// which may hold this lock without QEMU's big one; whoever holds that lock may ask for this one.
static COUNTING: Mutex<Option<Counting>> = Mutex::new(None);

/// What is needed for counting.
pub struct Counting {
    /// What was counted.
    profile: Profile,
    counter: Counter,
    cortex: Cortex,
    /// QEMU translates a block as often as it likes; what the callbacks of each get lives for ever.
    blocks: HashMap<(u32, BlockEnd), &'static Block>,
}

/// The processor whose instructions are counted, once it translates, and whether each of its blocks
/// is looked at.
static COUNTED: OnceLock<(Cortex, bool)> = OnceLock::new();
/// Its ways on which nothing is to be counted.
static WAYS: Ways = Ways::new();

fn counting() -> MutexGuard<'static, Option<Counting>> {
    COUNTING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts from now on, before the machine is made, and measures what the plan says.
///
/// # Errors
/// The name of a function that this QEMU does not have.
pub fn begin_counting(plugin: u64, plan: &MeasurePlan) -> Result<(), &'static str> {
    let mut cortex = Cortex::find()?;
    cortex.thread = plan.thread;
    *counting() = Some(Counting {
        profile: Profile::with_spans(&plan.spans),
        counter: Counter::find()?,
        cortex,
        blocks: HashMap::new(),
    });
    look_at_blocks(plugin, &cortex);
    Ok(())
}

/// Notes the edges of these pins from now on, before the machine is made.
///
/// # Errors
/// The name of a function that this QEMU does not have.
pub fn begin_noting(plugin: u64, plans: &[OutputPlan]) -> Result<(), &'static str> {
    stores::begin(plans)?;
    look_at_blocks(plugin, &Cortex::find()?);
    Ok(())
}

/// Asks QEMU to show all blocks that it translates.
fn look_at_blocks(plugin: u64, cortex: &Cortex) {
    let register = cortex.functions.qemu_plugin_register_vcpu_tb_trans_cb;
    // SAFETY: the function lives as long as the plugin, which is never unloaded.
    unsafe { register(plugin, block_translated) };
}

/// Does something with the profile, if there is one, and the number of executed instructions.
pub fn with_profile<T>(act: impl FnOnce(&mut Profile, u64) -> T) -> Option<T> {
    counting().as_mut().map(|counting| {
        let executed = counting.counter.read();
        act(&mut counting.profile, executed)
    })
}

unsafe extern "C" fn block_translated(_plugin: u64, block: *mut c_void) {
    // SAFETY: QEMU is translating it.
    unsafe { stores::look_at(block) };
    let mut counting = counting();
    let Some(counting) = counting.as_mut() else {
        return;
    };
    // The processor is there: it translates.
    if COUNTED.get().is_none() && counting.cortex.connect().is_ok() {
        COUNTED.get_or_init(|| (counting.cortex, counting.profile.has_spans()));
    }
    let functions = counting.cortex.functions;
    // SAFETY: the block is QEMU's during this call, and so are its instructions.
    unsafe {
        let count = (functions.qemu_plugin_tb_n_insns)(block);
        let mut begin = None;
        let mut last = (0, 0);
        for index in 0..count {
            let instruction = (functions.qemu_plugin_tb_get_insn)(block, index);
            counting.counter.count(instruction);
            last = (
                (functions.qemu_plugin_insn_vaddr)(instruction),
                (functions.qemu_plugin_insn_size)(instruction),
            );
            begin.get_or_insert(last.0);
        }
        let Some(begin) = begin.and_then(|address| u32::try_from(address).ok()) else {
            return;
        };
        let end = u32::try_from(last.0).map_or(BlockEnd::Other, |at| {
            let half = |at| counting.cortex.read::<2>(at).map_or(0, u16::from_le_bytes);
            BlockEnd::of(half(at), if last.1 > 2 { half(at + 2) } else { 0 })
        });
        let kept = *counting
            .blocks
            .entry((begin, end))
            .or_insert_with(|| Block::new(begin, end));
        (functions.qemu_plugin_register_vcpu_tb_exec_cb)(
            block,
            block_executed,
            READS_REGISTERS,
            std::ptr::from_ref(kept).cast_mut().cast(),
        );
    }
}

unsafe extern "C" fn block_executed(_cpu: c_uint, data: *mut c_void) {
    // SAFETY: it is the block that `block_translated` has given, which lives for ever.
    let block: &'static Block = unsafe { &*data.cast::<Block>() };
    let Some((cortex, looks_at_all)) = COUNTED.get() else {
        return;
    };
    if !looks_at_all && WAYS.is_known(block, || cortex.exception()) {
        return;
    }
    // Without a lock: this asks for QEMU's big one, whose holder may ask for that of the counts.
    if block.is_unasked() {
        block.tell(cortex.has_handler(block.begin));
    }
    if let Some(counting) = counting().as_mut() {
        let executed = counting.counter.read();
        let profile = &mut counting.profile;
        let exception = profile.block_begins(executed, block.begin, WAYS.end(), cortex);
        WAYS.learn(block, exception);
    }
}
