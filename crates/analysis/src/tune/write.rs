// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes chosen limits into the text of a system file. All text that does not change stays the
//! same, byte for byte.

use toml_edit::{
    ArrayOfTables, DocumentMut, Formatted, InlineTable, Item, Table, TableLike, TomlError, Value,
};
use weir_model::{Expiry, Interval, Limit, Place, Policy, System};

use crate::tune::plan::{Choice, LimitPlan, timer_name};
use crate::tune::platform::Platform;
use crate::tune::rate_text::rate_text;

/// Why limits cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteBackError {
    /// The text is not TOML.
    #[error("the file is not TOML: {0}")]
    Toml(#[from] TomlError),
    /// A source or a timer of the system is not in the text.
    #[error("the file has no [[{section}]] called `{name}`: tune the file that was read")]
    Missing {
        /// The kind of the section: `source` or `timer`.
        section: &'static str,
        /// The name of the source or timer.
        name: String,
    },
    /// A value stands where a table should be.
    #[error("`{key}` of `{name}` is not a table: write `{key} = {{ … }}`")]
    NotATable {
        /// The key that holds the value.
        key: &'static str,
        /// The name of the source or timer that has the key.
        name: String,
    },
}

/// Writes the limits of `plan` into `text`, the file of `system`, and returns the new text.
///
/// # Errors
/// [`WriteBackError`], if the text is not that of the system.
pub fn write_back(
    text: &str,
    system: &System,
    platform: &Platform,
    plan: &LimitPlan,
) -> Result<String, WriteBackError> {
    let mut document: DocumentMut = text.parse()?;
    let tuned = plan.apply(system, platform);
    if let Some(shared) = plan.shared {
        let old = shared.timer.and_then(|timer| system.timers.get(timer));
        let name = timer_name(system, platform, shared);
        let channel = platform.channels.get(shared.setting.channel);
        let is_in_file = old.is_some() || channel.is_some_and(|of| of.timer.is_some());
        let channel = channel.map_or("", |channel| channel.name.as_str());
        if !is_in_file {
            add_timer(&mut document, &name, channel);
        }
        let clock = system.cpu.clock_hz;
        entry(&mut document, "timer", &name, |timer| {
            if old.is_some_and(|old| old.channel != channel) {
                set_text(timer, "channel", channel);
            }
            if old.is_none_or(|old| old.period != shared.setting.interval) {
                set_interval(timer, "period", 1, shared.setting.interval, clock, 1);
            }
            Ok(())
        })?;
    }
    for (index, choice) in &plan.choices {
        let (Some(before), Some(after)) = (system.sources.get(*index), tuned.sources.get(*index))
        else {
            continue;
        };
        if before.limit == after.limit && !changes_its_timer(&before.limit, system, &tuned) {
            continue;
        }
        entry(&mut document, "source", &before.name, |source| {
            if source.get("limit").is_none() {
                source.insert("limit", Item::Value(Value::InlineTable(InlineTable::new())));
            }
            change_table(source, "limit", &before.name, |limit| {
                write_limit(
                    limit,
                    *choice,
                    &before.limit,
                    &after.limit,
                    &tuned,
                    platform,
                );
            })
        })?;
    }
    Ok(with_ends_of(text, &document.to_string()))
}

/// The mark with which some editors begin a text.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Returns `written` with the byte order mark and the line ends of `text`, because the TOML library
/// drops them. A line that is not in `text` ends like the first line of `text`.
fn with_ends_of(text: &str, written: &str) -> String {
    const ENDS: [&str; 2] = ["\r\n", "\n"];
    let end_of = |line: &str| ENDS.into_iter().find(|end| line.ends_with(end));
    let bare = |line: &str| line.trim_end_matches(['\r', '\n']).to_owned();
    let usual = text.split_inclusive('\n').find_map(end_of).unwrap_or("\n");
    let mut result = String::from_iter(text.chars().next().filter(|&of| of == BYTE_ORDER_MARK));
    let mut before = text
        .trim_start_matches(BYTE_ORDER_MARK)
        .split_inclusive('\n');
    for line in written.split_inclusive('\n') {
        let mut ahead = before.clone();
        let end = match ahead.find(|other| bare(other) == bare(line)) {
            Some(same) => {
                before = ahead;
                end_of(same)
            }
            None => None,
        };
        result.push_str(&bare(line));
        if line.ends_with('\n') {
            result.push_str(end.unwrap_or(usual));
        }
    }
    result
}

