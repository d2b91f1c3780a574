//! Where requests go.

use crate::files::At;
use crate::report::Notes;
use crate::text::{quote, visible};
use crate::{OpenApiError, Options};
use url::Url;

/// An absolute URL without query, and without a slash at its end.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Base {
    pub url: String,
    /// `host`, or `host:port` where the port is not that of the scheme.
    pub host: String,
}

impl Base {
    pub fn parse(text: &str) -> Result<Base, String> {
        let url = Url::parse(text.trim()).map_err(|error| error.to_string())?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err("its scheme is neither http nor https".to_owned());
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("it has a user or a password; credentials are secrets of the server".to_owned());
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err("it has a query or a fragment".to_owned());
        }
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or("it has no host")?;
        let host = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        Ok(Base { url: url.as_str().trim_end_matches('/').to_owned(), host })
    }
}

/// Of the nearest of these that has servers, the first that is absolute.
pub(crate) fn base(
    nearest_first: &[At<'_>],
    operation: &str,
    options: &Options,
    notes: &mut Notes,
) -> Result<Base, OpenApiError> {
    if let Some(url) = &options.base_url {
        for servers in nearest_first.iter().filter_map(|level| level.get("servers")) {
            notes.ignored(&servers.place, "the given base URL is used instead");
        }
        return Base::parse(url).map_err(|message| OpenApiError::BaseUrl { url: quote(url), message });
    }
    let no_server = |message: String| OpenApiError::NoServer { operation: operation.to_owned(), message };
    let lists = nearest_first.iter().filter_map(|level| level.get("servers"));
    let Some(servers) = lists.into_iter().find(|list| list.items().next().is_some()) else {
        return Err(no_server("it names none".to_owned()));
    };
    let mut refusals = Vec::new();
    let mut found = None;
    for server in servers.items() {
        if found.is_some() {
            notes.ignored(&server.place, "another server is used, and there is one for each operation");
            continue;
        }
        server.only(&["url", "description", "name", "variables"], notes);
        match substituted(&server, options)?.and_then(|url| {
            let shown = quote(&url);
            Base::parse(&url).map_err(|message| format!("{}: {shown}: {message}", visible(&server.place.shown(), 300)))
        }) {
            Ok(base) => found = Some(base),
            Err(message) => refusals.push((server.place, message)),
        }
    }
    let why = refusals.iter().map(|(_, message)| message.clone()).take(3).collect::<Vec<_>>().join("; ");
    let base = found.ok_or_else(|| no_server(why))?;
    for (place, message) in refusals {
        notes.ignored(&place, message);
    }
    Ok(base)
}

/// The server's URL with its variables filled in; the inner error is about this server only.
fn substituted(server: &At<'_>, options: &Options) -> Result<Result<String, String>, OpenApiError> {
    let here = visible(&server.place.shown(), 300);
    let Some(mut rest) = server.str("url") else { return Ok(Err(format!("{here}: it has no `url`"))) };
    let variables = server.get("variables");
    let mut url = String::new();
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else { break };
        url.push_str(before);
        rest = after;
        let variable = variables.as_ref().and_then(|variables| variables.get(name));
        match (options.server_variables.get(name), variable) {
            (Some(value), variable) => {
                allowed(name, value, variable.as_ref())?;
                url.push_str(value);
            }
            (None, Some(variable)) => match variable.get("default").map(|default| default.value) {
                Some(serde_json::Value::String(default)) => url.push_str(default),
                Some(default) if default.is_number() || default.is_boolean() => url.push_str(&default.to_string()),
                _ => return Ok(Err(format!("{here}: the variable {} has no default", quote(name)))),
            },
            (None, None) => return Ok(Err(format!("{here}: the variable {} is not declared", quote(name)))),
        }
    }
    Ok(Ok(url + rest))
}

fn allowed(name: &str, value: &str, variable: Option<&At<'_>>) -> Result<(), OpenApiError> {
    let Some(list) = variable.and_then(|variable| variable.get("enum")) else { return Ok(()) };
    let texts: Vec<&str> = list.value.as_array().into_iter().flatten().filter_map(|value| value.as_str()).collect();
    if texts.is_empty() || texts.contains(&value) {
        return Ok(());
    }
    let some = texts.iter().take(10).map(|text| quote(text)).collect::<Vec<_>>().join(", ");
    Err(OpenApiError::Variable { name: quote(name), message: format!("is {}, and may be {some}", quote(value)) })
}

/// Names of variables that no server has are typing errors.
pub(crate) fn check_names(servers: &[At<'_>], options: &Options) -> Result<(), OpenApiError> {
    for name in options.server_variables.keys() {
        let braced = format!("{{{name}}}");
        let mut lists = servers.iter().filter_map(|level| level.get("servers"));
        let known =
            lists.any(|list| list.items().any(|server| server.str("url").is_some_and(|url| url.contains(&braced))));
        if !known {
            let message = "is in no server of the selected operations".to_owned();
            return Err(OpenApiError::Variable { name: quote(name), message });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bases() {
        let parts = |text: &str| Base::parse(text).map(|base| (base.url, base.host));
        assert_eq!(
            parts("https://API.example.com/v1/").unwrap(),
            ("https://api.example.com/v1".into(), "api.example.com".into())
        );
        assert_eq!(parts("http://[::1]:80/").unwrap().1, "[::1]");
        assert_eq!(parts("http://127.0.0.1:8080").unwrap(), ("http://127.0.0.1:8080".into(), "127.0.0.1:8080".into()));
        assert_eq!(parts("https://bücher.example").unwrap().1, "xn--bcher-kva.example");
        for bad in [
            "",
            "/v1",
            "ftp://a.b",
            "https://u:p@a.b",
            "https://u@a.b",
            "https://a.b?x",
            "https://a.b#x",
            "https://",
            "file:///etc",
        ] {
            assert!(parts(bad).is_err(), "{bad}");
        }
    }
}
