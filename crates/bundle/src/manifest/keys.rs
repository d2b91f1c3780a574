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
        about: "The file whose default export is the server.",
    },
    Key {
        name: "wall",
        kind: "`isolate`",
        default: Some("\"isolate\""),
        about: "What stands between the code and the host.",
    },
    Key {
        name: "boundary",
        kind: "`call`, `session`, `server`, `tenant`",
        default: Some("\"call\""),
        about: "How much shares one compartment.",
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

pub(super) fn reference() -> String {
    let mut page = "| key | value | default | |\n|---|---|---|---|\n".to_owned();
    for key in KEYS {
        let default = key.default.map_or("needed".to_owned(), |default| format!("`{default}`"));
        // Writing into a string cannot fail.
        let _ = writeln!(page, "| `{}` | {} | {default} | {} |", key.name, key.kind, key.about);
    }
    for name in LimitName::ALL.iter().copied() {
        let (least, most) = (Limits::LEAST.get(name), Limits::MOST.get(name));
        let (default, about) = (Limits::default().get(name), name.describe());
        let _ = writeln!(page, "| `{LIMITS}.{name}` | whole number, {least} to {most} | `{default}` | {about} |");
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
