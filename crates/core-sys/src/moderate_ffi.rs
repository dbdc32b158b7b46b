// SPDX-License-Identifier: MIT OR Apache-2.0
//! The FFI boundary to `shims/moderate.c`: the same functions once per tick width.

use std::ffi::c_void;

use crate::functions::functions;

/// Has the layout of `weir_ffi_moderate_config_t`.
#[repr(C)]
pub struct RawQueue {
    pub absolute: u64,
    pub packet: u64,
    pub count: u16,
    pub size: u16,
}

/// Has the layout of `weir_ffi_moderate_queue_t`.
#[repr(C)]
#[derive(Default)]
pub struct RawQueueState {
    pub accepted: u32,
    pub dropped: u32,
    pub interrupts: u32,
    pub waiting: u16,
    pub phase: u8,
}

// The C file asserts the same sizes and offsets.
const _: () = {
    assert!(std::mem::offset_of!(RawQueue, size) == 18 && size_of::<RawQueue>() == 24);
    assert!(std::mem::offset_of!(RawQueueState, phase) == 14 && size_of::<RawQueueState>() == 16);
};

// The functions of `shims/moderate.c`. The first parameter is an array of queues of `size()` bytes
// each, aligned to `alignment()`; the second is an index into the array, or (for `expired`) its
// length.
functions! {
    {
        fn size() -> usize;
        fn alignment() -> usize;
        fn check(config: *const RawQueue) -> u32;
        fn start(queues: *mut c_void, queue: u16, config: *const RawQueue);
        fn arrive(queues: *mut c_void, queue: u16, now: u64) -> u32;
        fn remove(queues: *mut c_void, queue: u16, count: u16) -> u16;
        fn done(queues: *mut c_void, queue: u16, now: u64) -> bool;
        fn reconfigure(
            queues: *mut c_void,
            queue: u16,
            to: *const RawQueue,
            now: u64,
            interrupt: *mut bool,
        ) -> u32;
        fn next(queues: *const c_void, from: u16, count: u16, now: u64, at: *mut u64) -> bool;
        fn expired(queues: *mut c_void, count: u16, from: u16, now: u64) -> u16;
        fn read(queues: *const c_void, queue: u16, out: *mut RawQueueState);
    }
    BITS16: "weir_ffi16_moderate_",
    BITS32: "weir_ffi32_moderate_",
    BITS64: "weir_ffi64_moderate_",
}
