//! A table of the file: its keys stand once, with their type, default, range and description.

use super::value::{Value, Wrong};
use std::fmt::Display;
use std::ops::RangeInclusive;
use toml::de::DeValue;

/// One key, as the reference shows it.
#[derive(Clone, Debug)]
pub struct Key {
    pub name: &'static str,
    pub about: String,
    pub kind: String,
    /// As it would stand in the file; `None` when it is not set.
    pub default: Option<String>,
    pub range: Option<String>,
    /// Read when the host starts; a reload does not change it.
    pub at_start: bool,
}

/// A table of keys.
pub trait Section: Clone + Default + PartialEq {
    /// Empty for the keys above all tables.
    const NAME: &'static str;

    fn about() -> String;

    fn keys() -> Vec<Key>;

    /// Takes a value in; `None` when there is no such key.
    fn read(&mut self, key: &str, value: &DeValue<'_>) -> Option<Result<(), Wrong>>;

    /// Takes back what a running host cannot change, and names it.
    fn keep_fixed(&mut self, running: &Self) -> Vec<&'static str>;

    /// Every key with its value, in the order of [`Section::keys`].
    fn show(&self) -> Vec<(&'static str, Option<toml::Value>)>;
}

/// Numbers, and numbers that need not be there.
pub trait Ranged {
    type Number: PartialOrd + Display;

    fn number(&self) -> Option<&Self::Number>;

    fn within(&self, range: &RangeInclusive<Self::Number>) -> Result<(), Wrong> {
        match self.number() {
            Some(number) if !range.contains(number) => {
                Err(Wrong::new(format!("{number} is not between {} and {}", range.start(), range.end())))
            }
            _ => Ok(()),
        }
    }
}

macro_rules! ranged {
    ($($number:ty),*) => { $(
        impl Ranged for $number {
            type Number = $number;
            fn number(&self) -> Option<&$number> {
                Some(self)
            }
        }

        impl Ranged for Option<$number> {
            type Number = $number;
            fn number(&self) -> Option<&$number> {
                self.as_ref()
            }
        }
    )* };
}

ranged!(u32, u64, usize, f64);

pub fn shown_range<T: Ranged>(range: &RangeInclusive<T::Number>) -> String {
    format!("{} to {}", range.start(), range.end())
}

/// How a value stands in the file.
pub fn shown<T: Value>(value: &T) -> Option<String> {
    value.show().map(|value| value.to_string())
}

/// The lines of a doc comment as one text.
pub fn prose(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ").trim().to_owned()
}

/// Declares a table: `key: type = default => range, at_start;`, where range and `at_start` may be missing.
macro_rules! section {
    (
        $(#[doc = $about:literal])*
        $Name:ident [$name:literal] {
            $(
                $(#[doc = $doc:literal])*
                $key:ident: $Type:ty = $default:expr $(=> $range:expr)? $(, $at_start:ident)?;
            )*
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $Name {
            $( $(#[doc = $doc])* pub $key: $Type, )*
        }

        impl Default for $Name {
            fn default() -> $Name {
                $Name { $( $key: $default, )* }
            }
        }

        impl $crate::config::section::Section for $Name {
            const NAME: &'static str = $name;

            fn about() -> String {
                $crate::config::section::prose(&[$($about),*])
            }

            fn keys() -> Vec<$crate::config::section::Key> {
                let default = $Name::default();
                vec![ $( $crate::config::section::Key {
                    name: stringify!($key),
                    about: $crate::config::section::prose(&[$($doc),*]),
                    kind: <$Type as $crate::config::value::Value>::kind(),
                    default: $crate::config::section::shown(&default.$key),
                    range: section!(@range $Type $(, $range)?),
                    at_start: section!(@at_start $($at_start)?),
                }, )* ]
            }

            fn read(
                &mut self,
                key: &str,
                value: &toml::de::DeValue<'_>,
            ) -> Option<Result<(), $crate::config::value::Wrong>> {
                match key {
                    $( stringify!($key) => Some(<$Type as $crate::config::value::Value>::read(value).and_then(|value| {
                        $( $crate::config::section::Ranged::within(&value, &$range)?; )?
                        self.$key = value;
                        Ok(())
                    })), )*
                    _ => None,
                }
            }

            #[allow(unused_mut, unused_variables, reason = "a table may have no such key")]
            fn keep_fixed(&mut self, running: &$Name) -> Vec<&'static str> {
                let mut kept = Vec::new();
                $( section!(@keep self, running, kept, $key $(, $at_start)?); )*
                kept
            }

            fn show(&self) -> Vec<(&'static str, Option<toml::Value>)> {
                vec![ $( (stringify!($key), $crate::config::value::Value::show(&self.$key)), )* ]
            }
        }
    };
    (@range $Type:ty) => { None };
    (@range $Type:ty, $range:expr) => { Some($crate::config::section::shown_range::<$Type>(&$range)) };
    (@keep $self:ident, $running:ident, $kept:ident, $key:ident) => {};
    (@keep $self:ident, $running:ident, $kept:ident, $key:ident, at_start) => {
        if $self.$key != $running.$key {
            $self.$key = $running.$key.clone();
            $kept.push(stringify!($key));
        }
    };
    (@at_start) => { false };
    (@at_start at_start) => { true };
}
pub(super) use section;
