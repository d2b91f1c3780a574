//! The keys of the file, each described once, and the pages made of them.

use super::secrets::{SECRET_KEYS, SECRETS};
use policy::{LimitName, Limits};
use std::fmt::Write;

pub(super) struct Key {
    pub name: &'static str,
    kind: &'static str,
    /// `None` when the key is needed.
    default: Option<&'static str>,
    about: &'static str,
}

/// The keys above all tables.
pub(super) const KEYS: &[Key] = &[
    Key {
        name: "name",
        kind: "text: 1 to 63 of a-z, 0-9 and -, with no - at either end",
        default: None,
        about: "Name of the server. It stands in its URL.",
    },
    Key { name: "description", kind: "text", default: Some("\"\""), about: "What the server is for, in a sentence." },
    Key {
        name: "entry",
        kind: "path below the project",
        default: None,
        about: "The file whose default export is the server. With the wall `isolate`.",
    },
    Key {
        name: "command",
        kind: "list of texts: a program and its arguments",
        default: None,
        about: "What is started in the project's folder, which is `/app` inside. With the wall `process`.",
    },
    Key {
        name: "wall",
        kind: "`isolate`, `process`",
        default: Some("\"isolate\""),
        about: "What stands between the code and the host: V8 in a jailed process, or a jail around any program.",
    },
    Key {
        name: "boundary",
        kind: "`call`, `session`, `server`, `tenant`",
        default: Some("\"call\""),
        about: "How much shares one compartment. With the wall `process` the default is `session`.",
    },
    Key {
        name: "jit",
        kind: "true or false",
        default: Some("false"),
        about: "Run with V8's compilers: faster loops, at the price of writable and executable memory in the compartment.",
    },
    Key {
        name: "egress",
        kind: "list of hosts: `api.example.com`, `*.example.com`, with a port if need be, by https; or base URLs: `http://api.example.com/v1/`; with the only methods before them: `GET,POST api.example.com`",
        default: Some("[]"),
        about: "Hosts that the server may reach. There is no other way out.",
    },
];

pub(super) const LIMITS: &str = "limits";
pub(super) const ENVIRONMENT: &str = "environment";
pub(super) const HTTP: &str = "http";

/// The keys of that table.
pub(super) const HTTP_KEYS: &[(&str, &str, &str, &str)] = &[
    ("port", "1 to 65535", "needed", "The program speaks HTTP, and listens on this port of its own loopback."),
    ("path", "path", "`\"/mcp\"`", "Where its endpoint is. `/sse` is the default for the old kind."),
    ("sse", "true or false", "`false`", "It is of the old kind: a stream of events, and messages posted beside it."),
];

pub(super) fn reference() -> String {
    let mut page = "| key | value | default | |\n|---|---|---|---|\n".to_owned();
    for key in KEYS {
        let default = key.default.map_or("needed".to_owned(), |default| format!("`{default}`"));
        // Writing into a string cannot fail.
        let _ = writeln!(page, "| `{}` | {} | {default} | {} |", key.name, key.kind, key.about);
    }
    for name in LimitName::ALL.iter().copied() {
        let (least, most) = (Limits::LEAST.get(name), Limits::MOST.get(name));
        let (default, of_programs) = (Limits::default().get(name), Limits::of_programs().get(name));
        let default = match of_programs == default {
            true => format!("`{default}`"),
            false => format!("`{default}`; `{of_programs}` with the wall `process`"),
        };
        let about = name.describe();
        let _ = writeln!(page, "| `{LIMITS}.{name}` | whole number, {least} to {most} | {default} | {about} |");
    }
    let _ = writeln!(
        page,
        "| `{ENVIRONMENT}.NAME` | text | none | A variable of the program's. No secrets: see `{SECRETS}`. With the wall `process`. |"
    );
    for (name, kind, default, about) in HTTP_KEYS {
        let _ = writeln!(page, "| `{HTTP}.{name}` | {kind} | {default} | {about} |");
    }
    for (name, kind, about) in SECRET_KEYS {
        let default = match *name {
            "name" | "hosts" => "needed",
            "format" => "`\"{}\"`",
            "asked" => "`false`",
            "connection" => "none",
            _ => "one of them",
        };
        let _ = writeln!(page, "| `{SECRETS}.{name}` | {kind} | {default} | {about} |");
    }
    page
}

pub(super) fn template(name: &str) -> String {
    let name = toml::Value::from(name);
    let mut file = format!(
        "# What Bulkhead is told about this server. A key that does not exist is refused.\n\n\
         # Name of the server. It stands in its URL.\n\
         name = {name}\n\n\
         # What the server is for, in a sentence.\n\
         description = \"\"\n\n\
         # The file whose default export is the server, below this directory.\n\
         entry = \"server.js\"\n"
    );
    for key in KEYS {
        if let Some(default) = key.default.filter(|_| key.name != "description") {
            let _ = write!(file, "\n# {} Value: {}.\n# {} = {default}\n", key.about, key.kind, key.name);
        }
    }
    let _ = write!(file, "\n# What one call, or one initialisation, may use. These are the defaults.\n[{LIMITS}]\n");
    for name in LimitName::ALL.iter().copied() {
        let default = Limits::default().get(name);
        let _ = write!(file, "\n# {}\n# {name} = {default}\n", name.describe());
    }
    file.push_str(
        "\n# A secret that the host puts into requests; the code never has it. As many of these as there are secrets.\n\
         #   [[secrets]]\n#   name = \"API_TOKEN\"\n#   hosts = [\"api.example.com\"]\n\
         #   header = \"authorization\"\n#   format = \"Bearer {}\"\n",
    );
    file
}