/// Returns the text with another `burst` in the limit of the source `name`.
///
/// # Errors
/// [`WriteBackError`], if the text is not that of the system.
pub fn write_burst(text: &str, name: &str, burst: u32) -> Result<String, WriteBackError> {
    write_in(text, name, "limit", |limit| {
        set_number(limit, "burst", u64::from(burst));
    })
}

/// Returns the text with another expected rate, in hertz, for the source `name`.
///
/// # Errors
/// [`WriteBackError`], if the text is not that of the system.
pub fn write_expected(text: &str, name: &str, hertz: f64) -> Result<String, WriteBackError> {
    write_in(text, name, "rate", |rate| {
        set_text(rate, "expected", &format!("{hertz}Hz"));
    })
}

/// Returns the text with the priority of the source `name` also given to each of `others`.
///
/// # Errors
/// [`WriteBackError`], if the text is not that of the system.
pub fn write_priority_of(
    text: &str,
    name: &str,
    others: &[&str],
) -> Result<String, WriteBackError> {
    const KEY: &str = "priority";
    let mut document: DocumentMut = text.parse()?;
    let mut priority = None;
    entry(&mut document, "source", name, |source| {
        priority = source.get(KEY).cloned();
        Ok(())
    })?;
    for other in others {
        entry(&mut document, "source", other, |source| {
            if let Some(priority) = &priority {
                source.insert(KEY, priority.clone());
            }
            Ok(())
        })?;
    }
    Ok(document.to_string())
}

/// Returns the text with another flavour of the board's port.
///
/// # Errors
/// [`WriteBackError`], if the text is not that of the system.
pub fn write_flavour(text: &str, flavour: &str) -> Result<String, WriteBackError> {
    let mut document: DocumentMut = text.parse()?;
    if let Some(cpu) = document.get_mut("cpu").and_then(Item::as_table_like_mut) {
        set_text(cpu, "flavour", flavour);
    }
    Ok(document.to_string())
}

/// Returns the text with a limit in hardware for the source `name`: one request per `interval`
/// cycles.
///
/// # Errors
/// [`WriteBackError`], if the text is not that of the system.
pub fn write_in_hardware(text: &str, name: &str, interval: u64) -> Result<String, WriteBackError> {
    let mut document: DocumentMut = text.parse()?;
    entry(&mut document, "source", name, |source| {
        let mut limit = InlineTable::new();
        set_text(&mut limit, "policy", Policy::Strict.name());
        set_text(&mut limit, "place", Place::Hardware.name());
        set_text(&mut limit, "interval", &format!("{interval} cycles"));
        source.insert("limit", Item::Value(Value::InlineTable(limit)));
        Ok(())
    })?;
    Ok(document.to_string())
}

/// Returns the text with a change to the table `key` of the source `name`.
fn write_in(
    text: &str,
    name: &str,
    key: &'static str,
    change: impl FnOnce(&mut dyn TableLike),
) -> Result<String, WriteBackError> {
    let mut document: DocumentMut = text.parse()?;
    entry(&mut document, "source", name, |source| {
        change_table(source, key, name, change)
    })?;
    Ok(document.to_string())
}

/// Changes the table `key` of `table`, which is called `name`.
fn change_table(
    table: &mut dyn TableLike,
    key: &'static str,
    name: &str,
    change: impl FnOnce(&mut dyn TableLike),
) -> Result<(), WriteBackError> {
    match table.get_mut(key) {
        Some(Item::Value(Value::InlineTable(inline))) => change_inline(inline, change),
        Some(Item::Table(table)) => change(table),
        _ => {
            return Err(WriteBackError::NotATable {
                key,
                name: name.to_owned(),
            });
        }
    }
    Ok(())
}

/// Changes an inline table. The space before its closing brace belongs to the last value; this
/// function keeps that space at the end.
fn change_inline<T>(table: &mut InlineTable, change: impl FnOnce(&mut dyn TableLike) -> T) -> T {
    let last = table.iter().last();
    let space = last.and_then(|(key, value)| {
        let space = value.decor().suffix()?.clone();
        Some((key.to_owned(), space))
    });
    let changed = change(table);
    if let Some((key, space)) = space {
        if let Some(value) = table.get_mut(&key) {
            value.decor_mut().set_suffix("");
        }
        if let Some((_, value)) = table.iter_mut().last() {
            value.decor_mut().set_suffix(space);
        }
    }
    changed
}

