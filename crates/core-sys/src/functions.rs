// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables of C functions, one per tick width. A shim is compiled once for each width, with prefixed
//! function names.

/// Declares a shim's functions once as the struct `Functions`, and a table of them for each width
/// in the form `NAME: "prefix"`.
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
