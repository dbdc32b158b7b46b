// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages about settings that were restored, or could not be.
use std::path::Path;

use crate::instance::{self, InstanceError};
use crate::settings::{Outcome, Restoration, Setting};

/// Returns a line for each setting whose first value was not simply restored.
#[must_use]
pub fn remarks(restoration: &Restoration<Setting>) -> Vec<String> {
    let mut lines: Vec<String> = restoration.outcomes.iter().filter_map(remark).collect();
    lines.extend(restoration.trouble.iter().cloned());
    lines
}

fn remark((setting, outcome): &(Setting, Outcome<crate::settings::Value>)) -> Option<String> {
    match outcome {
        Outcome::Restored | Outcome::Unchanged => None,
        Outcome::Vanished => Some(format!(
            "{setting}: its object is gone, so nothing is put back"
        )),
        Outcome::Foreign(value) => Some(format!(
            "{setting}: somebody else has set it to {value}, and it stays so"
        )),
        Outcome::Shared => Some(format!(
            "{setting}: another run needs it, and puts it back when it ends"
        )),
        Outcome::Failed(why) => Some(format!("{setting}: cannot be put back: {why}")),
    }
}

/// Number of settings that have their first values again.
#[must_use]
pub fn count(restoration: &Restoration<Setting>) -> usize {
    let put_back = |outcome: &_| matches!(outcome, Outcome::Restored | Outcome::Unchanged);
    let outcomes = restoration.outcomes.iter();
    outcomes.filter(|(_, outcome)| put_back(outcome)).count()
}

/// Removes the files of crashed runs. Call this after their changes have been restored.
///
/// # Errors
/// Fails when the folder or a file in it cannot be read or removed.
pub fn forget_crashed(folder: &Path) -> Result<(), InstanceError> {
    for run in instance::all(folder)? {
        if !run.lives() {
            run.forget(folder)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Value;

    #[test]
    fn only_what_is_not_as_before_is_remarked() {
        let setting = Setting::Sysctl {
            path: "kernel/x".to_owned(),
        };
        let text = |text: &str| Value::Text(text.to_owned());
        let restoration = Restoration {
            pid: Some(1),
            outcomes: vec![
                (setting.clone(), Outcome::Restored),
                (setting.clone(), Outcome::Unchanged),
                (setting.clone(), Outcome::Foreign(text("7"))),
                (setting, Outcome::Failed("no".to_owned())),
            ],
            unreadable: 0,
            trouble: vec!["the folder has gone".to_owned()],
        };
        let remarks = remarks(&restoration);
        assert_eq!(count(&restoration), 2);
        assert_eq!(
            remarks[0],
            "the sysctl kernel.x: somebody else has set it to 7, and it stays so"
        );
        assert_eq!(remarks[1], "the sysctl kernel.x: cannot be put back: no");
        assert_eq!(remarks[2..], ["the folder has gone"]);
    }
}