/// The interval of a shared limit is that of its timer, so the limit itself need not change.
fn changes_its_timer(limit: &Limit, before: &System, after: &System) -> bool {
    match limit.expiry {
        Some(Expiry::Shared(timer)) => {
            before.timers.get(timer).map(|of| &of.name)
                != after.timers.get(timer).map(|of| &of.name)
        }
        _ => false,
    }
}

fn write_limit(
    limit: &mut dyn TableLike,
    choice: Choice,
    before: &Limit,
    after: &Limit,
    tuned: &System,
    platform: &Platform,
) {
    set_text(limit, "policy", after.policy.name());
    let is_shared = |limit: &Limit| matches!(limit.expiry, Some(Expiry::Shared(_)));
    let default_stays = limit.get("timing").is_none()
        && (is_shared(after)
            || (before.timing == after.timing
                && before.policy == after.policy
                && !is_shared(before)));
    if !default_stays && !matches!(choice, Choice::Hardware { .. }) {
        set_text(limit, "timing", after.timing.name());
    }
    match after.policy {
        Policy::Bursty | Policy::Bucket => set_number(limit, "burst", u64::from(after.burst)),
        _ => {
            take_out(limit, "burst");
        }
    }
    match choice {
        Choice::Shared { .. } => {
            for key in ["rate", "interval", "prescaler"] {
                take_out(limit, key);
            }
            if let Some(Expiry::Shared(timer)) = after.expiry {
                if let Some(timer) = tuned.timers.get(timer) {
                    set_text(limit, "timer", &timer.name);
                }
            }
        }
        Choice::Own { setting, burst, .. } => {
            let channel = platform.channels.get(setting.channel);
            if before.expiry != after.expiry {
                if let Some(channel) = channel {
                    let name = channel.timer.as_ref().unwrap_or(&channel.name);
                    set_text(limit, "timer", name);
                }
            }
            let requests = if after.policy == Policy::Bursty {
                burst
            } else {
                1
            };
            set_interval(
                limit,
                "interval",
                requests,
                setting.interval,
                tuned.cpu.clock_hz,
                channel.map_or(1, |channel| channel.clock_cycles),
            );
        }
        Choice::Hardware { requests, interval } => {
            let interval = Interval::of_cycles(interval);
            set_rate(limit, "interval", requests, interval, tuned.cpu.clock_hz);
        }
    }
}

/// Writes a rate, and the prescaler with which a timer gets the wanted interval. One cycle of the
/// timer's input clock takes `clock_cycles` processor cycles.
fn set_interval(
    table: &mut dyn TableLike,
    interval_key: &str,
    burst: u32,
    interval: Interval,
    clock_hz: u64,
    clock_cycles: u64,
) {
    set_rate(table, interval_key, burst, interval, clock_hz);
    set_number(table, "prescaler", interval.tick / clock_cycles.max(1));
}

/// Writes the interval as `rate`. Writes `interval_key` if the file already has that key, or if no
/// short rate is rounded to exactly this interval.
fn set_rate(
    table: &mut dyn TableLike,
    interval_key: &str,
    burst: u32,
    interval: Interval,
    clock_hz: u64,
) {
    let rate = rate_text(burst, interval.ticks, interval.tick, clock_hz)
        .filter(|_| table.get(interval_key).is_none());
    match rate {
        Some(rate) => set_text(table, "rate", &rate),
        None => {
            // The interval replaces the rate.
            rename(table, "rate", interval_key);
            set_text(
                table,
                interval_key,
                &format!("{} cycles", interval.cycles()),
            );
        }
    }
}

/// Renames a key and moves it to the end of its table, with the comment beside it. Does nothing if
/// the table does not have the key.
fn rename(table: &mut dyn TableLike, from: &str, to: &str) {
    if table.get(to).is_some() {
        take_out(table, from);
        return;
    }
    let decor = table.key(from).map(|key| key.leaf_decor().clone());
    if let Some(item) = table.remove(from) {
        table.insert(to, item);
        if let (Some(mut key), Some(decor)) = (table.key_mut(to), decor) {
            *key.leaf_decor_mut() = decor;
        }
    }
}

