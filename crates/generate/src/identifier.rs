// SPDX-License-Identifier: MIT OR Apache-2.0
//! The C identifier of a name in the system file.

/// The reason why a name is not valid as an identifier in C. The message says what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdentifierError {
    /// The name is empty, or begins with a digit, `-`, `_` or `.`.
    #[error("it becomes a name in C, so it must begin with a letter")]
    Begin,
    /// The name has a character that neither is valid in C nor has a replacement.
    #[error("it has a {0:?}; letters, digits, `_`, `-` and `.` are possible")]
    Character(char),
    /// The name begins as Weir's own names do.
    #[error("names that begin with `weir` are Weir's own")]
    Reserved,
}

/// The ending of a name that only a source's macro defines.
pub(crate) const STANDS_FIRST: &str = "_must_stand_before_this";
/// The ending of the name of the card's work, after the name of the card.
pub(crate) const MAX_WORK: &str = "_MAX_WORK";

/// Whether the header makes the identifier `made` from the name of the source `name` in a place
/// where the name of another source could also stand.
pub(crate) fn is_made_of(made: &str, name: &str) -> bool {
    let ending = made.strip_prefix(name);
    ending.is_some_and(|ending| [STANDS_FIRST, MAX_WORK].contains(&ending))
}

/// Whether the identifier is a macro of C's own headers <stddef.h>, <stdbool.h> and <stdint.h>, or
/// may become one in future (C11 7.31.10).
pub(crate) fn is_of_c(identifier: &str) -> bool {
    let of_integers = ["INT", "UINT"];
    let of_types = ["PTRDIFF", "SIG_ATOMIC", "SIZE", "WCHAR", "WINT"];
    let is_limit = ["_MIN", "_MAX", "_C"].iter().any(|ending| {
        identifier.strip_suffix(ending).is_some_and(|kind| {
            of_integers.iter().any(|of| kind.starts_with(of)) || of_types.contains(&kind)
        })
    });
    is_limit || ["NULL", "offsetof", "bool", "true", "false"].contains(&identifier)
}

/// The C identifier of a name, which is the name with `_` for each `-` and `.`. Two names can have
/// the same identifier.
///
/// # Errors
/// Fails if the name does not begin with a letter, has characters other than ASCII letters, digits,
/// `_`, `-` and `.`, or begins with `weir`.
pub fn c_identifier(name: &str) -> Result<String, IdentifierError> {
    if !name.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return Err(match name.chars().next() {
            Some(first) if !first.is_ascii() => IdentifierError::Character(first),
            _ => IdentifierError::Begin,
        });
    }
    if name
        .get(..4)
        .is_some_and(|start| start.eq_ignore_ascii_case("weir"))
    {
        return Err(IdentifierError::Reserved);
    }
    name.chars()
        .map(|character| match character {
            '-' | '.' => Ok('_'),
            _ if character.is_ascii_alphanumeric() || character == '_' => Ok(character),
            _ => Err(IdentifierError::Character(character)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_macros_of_c_are_known() {
        for macro_of_c in ["NULL", "true", "INT32_MAX", "UINT_LEAST8_MAX", "SIZE_MAX"] {
            assert!(is_of_c(macro_of_c), "{macro_of_c}");
        }
        for name in ["INTAKE", "truth", "PRESSURE_MAX", "bool1", "int32_max"] {
            assert!(!is_of_c(name), "{name}");
        }
    }

    #[test]
    fn names_become_identifiers_or_say_why_not() {
        assert_eq!(c_identifier("encoder").unwrap(), "encoder");
        assert_eq!(c_identifier("Engine-2.left_A").unwrap(), "Engine_2_left_A");
        assert_eq!(c_identifier(""), Err(IdentifierError::Begin));
        assert_eq!(c_identifier("3phase"), Err(IdentifierError::Begin));
        assert_eq!(c_identifier("_x"), Err(IdentifierError::Begin));
        assert_eq!(c_identifier("Weir_x"), Err(IdentifierError::Reserved));
        assert_eq!(
            c_identifier("zündung"),
            Err(IdentifierError::Character('ü'))
        );
        assert_eq!(c_identifier("é"), Err(IdentifierError::Character('é')));
        assert_eq!(c_identifier("a b"), Err(IdentifierError::Character(' ')));
        assert_eq!(
            c_identifier("a*/ int b"),
            Err(IdentifierError::Character('*'))
        );
    }
}
