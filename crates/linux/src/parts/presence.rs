// SPDX-License-Identifier: MIT OR Apache-2.0
//! The presence of a run's interfaces: one may disappear, with its network namespace or without,
//! and come back as another one with the same name.
use std::collections::BTreeMap;
use std::io;

use super::Messages;
use crate::settings::NetDevice;
use crate::system::Node;

/// Interfaces as they were found last, by name; none: it has gone.
#[derive(Debug, Default)]
pub struct Presence(BTreeMap<String, Option<NetDevice>>);

impl Presence {
    /// Looks for all interfaces of `node`, and reports which have gone and which are back since the
    /// last time.
    ///
    /// # Errors
    /// Fails in the first look when one is missing, and in any look when the kernel does not
    /// answer.
    pub fn look(&mut self, node: &Node, messages: &Messages) -> miette::Result<()> {
        for of in &node.interfaces {
            let name = &of.name;
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

    /// Whether there is an interface with this name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(Option::is_some)
    }

    /// Whether an interface has gone since the last look. That may be the cause of an error
    /// meanwhile, and the next look reports it.
    #[must_use]
    pub fn is_outdated(&self) -> bool {
        let is_other = |(name, found): (&String, &Option<NetDevice>)| {
            found.is_some() && NetDevice::find(name, None).ok() != *found
        };
        self.0.iter().any(is_other)
    }
}

/// What has happened to an interface that is not found by its name any longer.
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
