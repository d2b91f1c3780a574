//! The few changes that one server needs.

use super::Wrap;
use super::span::{Object, Span};
use std::ops::Range;

/// Text in the place of other text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Edit {
    place: Range<usize>,
    text: String,
}

pub(super) fn apply(text: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|edit| edit.place.start);
    let mut out = text.to_owned();
    for edit in edits.iter().rev() {
        out.replace_range(edit.place.clone(), &edit.text);
    }
    out
}

/// What separates a command from the arguments that were put in because it had none.
const NO_ARGUMENTS: &str = ", \"args\": ";

/// The command and arguments of a server that is started as a process.
fn started<'a>(server: &Object<'a>) -> Result<(Span<'a>, String, Option<Span<'a>>), &'static str> {
    let kind = server.get("type").and_then(|kind| kind.string());
    if kind.is_some_and(|kind| kind != "stdio") || server.get("url").is_some() {
        return Err("it is reached by its URL");
    }
    let place = server.get("command").ok_or("it has no command")?;
    let command = place.string().ok_or("its command is no text")?;
    Ok((place, command, server.get("args")))
}

fn words(list: Option<Span<'_>>) -> Result<Vec<(Span<'_>, String)>, &'static str> {
    let Some(list) = list else { return Ok(Vec::new()) };
    let all = list.array().ok_or("its arguments are no list")?;
    all.into_iter().map(|word| Some((word, word.string()?))).collect::<Option<_>>().ok_or("an argument is no text")
}

/// Whether this is ours already, and where its own command is among the arguments.
fn wrapped(command: &str, words: &[(Span, String)]) -> Option<usize> {
    let ours = command.rsplit('/').next() == Some("bulkhead");
    let run = words.first().is_some_and(|(_, word)| word == "run");
    let end = words.iter().position(|(_, word)| word == "--").map(|at| at + 1);
    end.filter(|at| ours && run && *at < words.len())
}

fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

pub(super) fn wrap(server: &Object, wrap: &Wrap) -> Result<Vec<Edit>, &'static str> {
    let (place, command, list) = started(server)?;
    let words = words(list)?;
    if wrapped(&command, &words).is_some() {
        return Err("it runs in a jail already");
    }
    let mut before = vec!["run".to_owned()];
    before.extend(wrap.flags.iter().cloned());
    if let Some(variables) = server.get("env").and_then(|variables| variables.object()) {
        before.extend(variables.members.into_iter().flat_map(|(name, _)| ["--env".to_owned(), name]));
    }
    before.extend(["--".to_owned(), command]);
    let before: Vec<String> = before.iter().map(|word| json(word)).collect();
    let program = Edit { place: place.range(), text: json(&wrap.program) };
    let arguments = match (list, words.first()) {
        (None, _) => {
            let end = place.range().end;
            Edit { place: end..end, text: format!("{NO_ARGUMENTS}[{}]", before.join(", ")) }
        }
        (Some(list), None) => {
            let start = list.range().start + 1;
            Edit { place: start..start, text: before.join(", ") }
        }
        (Some(list), Some((first, _))) => {
            // As the list has it: on one line, or each on a line of its own.
            let start = first.range().start;
            let gap = &list.text()[1..start - list.range().start];
            let gap = if gap.contains('\n') { gap } else { " " };
            Edit { place: start..start, text: before.iter().map(|word| format!("{word},{gap}")).collect() }
        }
    };
    Ok(vec![program, arguments])
}

pub(super) fn unwrap(server: &Object) -> Result<Vec<Edit>, &'static str> {
    let (place, command, list) = started(server)?;
    let words = words(list)?;
    let at = wrapped(&command, &words).ok_or("it does not run in a jail")?;
    let list = list.ok_or("it does not run in a jail")?;
    let program = Edit { place: place.range(), text: json(&words[at].1) };
    let start = words[0].0.range().start;
    // The list follows the command in exactly the way in which it is put in when there is none.
    let put_in = list.range().start == place.range().end + NO_ARGUMENTS.len();
    let cut = match words.get(at + 1) {
        Some((next, _)) => start..next.range().start,
        None if put_in => place.range().end..list.range().end,
        None => start..words[at].0.range().end,
    };
    Ok(vec![program, Edit { place: cut, text: String::new() }])
}
