//! Which of two scopes is the wider.

use super::error::Error;
use registry::Scope;

/// Refuses what names nothing.
pub fn check(scope: &Scope) -> Result<(), Error> {
    let (servers, tools) = (scope.servers.as_deref().unwrap_or_default(), scope.tools.as_deref().unwrap_or_default());
    if let Some(server) = servers.iter().find(|server| !registry::is_name(server)) {
        return Err(Error::bad_body(format!(
            "`scope.servers`: `{}` cannot be the name of a server",
            beginning(server)
        )));
    }
    if let Some(tool) = tools.iter().find(|tool| !is_pattern(tool)) {
        return Err(Error::bad_body(format!("`scope.tools`: `{}` names no tool", beginning(tool)))
            .hint("write `server/tool`, or `server/prefix*` for all tools that begin alike"));
    }
    Ok(())
}

fn beginning(text: &str) -> String {
    text.chars().take(100).collect()
}

/// `server/tool` or `server/prefix*`.
fn is_pattern(pattern: &str) -> bool {
    let Some((server, tool)) = pattern.split_once('/') else { return false };
    let stem = tool.strip_suffix('*').unwrap_or(tool);
    registry::is_name(server) && !tool.is_empty() && !stem.contains('*') && !stem.chars().any(char::is_control)
}

/// Refuses a scope that reaches further than that of whoever asks for it.
pub fn check_within(scope: &Scope, own: &Scope) -> Result<(), Error> {
    if within(scope, own) {
        return Ok(());
    }
    Err(Error::forbidden("the scope is wider than that of the key that asks for it"))
}

/// Whether all that `inner` opens, `outer` opens too. Both limits of a scope count, so each must be within its like.
pub fn within(inner: &Scope, outer: &Scope) -> bool {
    list_within(&inner.servers, &outer.servers, |server, own| server == own)
        && list_within(&inner.tools, &outer.tools, covers)
}

fn list_within(inner: &Option<Vec<String>>, outer: &Option<Vec<String>>, covered: impl Fn(&str, &str) -> bool) -> bool {
    match (inner, outer) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(inner), Some(outer)) => inner.iter().all(|entry| outer.iter().any(|own| covered(entry, own))),
    }
}

/// Whether the pattern `own` matches whatever `entry` matches.
fn covers(entry: &str, own: &str) -> bool {
    match own.strip_suffix('*') {
        Some(prefix) => entry.strip_suffix('*').unwrap_or(entry).starts_with(prefix),
        None => entry == own,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(servers: Option<&[&str]>, tools: Option<&[&str]>) -> Scope {
        let owned = |list: &[&str]| list.iter().map(|entry| (*entry).to_owned()).collect();
        Scope { servers: servers.map(owned), tools: tools.map(owned) }
    }

    #[test]
    fn nothing_is_wider_than_everything() {
        let everything = scope(None, None);
        assert!(within(&everything, &everything));
        assert!(within(&scope(Some(&["a"]), Some(&["a/x"])), &everything));
        assert!(!within(&everything, &scope(Some(&["a"]), None)));
        assert!(!within(&everything, &scope(None, Some(&["a/x"]))));
    }

    #[test]
    fn servers_are_compared_by_name() {
        let own = scope(Some(&["a", "b"]), None);
        assert!(within(&scope(Some(&["b"]), None), &own));
        assert!(within(&scope(Some(&[]), None), &own));
        assert!(!within(&scope(Some(&["b", "c"]), None), &own));
    }

    #[test]
    fn patterns_cover_what_begins_like_them() {
        let own = scope(None, Some(&["a/get*", "b/one"]));
        for inner in [&["a/get"][..], &["a/get*"], &["a/get_all"], &["a/get_*"], &["b/one", "a/gets"], &[]] {
            assert!(within(&scope(None, Some(inner)), &own), "{inner:?}");
        }
        for outer in [&["a/ge*"][..], &["a/g"], &["b/one*"], &["b/on"], &["c/get"], &["a/get", "b/two"]] {
            assert!(!within(&scope(None, Some(outer)), &own), "{outer:?}");
        }
    }

    #[test]
    fn a_limit_of_one_kind_is_not_traded_for_the_other() {
        assert!(!within(&scope(None, Some(&["a/x"])), &scope(Some(&["a"]), None)));
        assert!(!within(&scope(Some(&["a"]), None), &scope(None, Some(&["a/*"]))));
    }

    #[test]
    fn patterns() {
        for good in ["a/x", "a/x*", "a/*", "a/x/y", "my-server/do.it"] {
            assert!(is_pattern(good), "{good}");
        }
        for bad in ["", "a", "a/", "/x", "A/x", "a/x*y", "*", "*/x", "a/**", "admin/x", "a/x\n"] {
            assert!(!is_pattern(bad), "{bad}");
        }
    }
}
