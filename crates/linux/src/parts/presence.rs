// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which interfaces of a run are present. An interface may disappear, alone or with its network
//! namespace. Another interface with the same name may then take its place.
use std::collections::BTreeMap;
use std::io;

use super::Messages;
use crate::settings::NetDevice;
use crate::system::Node;

/// The interfaces as they were at the last search, by name. `None` if the interface was missing.
#[derive(Debug, Default)]
pub struct Presence(BTreeMap<String, Option<NetDevice>>);

impl Presence {
    /// Searches for all interfaces of `node`. Reports which of them have disappeared or come back
    /// since the last search.
    ///
    /// # Errors
    /// Fails in the first search if an interface is missing, and in any search if the kernel does
    /// not answer.
    pub fn look(&mut self, node: &Node, messages: &Messages) -> miette::Result<()> {
        for interface in &node.interfaces {
            let name = &interface.name;
            let now = match NetDevice::find(name, None) {
                Ok(found) => Some(found),
                Err(error) if is_absent(&error) && self.0.contains_key(name) => None,
                Err(error) => miette::bail!("the interface `{name}` cannot be found: {error}"),
            };
            let now_there = now.is_some();
            match self.0.insert(name.clone(), now.clone()) {
                None => {}
                Some(before) if before == now => {}
                Some(Some(before)) if !now_there => messages.line(&left(&before)),
                Some(_) => messages.line(&format!("the interface `{name}` is back")),
            }
        }
        Ok(())
    }

    /// Whether the interface with this name was present at the last search.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(Option::is_some)
    }

    /// Whether an interface has disappeared or been replaced since the last search. That may be the
    /// cause of other errors. The next search reports it.
    #[must_use]
    pub fn is_outdated(&self) -> bool {
        let is_other = |(name, found): (&String, &Option<NetDevice>)| {
            found.is_some() && NetDevice::find(name, None).ok() != *found
        };
        self.0.iter().any(is_other)
    }
}

/// Describes what has happened to an interface that is not found by its name any longer.
fn left(before: &NetDevice) -> String {
    let name = &before.name;
    match before.open() {
        Ok(open) => {
            let place = if open.namespace() == before.namespace {
                String::new()
            } else {
                " in another network namespace".to_owned()
            };
            format!(
                "the interface `{name}` is `{}`{place} now; its settings stay until the end, and are put back there. Weir takes up an interface `{name}` as soon as there is one",
                open.name()
            )
        }
        Err(error) if is_absent(&error) => format!(
            "the interface `{name}` has gone, with all of its settings; Weir takes it up again when it is back"
        ),
        Err(error) => {
            format!("the interface `{name}`: {error}. Weir takes it up again when it is back")
        }
    }
}

fn is_absent(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENODEV)
}
