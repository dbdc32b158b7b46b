// SPDX-License-Identifier: MIT OR Apache-2.0
//! Observes the guest's stores to the registers of its output pins ([`Outputs`]).
//!
//! With `-icount`, QEMU requires that an instruction that accesses a device is the last of its
//! block, so that the clock is exact. So only stores that end a block are observed, and other
//! instructions are not slowed down.
use std::ffi::{c_int, c_uint, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::cortex::Cortex;
use crate::outputs::{OutputPlan, Outputs};
use crate::qemu::{CLOCK_VIRTUAL, functions};
use crate::report::OutputReport;

/// QEMU's `QEMU_PLUGIN_CB_NO_REGS`: the callback reads no registers.
const NO_REGISTERS: c_int = 0;
/// QEMU's `QEMU_PLUGIN_MEM_W`.
const STORES: c_int = 2;

type MemoryCallback =
    unsafe extern "C" fn(cpu: c_uint, information: u32, address: u64, data: *mut c_void);

functions! {
    Functions {
        qemu_clock_get_ns: fn(c_int) -> i64;
        qemu_plugin_tb_n_insns: fn(*mut c_void) -> usize;
        qemu_plugin_tb_get_insn: fn(*mut c_void, usize) -> *mut c_void;
        qemu_plugin_register_vcpu_mem_cb: fn(*mut c_void, MemoryCallback, c_int, c_int, *mut c_void);
    }
}

/// The recorded pins, and access to their registers.
struct Pinout {
    functions: Functions,
    cortex: Cortex,
    is_connected: bool,
    outputs: Outputs,
}

static PINOUT: Mutex<Option<Pinout>> = Mutex::new(None);

fn pinout() -> MutexGuard<'static, Option<Pinout>> {
    PINOUT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts recording the edges of these pins. The machine must not have been created yet.
/// [`look_at`] must be called with each block that QEMU translates.
///
/// # Errors
/// The error is the name of a function that this QEMU does not have.
pub fn begin(plans: &[OutputPlan]) -> Result<(), &'static str> {
    *pinout() = Some(Pinout {
        functions: Functions::find()?,
        cortex: Cortex::find()?,
        is_connected: false,
        outputs: Outputs::new(plans),
    });
    Ok(())
}

/// Registers callbacks for the stores of a block.
///
/// # Safety
/// QEMU must be translating the block.
pub unsafe fn look_at(block: *mut c_void) {
    let mut pinout = pinout();
    let Some(pinout) = pinout.as_mut() else {
        return;
    };
    // The processor exists, because it translates a block.
    if !pinout.is_connected {
        pinout.is_connected = pinout.cortex.connect().is_ok();
    }
    let functions = pinout.functions;
    // SAFETY: the block is QEMU's during this call, and so are its instructions.
    unsafe {
        let count = (functions.qemu_plugin_tb_n_insns)(block);
        if let Some(last) = count.checked_sub(1) {
            (functions.qemu_plugin_register_vcpu_mem_cb)(
                (functions.qemu_plugin_tb_get_insn)(block, last),
                stored,
                NO_REGISTERS,
                STORES,
                std::ptr::null_mut(),
            );
        }
    }
}

/// Returns the edges of all pins.
pub fn report() -> Vec<OutputReport> {
    let outputs = |pinout: &Pinout| pinout.outputs.report();
    pinout().as_ref().map_or_else(Vec::new, outputs)
}

unsafe extern "C" fn stored(_cpu: c_uint, _information: u32, address: u64, _data: *mut c_void) {
    let Ok(address) = u32::try_from(address) else {
        return;
    };
    let is_wanted = |pinout: &&Pinout| pinout.outputs.has(address);
    let Some((cortex, functions)) = pinout()
        .as_ref()
        .filter(is_wanted)
        .map(|pinout| (pinout.cortex, pinout.functions))
    else {
        return;
    };
    // The lock must not be held here: the read takes QEMU's big lock, whose holder may wait for
    // this lock.
    let Some(content) = cortex.read(address).map(u32::from_le_bytes) else {
        return;
    };
    // SAFETY: the block is at its end, where the clock can be read.
    let now = unsafe { (functions.qemu_clock_get_ns)(CLOCK_VIRTUAL) };
    if let Some(pinout) = pinout().as_mut() {
        let now = u64::try_from(now).unwrap_or(0);
        pinout.outputs.note(now, address, content);
    }
}
