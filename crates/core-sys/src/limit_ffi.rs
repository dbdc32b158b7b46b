// SPDX-License-Identifier: MIT OR Apache-2.0
//! The FFI boundary to `shims/limit.c`: the same functions once per tick width, with and without
//! the record.

use std::ffi::c_void;

use crate::functions::functions;

/// Has the layout of `weir_ffi_limit_config_t`.
#[repr(C)]
pub struct RawLimit {
    pub interval: u64,
    pub lag: u64,
    pub burst: u8,
    pub policy: u8,
    pub timing: u8,
    pub trigger: u8,
}

/// Has the layout of `weir_ffi_limit_step_t`.
#[repr(C)]
#[derive(Default)]
pub struct RawStep {
    pub at: u64,
    pub actions: u32,
}

/// Has the layout of `weir_ffi_limit_record_t`.
#[repr(C)]
#[derive(Default)]
pub struct RawRecord {
    pub longest_masked: u64,
    pub longest_handler: u64,
    pub first_overload: u64,
    pub last_overload: u64,
    pub taken: u32,
    pub served: u32,
    pub masked_intervals: u32,
    pub overloads: u32,
}

// The C file asserts the same sizes and offsets.
const _: () = {
    assert!(std::mem::offset_of!(RawLimit, burst) == 16 && size_of::<RawLimit>() == 24);
    assert!(std::mem::offset_of!(RawStep, actions) == 8 && size_of::<RawStep>() == 16);
    assert!(std::mem::offset_of!(RawRecord, taken) == 32 && size_of::<RawRecord>() == 48);
};

// The functions of `shims/limit.c`. Every pointer to a limiter points to `size()` bytes, aligned to
// `alignment()`.
functions! {
    {
        fn size() -> usize;
        fn alignment() -> usize;
        fn check(config: *const RawLimit) -> u32;
        fn start(limit: *mut c_void, config: *const RawLimit, now: u64, step: *mut RawStep);
        fn request(limit: *mut c_void, now: u64, elapsed: bool, step: *mut RawStep);
        fn refused(limit: *mut c_void, now: u64, step: *mut RawStep);
        fn expired(limit: *mut c_void, now: u64, pending: bool, step: *mut RawStep);
        fn tick(limit: *mut c_void, now: u64, pending: bool, step: *mut RawStep);
        fn user_enable(limit: *mut c_void, now: u64, step: *mut RawStep);
        fn user_disable(limit: *mut c_void, step: *mut RawStep);
        fn reconfigure(limit: *mut c_void, to: *const RawLimit, now: u64, step: *mut RawStep) -> u32;
        fn age(limit: *mut c_void, now: u64);
        fn elapsed(limit: *mut c_void);
        fn done(limit: *mut c_void, begin: u64, now: u64);
        fn is_on(limit: *const c_void) -> bool;
        fn next(limits: *const *const c_void, count: u8, now: u64, at: *mut u64) -> bool;
        fn record(limit: *const c_void, record: *mut RawRecord) -> bool;
    }
    BITS16: "weir_ffi16_limit_",
    BITS32: "weir_ffi32_limit_",
    BITS64: "weir_ffi64_limit_",
    BARE16: "weir_ffi16bare_limit_",
    BARE32: "weir_ffi32bare_limit_",
    BARE64: "weir_ffi64bare_limit_",
}
