// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decides which files are trusted, by their owners.
use nix::unistd::geteuid;

/// Permission bits of the group and of all others.
pub(super) const OTHERS: u32 = 0o077;

/// Whether files of `user` can be trusted, since `user` is this process's user or root.
pub(super) fn is_ours(user: u32) -> bool {
    user == 0 || user == geteuid().as_raw()
}
