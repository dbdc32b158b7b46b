// SPDX-License-Identifier: MIT OR Apache-2.0
//! A table of C functions per tick width: a shim is compiled once for each width, under prefixed
//! names.

/// Declares a shim's functions once, as `Functions`, and a table of them for each width: `NAME:
/// "prefix"`.
macro_rules! functions {
    ($functions:tt $($table:ident: $prefix:literal),+ $(,)?) => {
        crate::functions::functions!(@type $functions);
        $(crate::functions::functions!(@table $table $prefix $functions);)+
    };
    (@type { $(fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)?;)+ }) => {
        pub struct Functions {
            $(pub $name: unsafe extern "C" fn($($type),*) $(-> $result)?,)+
        }
    };
    (@table $table:ident $prefix:literal
        { $(fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)?;)+ }) => {
        pub static $table: Functions = {
            unsafe extern "C" {
                $(
                    #[link_name = concat!($prefix, stringify!($name))]
                    fn $name($($argument: $type),*) $(-> $result)?;
                )+
            }
            Functions { $($name,)+ }
        };
    };
}
pub(crate) use functions;
