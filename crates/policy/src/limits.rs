//! The limits, each named once: default, least and greatest value stand in one table.

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! limits {
    ($( $(#[doc = $doc:literal])* $field:ident : $variant:ident = $default:literal in $least:literal ..= $most:literal; )*) => {
        /// What one call, or one initialisation, may use.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct Limits {
            $( $(#[doc = $doc])* pub $field: u64, )*
        }

        /// The names of the limits.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum LimitName { $( $variant, )* }

        impl LimitName {
            pub const ALL: &'static [LimitName] = &[ $( LimitName::$variant, )* ];

            pub fn as_str(self) -> &'static str {
                match self { $( LimitName::$variant => stringify!($field), )* }
            }

            /// What the limit is, in a sentence.
            pub fn describe(self) -> &'static str {
                match self { $( LimitName::$variant => concat!($($doc),*).trim_ascii(), )* }
            }
        }

        impl Limits {
            /// The least values with which anything runs at all.
            pub const LEAST: Limits = Limits { $( $field: $least, )* };
            /// What a host allows at most unless its operator says otherwise.
            pub const MOST: Limits = Limits { $( $field: $most, )* };

            pub fn get(&self, name: LimitName) -> u64 {
                match name { $( LimitName::$variant => self.$field, )* }
            }

            pub fn set(&mut self, name: LimitName, value: u64) {
                match name { $( LimitName::$variant => self.$field = value, )* }
            }
        }

        impl Default for Limits {
            fn default() -> Limits {
                Limits { $( $field: $default, )* }
            }
        }
    };
}

limits! {
    /// CPU time of one call in milliseconds, serialising its result or error included.
    cpu_ms: CpuMs = 50 in 1 ..= 60_000;
    /// Wall-clock time of one call in milliseconds.
    time_ms: TimeMs = 30_000 in 1 ..= 600_000;
    /// Memory of a compartment in MiB, above what an empty one has.
    memory_mb: MemoryMb = 128 in 8 ..= 1024;
    /// Result of one call in KiB of JSON.
    result_kb: ResultKb = 1024 in 1 ..= 16_384;
    /// Log output and progress of one call in KiB.
    log_kb: LogKb = 64 in 0 ..= 4096;
    /// Host calls (such as fetch) of one call.
    host_calls: HostCalls = 64 in 0 ..= 4096;
    /// Arguments of one call in KiB of JSON.
    argument_kb: ArgumentKb = 1024 in 1 ..= 16_384;
    /// Nesting of the arguments.
    argument_depth: ArgumentDepth = 64 in 1 ..= 512;
    /// CPU time of module initialisation in milliseconds.
    init_cpu_ms: InitCpuMs = 500 in 1 ..= 60_000;
    /// Wall-clock time of module initialisation in milliseconds.
    init_time_ms: InitTimeMs = 10_000 in 1 ..= 120_000;
    /// Source of a server in KiB.
    source_kb: SourceKb = 4096 in 1 ..= 32_768;
    /// Processes and threads of a program with all that it starts. Behind the wall `process` only.
    processes: Processes = 50 in 1 ..= 500;
    /// CPU of a program with all that it starts, where 100 is a core. Behind the wall `process` only.
    cpu_percent: CpuPercent = 50 in 1 ..= 400;
    /// What a program may write to `/tmp`, and as much to its home, in MiB. Behind the wall `process` only.
    scratch_mb: ScratchMb = 32 in 1 ..= 512;
}

impl Limits {
    /// The defaults for a program in a jail, which brings an interpreter along, or is one.
    pub fn of_programs() -> Limits {
        Limits {
            cpu_ms: 10_000,
            time_ms: 60_000,
            result_kb: 4096,
            host_calls: 256,
            init_cpu_ms: 20_000,
            init_time_ms: 60_000,
            ..Limits::default()
        }
    }
}

impl fmt::Display for LimitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A limit was named that does not exist.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no limit; there are {known}", known = LimitName::ALL.iter().map(|n| n.as_str()).collect::<Vec<_>>().join(", "))]
pub struct UnknownLimit(pub String);

impl std::str::FromStr for LimitName {
    type Err = UnknownLimit;

    fn from_str(text: &str) -> Result<LimitName, UnknownLimit> {
        LimitName::ALL.iter().copied().find(|name| name.as_str() == text).ok_or_else(|| UnknownLimit(text.to_owned()))
    }
}
