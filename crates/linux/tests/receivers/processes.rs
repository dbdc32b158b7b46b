// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests processes that share sockets, and that become or stop being readers.
use libc::{SOCK_CLOEXEC, SOCK_DGRAM, SOCK_STREAM};
use weir_linux::receivers::{Follower, PacketKey, Reach};

use super::actor::{Actor, bind, child, close, execute_sleep};
use super::{any4, by_events, by_scans, keys_of, reader, tcp, udp, wait_for};
use crate::ground::{self, Ground};

/// Processes that read a key in the test's own namespaces. The same test may run in another process
/// at the same time.
fn pids(follower: &Follower, key: PacketKey, ground: &Ground) -> Vec<u32> {
    let here = ground.receiver.run(|| Reach::find("lo").unwrap().namespace);
    let readers = follower.table().readers(key);
    readers
        .filter(|reader| Some(reader.id.place.namespace) == here)
        .map(|reader| reader.id.pid)
        .collect()
}

#[test]
fn a_fork_shares_its_parents_sockets_until_both_are_gone() {
    let Some(ground) = ground::begin_with_bpf() else {
        return;
    };
    let mut follower = by_events();
    let actor = Actor::new(&ground.receiver, || {
        bind(any4(4101), SOCK_DGRAM);
        child(|| ());
    });
    wait_for(&mut follower, "two readers", |f| {
        let readers = pids(f, udp(4101), &ground);
        readers.len() == 2 && readers.contains(&actor.pid())
    });
    // The child process ends with its parent.
    drop(actor);
    wait_for(&mut follower, "no reader", |f| {
        pids(f, udp(4101), &ground).is_empty()
    });
}

#[test]
fn what_only_one_of_two_closes_is_found_by_a_scan() {
    let Some(ground) = ground::begin_with_bpf() else {
        return;
    };
    let mut follower = by_scans();
    let actor = Actor::new(&ground.receiver, || {
        let socket = bind(any4(4102), SOCK_DGRAM);
        child(|| ());
        close(socket);
    });
    wait_for(&mut follower, "the child alone", |f| {
        let readers = pids(f, udp(4102), &ground);
        readers.len() == 1 && readers[0] != actor.pid()
    });
}

#[test]
fn another_program_keeps_what_was_not_to_be_closed() {
    let Some(ground) = ground::begin_with_bpf() else {
        return;
    };
    let mut follower = by_events();
    let actor = Actor::new(&ground.receiver, || {
        bind(any4(4103), SOCK_DGRAM);
        bind(any4(4104), SOCK_DGRAM | SOCK_CLOEXEC);
        execute_sleep();
    });
    wait_for(&mut follower, "the other program", |f| {
        reader(f, udp(4103), actor.pid()).is_some_and(|reader| &*reader.comm == "sleep")
            && keys_of(f, actor.pid()) == [udp(4103)]
    });
}

#[test]
fn a_child_that_executes_another_program_leaves_its_parents_sockets() {
    let Some(ground) = ground::begin_with_bpf() else {
        return;
    };
    let mut follower = by_events();
    let actor = Actor::new(&ground.receiver, || {
        bind(any4(4105), SOCK_STREAM | SOCK_CLOEXEC);
        child(execute_sleep);
    });
    wait_for(&mut follower, "the parent", |f| {
        pids(f, tcp(4105), &ground).contains(&actor.pid())
    });
    wait_for(&mut follower, "the parent alone", |f| {
        pids(f, tcp(4105), &ground) == [actor.pid()]
    });
}

#[test]
fn a_socket_that_is_passed_is_found_by_a_scan() {
    let Some(ground) = ground::begin_with_bpf() else {
        return;
    };
    let mut follower = by_scans();
    let actor = Actor::new(&ground.receiver, || {
        let mut pair = [0; 2];
        // SAFETY: the kernel writes two descriptors.
        unsafe { libc::socketpair(libc::AF_UNIX, SOCK_STREAM, 0, pair.as_mut_ptr()) };
        child(move || {
            receive(pair[1]);
        });
        let socket = bind(any4(4106), SOCK_DGRAM);
        pass(pair[0], socket);
        close(socket);
    });
    wait_for(&mut follower, "the receiver alone", |f| {
        let readers = pids(f, udp(4106), &ground);
        readers.len() == 1 && readers[0] != actor.pid()
    });
}

fn message<T>(control: &mut [u64; 4], job: impl FnOnce(&mut libc::msghdr) -> T) -> T {
    let mut byte = 0_u8;
    let mut vector = libc::iovec {
        iov_base: (&raw mut byte).cast(),
        iov_len: 1,
    };
    // SAFETY: zero is valid for the integers and pointers of msghdr.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = &raw mut vector;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = 24;
    job(&mut header)
}

fn pass(through: i32, descriptor: i32) {
    let mut control = [0_u64; 4];
    message(&mut control, |header| {
        // SAFETY: the control buffer has room for one descriptor, and outlives the calls.
        unsafe {
            let item = libc::CMSG_FIRSTHDR(header);
            (*item).cmsg_level = libc::SOL_SOCKET;
            (*item).cmsg_type = libc::SCM_RIGHTS;
            (*item).cmsg_len = libc::CMSG_LEN(4) as _;
            libc::CMSG_DATA(item)
                .cast::<i32>()
                .write_unaligned(descriptor);
            libc::sendmsg(through, header, 0);
        }
    });
}

fn receive(through: i32) {
    let mut control = [0_u64; 4];
    // SAFETY: the buffers outlive the call.
    message(&mut control, |header| unsafe {
        libc::recvmsg(through, header, 0)
    });
}
