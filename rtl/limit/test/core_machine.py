# SPDX-License-Identifier: MIT OR Apache-2.0
"""The C machine of core/ as a port without latency runs it: L = 0, an EDGE pending bit that is one deep, 64-bit ticks of one clock."""

import ctypes
import os
import subprocess
from pathlib import Path

CORE = Path(__file__).resolve().parents[3] / "core"
STRICT, BURSTY, BUCKET = 1, 3, 4
EAGER, ONE_SHOT, EDGE = 0, 2, 0
SERVE, ACK, ARM, DISARM = 1 << 0, 1 << 1, 1 << 4, 1 << 6


class Config(ctypes.Structure):
    """weir_ffi_limit_config_t"""

    _fields_ = [(name, ctypes.c_uint64) for name in ("interval", "lag")] + [(name, ctypes.c_uint8) for name in ("burst", "policy", "timing", "trigger")]


class Step(ctypes.Structure):
    """weir_ffi_limit_step_t"""

    _fields_ = [("at", ctypes.c_uint64), ("actions", ctypes.c_uint32)]


def load(folder):
    """Compiles core/ into the folder."""
    library = Path(folder).resolve() / "core.so"
    flags = ["-std=c11", "-O1", "-shared", "-fPIC", "-DWEIR_TICK_BITS=64", "-DWEIR_LIMIT_RECORD=0", f"-I{CORE / 'include'}"]
    subprocess.run([os.environ.get("CC", "cc"), *flags, "-o", library, CORE.parent / "crates/core-sys/shims/limit.c"], check=True)
    loaded = ctypes.CDLL(str(library))
    loaded.weir_ffi_limit_size.restype = ctypes.c_size_t
    loaded.weir_ffi_limit_is_on.restype = ctypes.c_bool
    return loaded


class Machine:
    """One source. `clock` is one instant: the user's change, then the timer, then the source's interrupt, if it is on."""

    def __init__(self, library, policy, interval, burst, now):
        self.library = library
        self.memory = ctypes.create_string_buffer(library.weir_ffi_limit_size())
        self.step = Step()
        self.pending, self.at = False, None
        timing = ONE_SHOT if policy == BURSTY else EAGER
        config = Config(interval, 0, burst, policy, timing, EDGE)
        assert library.weir_ffi_limit_check(ctypes.byref(config)) == 0
        library.weir_ffi_limit_start(self.memory, ctypes.byref(config), ctypes.c_uint64(now), ctypes.byref(self.step))

    def perform(self):
        """The port's part. Returns whether the handler runs."""
        actions = self.step.actions
        if actions & ARM:
            self.at = self.step.at
        elif actions & DISARM:
            self.at = None
        if actions & ACK:
            self.pending = False
        return bool(actions & SERVE)

    def user(self, enable, now):
        if enable:
            self.library.weir_ffi_limit_user_enable(self.memory, ctypes.c_uint64(now), ctypes.byref(self.step))
        else:
            self.library.weir_ffi_limit_user_disable(self.memory, ctypes.byref(self.step))
        assert not self.perform()

    def clock(self, now):
        """Returns how often the handler runs at this instant."""
        served = 0
        if self.at is not None and self.at <= now:
            self.at = None
            self.library.weir_ffi_limit_expired(self.memory, ctypes.c_uint64(now), ctypes.c_bool(self.pending), ctypes.byref(self.step))
            served += self.perform()
        if self.pending and self.library.weir_ffi_limit_is_on(self.memory):
            self.pending = False
            self.library.weir_ffi_limit_request(self.memory, ctypes.c_uint64(now), ctypes.c_bool(False), ctypes.byref(self.step))
            served += self.perform()
        return served
