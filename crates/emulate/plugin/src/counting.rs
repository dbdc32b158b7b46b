// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts the instructions that the guest executes, block by block as QEMU translates them.
use std::collections::HashMap;
use std::ffi::{c_uint, c_void};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::block::BlockEnd;
use crate::cortex::{Cortex, Counter, READS_REGISTERS};
use crate::outputs::OutputPlan;
use crate::plan::MeasurePlan;
use crate::processor::Processor;
use crate::profile::Profile;
use crate::stores;
use crate::ways::{Block, Ways};

/// The state of counting. Blocks are translated and executed in the processor's thread, which may
/// take this lock without QEMU's big lock. A thread that holds the big lock may take this one, but
/// not the other way round.
static COUNTING: Mutex<Option<Counting>> = Mutex::new(None);

/// The state of counting.
pub struct Counting {
    /// The results.
    profile: Profile,
    counter: Counter,
    cortex: Cortex,
    /// The block of each address and kind of end. QEMU may translate a block repeatedly, and the
    /// data of its callbacks is never freed, so each block is kept once.
    blocks: HashMap<(u32, BlockEnd), &'static Block>,
}

/// The processor whose instructions are counted, and whether each of its blocks is examined. Set
/// when the processor translates its first block.
static COUNTED: OnceLock<(Cortex, bool)> = OnceLock::new();
/// The transitions between blocks at which nothing has to be examined.
static WAYS: Ways = Ways::new();

fn counting() -> MutexGuard<'static, Option<Counting>> {
    COUNTING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts counting and measuring according to the plan. The machine must not have been created yet.
///
/// # Errors
/// The error is the name of a function that this QEMU does not have.
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

/// Starts recording the edges of these pins. The machine must not have been created yet.
///
/// # Errors
/// The error is the name of a function that this QEMU does not have.
pub fn begin_noting(plugin: u64, plans: &[OutputPlan]) -> Result<(), &'static str> {
    stores::begin(plans)?;
    look_at_blocks(plugin, &Cortex::find()?);
    Ok(())
}

/// Registers a callback for all blocks that QEMU translates.
fn look_at_blocks(plugin: u64, cortex: &Cortex) {
    let register = cortex.functions.qemu_plugin_register_vcpu_tb_trans_cb;
    // SAFETY: the function lives as long as the plugin, which is never unloaded.
    unsafe { register(plugin, block_translated) };
}

/// Calls `act` with the profile and the number of executed instructions. Returns `None` if nothing
/// is counted.
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
    // The processor exists, because it translates a block.
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
    // No lock may be held here: the call takes QEMU's big lock, whose holder may wait for the lock
    // of the counts.
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
