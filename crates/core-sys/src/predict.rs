// SPDX-License-Identifier: MIT OR Apache-2.0
//! Predicts the urgency of a device's bottom half while the receiver of its packets is unknown
//! (`include/weir/predict.h`).

use std::ffi::c_void;

use crate::classes_ffi::{self as ffi, NONE, RawHistory};

/// The kinds of prediction (zhang2006 §3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Prediction {
    /// Predicts the most urgent process that waits for the device.
    Waiting = 0,
    /// Predicts the most urgent process that is registered with the device.
    Registered = 1,
    /// Predicts from the receivers of recent packets, and never higher than
    /// [`Prediction::Waiting`].
    History = 2,
}

/// The settings of the prediction from history: `weir_predict_config_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct History {
    /// A class is predicted if at least this share of recent packets was for that class or a more
    /// urgent one. Range: 1 to [`History::ALL`].
    pub share: u16,
    /// The weight of the newest packet is 2^-shift. Range: 0 to 8.
    pub shift: u8,
    /// The number of consecutive deferrals after which history is ignored. 0: history is always
    /// ignored; 255: never.
    pub patience: u8,
}

impl History {
    /// The share that stands for all packets.
    pub const ALL: u16 = 0x8000;

    fn raw(self) -> RawHistory {
        RawHistory {
            share: self.share,
            shift: self.shift,
            patience: self.patience,
        }
    }
}

impl Default for History {
    /// The default share is one packet in eight, averaged over about 32 packets. Every sixteenth
    /// deferral ignores history.
    fn default() -> Self {
        History {
            share: Self::ALL / 8,
            shift: 5,
            patience: 16,
        }
    }
}

/// The `share` or the `shift` is out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadHistory;

impl std::fmt::Display for BadHistory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the share must be 1 to 32768 parts of 32768, and the shift 0 to 8")
    }
}

impl std::error::Error for BadHistory {}

/// The predictor of one device: `weir_predict_t`. A clone is independent.
#[derive(Clone, Debug)]
pub struct Predictor {
    config: RawHistory,
    memory: Box<[u64]>,
}

impl Predictor {
    fn pointer(&mut self) -> *mut c_void {
        self.memory.as_mut_ptr().cast()
    }

    /// Calls `weir_predict_start()`. At the start no process waits or is registered, and no packet
    /// has been seen.
    ///
    /// # Errors
    /// Fails if the share or the shift is out of range.
    pub fn new(history: History) -> Result<Self, BadHistory> {
        // SAFETY: the function takes no argument and touches no memory.
        let size = unsafe { ffi::weir_ffi_predict_size() };
        let mut predictor = Predictor {
            config: history.raw(),
            memory: vec![0; size.div_ceil(8)].into_boxed_slice(),
        };
        let config = predictor.config;
        // SAFETY: the memory has at least `size` bytes, and nothing in a weir_predict_t needs a
        // greater alignment than a u64's.
        let valid = unsafe { ffi::weir_ffi_predict_start(predictor.pointer(), &raw const config) };
        if valid {
            Ok(predictor)
        } else {
            Err(BadHistory)
        }
    }

    /// Calls `weir_predict_wait()`: a process of a class begins to wait. Returns false if the class
    /// does not exist, or if 65535 processes already wait.
    pub fn wait(&mut self, class: u8) -> bool {
        // SAFETY: the memory is a weir_predict_t that `new` has started.
        unsafe { ffi::weir_ffi_predict_wait(self.pointer(), class) }
    }

    /// Calls `weir_predict_stop_waiting()`: a process of a class stops waiting. Returns false if no
    /// process of the class waited.
    pub fn stop_waiting(&mut self, class: u8) -> bool {
        // SAFETY: as in `wait`.
        unsafe { ffi::weir_ffi_predict_stop_waiting(self.pointer(), class) }
    }

    /// Calls `weir_predict_register()`: a process of a class opens a socket on the device. Returns
    /// false if the class does not exist, or if 65535 sockets are already registered.
    pub fn register(&mut self, class: u8) -> bool {
        // SAFETY: as in `wait`.
        unsafe { ffi::weir_ffi_predict_register(self.pointer(), class) }
    }

    /// Calls `weir_predict_unregister()`: a process of a class closes its socket. When the last
    /// socket of a class is closed, the history of that class is deleted. Returns false if no
    /// socket was open.
    pub fn unregister(&mut self, class: u8) -> bool {
        // SAFETY: as in `wait`.
        unsafe { ffi::weir_ffi_predict_unregister(self.pointer(), class) }
    }

    /// Calls `weir_predict_handled()`: a packet of the device was handled. `class` is the class of
    /// its receiver, or `None` if it had no receiver.
    pub fn handled(&mut self, class: Option<u8>) {
        let config = self.config;
        // SAFETY: as in `wait`; `config` lives through the call.
        unsafe {
            ffi::weir_ffi_predict_handled(self.pointer(), &raw const config, class.unwrap_or(NONE));
        }
    }

    /// Calls `weir_predict_deferred()`: a bottom half of the device was deferred. Call this after
    /// each top half that is not followed by a bottom half, and at each clock tick while a bottom
    /// half is deferred.
    pub fn deferred(&mut self) {
        let config = self.config;
        // SAFETY: as in `handled`.
        unsafe { ffi::weir_ffi_predict_deferred(self.pointer(), &raw const config) }
    }

    /// Calls `weir_predict()`: returns the class of the probable receiver of the device's next
    /// packet. `None` if no process waits or, with history, if hardly any recent packet had a
    /// receiver.
    #[must_use]
    pub fn predict(&self, how: Prediction) -> Option<u8> {
        // SAFETY: as in `handled`; C only reads.
        let class = unsafe {
            ffi::weir_ffi_predict(
                self.memory.as_ptr().cast(),
                &raw const self.config,
                how as u8,
            )
        };
        (class != NONE).then_some(class)
    }
}
