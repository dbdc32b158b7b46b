// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts the instructions that the guest executes, by the blocks that QEMU translates.
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