/// Removes a key and keeps the comments above and beside it. They go to the next key or, if there
/// is none, to the key before.
fn take_out(table: &mut dyn TableLike, key: &str) {
    let text = |of: Option<&toml_edit::RawString>| {
        of.and_then(toml_edit::RawString::as_str)
            .unwrap_or("")
            .to_owned()
    };
    let above = text(table.key(key).and_then(|key| key.leaf_decor().prefix()));
    let beside = text(
        table
            .get(key)
            .and_then(Item::as_value)
            .and_then(|value| value.decor().suffix()),
    );
    let keys: Vec<String> = table.iter().map(|(key, _)| key.to_owned()).collect();
    table.remove(key);
    let mut comments = String::new();
    for part in [above, beside] {
        if part.contains('#') {
            comments.push_str(part.trim_matches(|c| c == ' ' || c == '\n'));
            comments.push('\n');
        }
    }
    if comments.is_empty() {
        return;
    }
    let at = keys.iter().position(|of| of == key).unwrap_or(0);
    let heir = keys.get(at + 1).or_else(|| keys.get(at.checked_sub(1)?));
    if let Some(mut heir) = heir.and_then(|heir| table.key_mut(heir)) {
        let old = text(heir.leaf_decor().prefix());
        heir.leaf_decor_mut().set_prefix(comments + &old);
    }
}

fn set_text(table: &mut dyn TableLike, key: &str, text: &str) {
    let is_same = table
        .get(key)
        .and_then(Item::as_str)
        .is_some_and(|old| old == text);
    if !is_same {
        set(table, key, Value::String(Formatted::new(text.to_owned())));
    }
}

fn set_number(table: &mut dyn TableLike, key: &str, number: u64) {
    let number = i64::try_from(number).unwrap_or(i64::MAX);
    let is_same = table
        .get(key)
        .and_then(Item::as_integer)
        .is_some_and(|old| old == number);
    if !is_same {
        set(table, key, Value::Integer(Formatted::new(number)));
    }
}

/// Sets a value and keeps the comments around it.
fn set(table: &mut dyn TableLike, key: &str, mut value: Value) {
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(old) => {
            *value.decor_mut() = old.decor().clone();
            *old = value;
        }
        None => {
            table.insert(key, Item::Value(value));
        }
    }
}

/// Changes the table of `section` that has this name, whether it is written as `[[section]]` or in
/// an array.
fn entry(
    document: &mut DocumentMut,
    section: &'static str,
    name: &str,
    change: impl FnOnce(&mut dyn TableLike) -> Result<(), WriteBackError>,
) -> Result<(), WriteBackError> {
    let has_name = |table: &dyn TableLike| table.get("name").and_then(Item::as_str) == Some(name);
    let missing = || WriteBackError::Missing {
        section,
        name: name.to_owned(),
    };
    match document.get_mut(section) {
        Some(Item::ArrayOfTables(tables)) => {
            let table = tables.iter_mut().find(|table| has_name(*table));
            change(table.ok_or_else(missing)?)
        }
        Some(Item::Value(Value::Array(array))) => {
            let table = array
                .iter_mut()
                .filter_map(Value::as_inline_table_mut)
                .find(|table| has_name(*table));
            change_inline(table.ok_or_else(missing)?, change)
        }
        _ => Err(missing()),
    }
}

/// Adds a timer after the last timer or, if there is none, before the first source.
fn add_timer(document: &mut DocumentMut, name: &str, channel: &str) {
    let text = |text: &str| Value::String(Formatted::new(text.to_owned()));
    if let Some(Item::Value(Value::Array(array))) = document.get_mut("timer") {
        let mut timer = InlineTable::new();
        timer.insert("name", text(name));
        timer.insert("channel", text(channel));
        array.push(timer);
        return;
    }
    let mut timer = Table::new();
    timer.decor_mut().set_prefix("\n");
    timer.insert("name", Item::Value(text(name)));
    timer.insert("channel", Item::Value(text(channel)));
    let timers = document
        .entry("timer")
        .or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
    if let Item::ArrayOfTables(timers) = timers {
        timers.push(timer);
    }
}
