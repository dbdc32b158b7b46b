// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes a key of a system file: `cpu.clock`, `source.eth.limit.rate`.
use miette::miette;
use toml_edit::{DocumentMut, InlineTable, Item, TableLike, Value};
use weir_model::did_you_mean;

/// The sections of a system file whose entries have names.
const NAMED: [&str; 4] = ["source", "timer", "receiver", "flow"];

/// Returns whether `key` can be a key of a system file.
pub(super) fn is_key(key: &str) -> bool {
    let section = key.split('.').next().unwrap_or_default();
    key.contains('.') && (section == "cpu" || NAMED.contains(&section))
}

/// Sets `key` in a system file. A value that is not valid TOML becomes a string.
///
/// # Errors
/// Fails if a name does not exist, or if the key is below a value that has no keys.
pub(super) fn set(file: &mut DocumentMut, key: &str, value: &str) -> miette::Result<()> {
    let mut path = key.split('.');
    let section = path.next().unwrap_or_default();
    let mut table: &mut dyn TableLike = if section == "cpu" {
        child(file.as_table_mut(), "cpu", key)?
    } else {
        named(file, section, path.next().unwrap_or_default(), key)?
    };
    let mut path = path.peekable();
    while let Some(step) = path.next() {
        if path.peek().is_some() {
            table = child(table, step, key)?;
        } else if step.is_empty() {
            break;
        } else {
            table.insert(step, Item::Value(of(value)));
            return Ok(());
        }
    }
    Err(miette!(
        help = "name a key of it, for example source.eth.limit.rate or cpu.clock",
        "`{key}` is no key of a system file"
    ))
}

fn of(text: &str) -> Value {
    text.parse().unwrap_or_else(|_| Value::from(text))
}

/// Finds the table `name` below `table`, or adds it.
fn child<'a>(
    table: &'a mut dyn TableLike,
    name: &str,
    key: &str,
) -> miette::Result<&'a mut dyn TableLike> {
    let item = table
        .entry(name)
        .or_insert_with(|| Item::Value(Value::InlineTable(InlineTable::new())));
    item.as_table_like_mut().ok_or_else(|| {
        miette!(
            help = format!("`{name}` is a value itself: vary that"),
            "`{key}` lies below something that has no keys"
        )
    })
}

fn named<'a>(
    file: &'a mut DocumentMut,
    section: &str,
    name: &str,
    key: &str,
) -> miette::Result<&'a mut dyn TableLike> {
    let tables = file.get_mut(section).and_then(Item::as_array_of_tables_mut);
    let mut tables: Vec<_> = tables.into_iter().flat_map(|all| all.iter_mut()).collect();
    let names: Vec<String> = tables
        .iter()
        .map(|table| {
            let name = table.get("name").and_then(Item::as_str);
            name.unwrap_or_default().to_owned()
        })
        .collect();
    match names.iter().position(|known| known == name) {
        Some(index) => Ok(tables.swap_remove(index)),
        None => {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            Err(miette!(
                help = did_you_mean(name, &format!("{section}s"), &names),
                "`{key}`: there is no {section} `{name}`"
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{is_key, set};

    const FILE: &str = "\
[cpu]
clock = \"1MHz\"
[[source]]
name = \"a\"
limit = { policy = \"strict\", rate = \"1kHz\" } # as it was
[[source]]
name = \"b\"
";

    fn after(key: &str, value: &str) -> Result<String, String> {
        let mut file = FILE.parse().unwrap();
        set(&mut file, key, value).map_err(|error| error.to_string())?;
        Ok(file.to_string())
    }

    #[test]
    fn keys_are_set_where_they_are_and_added_where_they_are_not() {
        for (key, value, line) in [
            ("cpu.clock", "2MHz", "clock = \"2MHz\""),
            ("source.a.max_work", "3", "max_work = 3"),
            (
                "source.a.limit.rate",
                "2kHz",
                "limit = { policy = \"strict\", rate = \"2kHz\" } # as it was",
            ),
            (
                "source.b.limit.rate",
                "\"2kHz\"",
                "limit = { rate = \"2kHz\" }",
            ),
            (
                "source.b.limit",
                "{ policy = \"off\" }",
                "limit = { policy = \"off\" }",
            ),
        ] {
            let text = after(key, value).unwrap();
            assert!(text.lines().any(|of| of == line), "{key}: {text}");
            assert!(text.parse::<toml_edit::DocumentMut>().is_ok());
        }
    }

    #[test]
    fn what_is_no_key_is_said() {
        for (key, says) in [
            ("source.c.limit", "there is no source `c`"),
            ("timer.t.rate", "there is no timer `t`"),
            ("source.a", "no key of a system file"),
            ("source.a.", "no key of a system file"),
            ("cpu.clock.rate", "below something that has no keys"),
        ] {
            let error = after(key, "1").unwrap_err();
            assert!(error.contains(says), "{key}: {error}");
        }
        assert!(is_key("cpu.clock") && is_key("flow.x.queue"));
        assert!(!is_key("seed") && !is_key("flood.eth") && !is_key("cpu"));
    }
}
