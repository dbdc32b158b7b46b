// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whose files are trusted.
use nix::unistd::geteuid;

/// The permissions of all but a file's owner.
pub(super) const OTHERS: u32 = 0o077;

/// Whether files of `user` can be trusted: the user is this process's own, or root.
pub(super) fn is_ours(user: u32) -> bool {
    user == 0 || user == geteuid().as_raw()
}
