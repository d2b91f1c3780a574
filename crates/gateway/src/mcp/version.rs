//! The revisions of the protocol.

pub const MODERN: &str = "2026-07-28";

/// Newest first.
pub const ALL: &[&str] = &[MODERN, "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// A revision with sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Legacy {
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
}

impl Legacy {
    pub const NEWEST: Legacy = Legacy::V2025_11_25;
    /// What a client speaks that does not say so.
    pub const ASSUMED: Legacy = Legacy::V2025_03_26;

    pub fn parse(text: &str) -> Option<Legacy> {
        Some(match text {
            "2024-11-05" => Legacy::V2024_11_05,
            "2025-03-26" => Legacy::V2025_03_26,
            "2025-06-18" => Legacy::V2025_06_18,
            "2025-11-25" => Legacy::V2025_11_25,
            _ => return None,
        })
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Legacy::V2024_11_05 => "2024-11-05",
            Legacy::V2025_03_26 => "2025-03-26",
            Legacy::V2025_06_18 => "2025-06-18",
            Legacy::V2025_11_25 => "2025-11-25",
        }
    }
}

/// What a message is written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    Legacy(Legacy),
    Modern,
}

impl Era {
    /// Whether results may have `structuredContent`, and tools output schemas and titles.
    pub fn is_structured(self) -> bool {
        !matches!(self, Era::Legacy(version) if version < Legacy::V2025_06_18)
    }

    /// Whether arguments that do not fit their schema are told to the model instead of to the client.
    pub fn tells_model_of_bad_arguments(self) -> bool {
        !matches!(self, Era::Legacy(version) if version < Legacy::V2025_11_25)
    }
}
