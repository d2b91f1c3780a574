//! Types of content.

use crate::files::At;
use crate::report::Notes;
use crate::text::quote;

/// Without its parameters, in lower case.
pub(crate) fn essence(media: &str) -> String {
    media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

pub(crate) fn is_json(media: &str) -> bool {
    let essence = essence(media);
    essence == "application/json" || essence == "text/json" || essence.ends_with("+json")
}

/// How a body is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Form {
    Json,
    Urlencoded,
    Multipart,
    Text,
    Bytes,
}

pub(crate) fn form(media: &str) -> Form {
    match essence(media).as_str() {
        json if is_json(json) => Form::Json,
        // Anything goes, and JSON is what callers have.
        "*/*" | "application/*" => Form::Json,
        "application/x-www-form-urlencoded" => Form::Urlencoded,
        "multipart/form-data" => Form::Multipart,
        text if text.starts_with("text/") || text.ends_with("/xml") || text.ends_with("+xml") => Form::Text,
        _ => Form::Bytes,
    }
}

/// The content to use: JSON before forms, forms before text, text before bytes; then what is plain before what is
/// special, then by name. The others are noted.
pub(crate) fn choose<'a>(content: &At<'a>, notes: &mut Notes) -> Option<(&'a str, At<'a>)> {
    let rank = |media: &str| {
        let name = essence(media);
        let plain = matches!(name.as_str(), "application/json" | "text/plain" | "application/octet-stream");
        (form(media), name.contains('*'), !plain, name)
    };
    let mut all: Vec<(&str, At<'_>)> = content.entries().filter(|(key, _)| !key.starts_with("x-")).collect();
    all.sort_by_key(|(media, _)| rank(media));
    let mut all = all.into_iter();
    let chosen = all.next();
    if let Some((media, _)) = &chosen {
        for (_, other) in all {
            notes.ignored(&other.place, format!("{} is used instead", quote(media)));
        }
    }
    chosen
}

/// `type/subtype` with parameters, and nothing that could end a header.
pub(crate) fn is_media(media: &str) -> bool {
    let essence = essence(media);
    let token = |text: &str| crate::security::is_token(text);
    essence.split_once('/').is_some_and(|(kind, name)| token(kind) && token(name))
        && media.bytes().all(|b| (b' '..=b'~').contains(&b))
        && media.len() <= 256
}
