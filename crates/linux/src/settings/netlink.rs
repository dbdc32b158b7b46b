// SPDX-License-Identifier: MIT OR Apache-2.0
//! What only netlink (rtnetlink(7)) tells of interfaces: in which network namespace the other end of a pair is.
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// The lengths of `struct nlmsghdr`, `struct ifinfomsg`, `struct rtgenmsg` with its padding, and `struct rtattr`.
const HEADER: usize = 16;
const LINK: usize = 16;
const GENERAL: usize = 4;
const ATTRIBUTE: usize = 4;

/// Messages of <linux/rtnetlink.h>, and attributes of <linux/if_link.h> and <linux/net_namespace.h>.
const RTM_GETLINK: u16 = 18;
const RTM_GETNSID: u16 = 90;
const IFLA_LINK_NETNSID: u16 = 37;
const NETNSA_NSID: u16 = 1;
const NETNSA_FD: u16 = 3;

/// The number, in this network namespace, of the one in which the other end of the interface `index` is; none: it is in this one, or there is no other end.
///
/// # Errors
/// ENODEV when there is no such interface.
pub fn namespace_of_link(index: i32) -> io::Result<Option<i32>> {
    let mut body = [0; LINK];
    body[4..8].copy_from_slice(&index.to_ne_bytes());
    let answer = ask(RTM_GETLINK, &body)?;
    Ok(attribute(&answer, LINK, IFLA_LINK_NETNSID))
}

/// The number that this network namespace has for `namespace`; none if it has none.
///
/// # Errors
/// When `namespace` is none.
pub fn number_of(namespace: &File) -> io::Result<Option<i32>> {
    let mut body = vec![0; GENERAL];
    let length = ATTRIBUTE as u16 + 4;
    body.extend(length.to_ne_bytes());
    body.extend(NETNSA_FD.to_ne_bytes());
    body.extend(namespace.as_raw_fd().to_ne_bytes());
    let answer = ask(RTM_GETNSID, &body)?;
    let number = attribute(&answer, GENERAL, NETNSA_NSID);
    Ok(number.filter(|number| *number >= 0))
}

/// The 32 bits of an attribute of an answer, whose own structure has that length.
fn attribute(answer: &[u8], own: usize, wanted: u16) -> Option<i32> {
    let mut rest = answer.get(HEADER + own..)?;
    while rest.len() >= ATTRIBUTE {
        let word = |at: usize| u16::from_ne_bytes([rest[at], rest[at + 1]]);
        let (length, kind) = (usize::from(word(0)), word(2));
        if length < ATTRIBUTE {
            return None;
        }
        if kind == wanted {
            let value = rest.get(ATTRIBUTE..ATTRIBUTE + 4)?;
            return Some(i32::from_ne_bytes(value.try_into().ok()?));
        }
        // The next begins at a multiple of four.
        rest = rest.get(length.next_multiple_of(4)..)?;
    }
    None
}

/// What the kernel answers to one request.
fn ask(kind: u16, body: &[u8]) -> io::Result<Vec<u8>> {
    // SAFETY: no pointers are passed; the descriptor is nobody else's.
    let socket = unsafe {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        let socket = libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE);
        if socket < 0 {
            return Err(io::Error::last_os_error());
        }
        OwnedFd::from_raw_fd(socket)
    };
    let length = (HEADER + body.len()) as u32;
    let mut message = Vec::from(length.to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend((libc::NLM_F_REQUEST as u16).to_ne_bytes());
    // A number of the request, and of who asks: nobody else uses the socket.
    message.extend([0; 8]);
    message.extend(body);
    // SAFETY: the message outlives the call. Without an address it goes to the kernel.
    let sent = unsafe {
        libc::send(
            socket.as_raw_fd(),
            message.as_ptr().cast(),
            message.len(),
            0,
        )
    };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    // One interface with all that the kernel tells of it has some kilobytes.
    let mut answer = vec![0; 65_536];
    // SAFETY: the kernel writes at most that many bytes.
    let received = unsafe {
        libc::recv(
            socket.as_raw_fd(),
            answer.as_mut_ptr().cast(),
            answer.len(),
            0,
        )
    };
    let received = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
    answer.truncate(received);
    let is_error = answer.get(4..6) == Some(&(libc::NLMSG_ERROR as u16).to_ne_bytes());
    match answer.get(HEADER..HEADER + 4) {
        Some(number) if is_error => {
            let number = i32::from_ne_bytes(number.try_into().map_err(io::Error::other)?);
            Err(io::Error::from_raw_os_error(-number))
        }
        Some(_) => Ok(answer),
        None => Err(io::Error::from(io::ErrorKind::InvalidData)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_without_another_end_has_no_other_namespace() {
        // The loopback interface.
        assert_eq!(namespace_of_link(1).unwrap(), None);
        let missing = namespace_of_link(i32::MAX).unwrap_err();
        assert_eq!(missing.raw_os_error(), Some(libc::ENODEV));
        let file = File::open("/proc/self/status").unwrap();
        assert!(number_of(&file).is_err());
    }
}
