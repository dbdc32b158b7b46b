// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sends and receives many datagrams with one system call.
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// The most datagrams that one call sends or receives.
pub(crate) const MOST: usize = 64;

/// Sends the messages over a connected socket. Returns the number of messages that the system took.
pub(crate) fn send(socket: BorrowedFd<'_>, messages: &mut [Vec<u8>]) -> io::Result<usize> {
    let mut headers = Headers::over(messages.iter_mut().map(Vec::as_mut_slice));
    // SAFETY: the headers point into `messages`, which are borrowed until the call returns.
    let sent = unsafe {
        libc::sendmmsg(
            socket.as_raw_fd(),
            headers.messages.as_mut_ptr(),
            headers.count(),
            0,
        )
    };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Receives the datagrams that wait in the socket into `buffers`, and writes their lengths to
/// `lengths`. Returns the number of datagrams.
///
/// # Errors
/// Fails with [`io::ErrorKind::WouldBlock`] if no datagram waits.
pub(crate) fn receive(
    socket: BorrowedFd<'_>,
    buffers: &mut [Vec<u8>],
    lengths: &mut [usize; MOST],
) -> io::Result<usize> {
    let mut headers = Headers::over(buffers.iter_mut().map(Vec::as_mut_slice));
    // SAFETY: the headers point into `buffers`, which are borrowed until the call returns. The call
    // gets no time limit to read.
    let received = unsafe {
        libc::recvmmsg(
            socket.as_raw_fd(),
            headers.messages.as_mut_ptr(),
            headers.count(),
            libc::MSG_DONTWAIT,
            std::ptr::null_mut(),
        )
    };
    let received = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
    for (length, message) in lengths.iter_mut().zip(&headers.messages) {
        *length = usize::try_from(message.msg_len).unwrap_or(0);
    }
    Ok(received)
}

/// The arguments of sendmmsg and recvmmsg: for each message, a header that points to one buffer.
struct Headers {
    messages: Vec<libc::mmsghdr>,
    /// The vectors to which the headers point. They are kept so that the pointers stay valid.
    _pieces: Vec<libc::iovec>,
}

impl Headers {
    /// Creates headers for the first [`MOST`] of `buffers`.
    fn over<'a>(buffers: impl Iterator<Item = &'a mut [u8]>) -> Self {
        let mut pieces: Vec<libc::iovec> = buffers
            .take(MOST)
            .map(|buffer| libc::iovec {
                iov_base: buffer.as_mut_ptr().cast(),
                iov_len: buffer.len(),
            })
            .collect();
        let messages = pieces
            .iter_mut()
            .map(|piece| {
                // SAFETY: all zeros is a valid header without an address and without control data.
                let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
                message.msg_hdr.msg_iov = piece;
                message.msg_hdr.msg_iovlen = 1;
                message
            })
            .collect();
        Self {
            messages,
            _pieces: pieces,
        }
    }

    fn count(&self) -> libc::c_uint {
        libc::c_uint::try_from(self.messages.len()).unwrap_or(0)
    }
}
