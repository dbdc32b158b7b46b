// SPDX-License-Identifier: MIT OR Apache-2.0
//! The C identifier of a name in the system file.

/// Why a name is no identifier in C. The message says what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdentifierError {
    /// The name is empty, or begins with a digit, `-`, `_` or `.`.
    #[error("it becomes a name in C, so it must begin with a letter")]
    Begin,
    /// The name has a character that is not replaced.
    #[error("it has a {0:?}; letters, digits, `_`, `-` and `.` are possible")]
    Character(char),
    /// The name begins as Weir's own names do.
    #[error("names that begin with `weir` are Weir's own")]
    Reserved,
}

/// The C identifier of a name: the name with `_` for each `-` and `.`. Two names can have the same
/// one.
///
/// # Errors
/// A name that does not begin with a letter, has another character than ASCII letters, digits, `_`,
/// `-` and `.`, or begins with `weir`.
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
