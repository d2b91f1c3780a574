use crate::support::refused;
use bundle::{Manifest, is_hidden};
use insta::assert_snapshot;
use policy::{Allowance, LimitName, permit};
use proptest::prelude::*;

#[test]
fn a_whole_file() {
    let text = r#"
        name = "weather"
        description = "Wetter für Städte."
        entry = "src/server.js"
        wall = "isolate"
        boundary = "session"
        jit = true
        egress = ["*.example.org:8443", "api.example.com", "192.0.2.1", "[2001:db8::1]:80"]
        [limits]
        cpu_ms = 0x64
        log_kb = 0
        [[secrets]]
        name = "B"
        hosts = ["api.example.com", "http://192.0.2.1"]
        header = "authorization"
        format = "Bearer {}"
        [[secrets]]
        name = "A_1"
        hosts = ["*.example.org:8443"]
        aws = { region = "eu-central-1", service = "s3" }
        asked = true
    "#;
    let manifest = Manifest::parse(text.as_bytes()).unwrap();
    assert_eq!(manifest.program.file(), "src/server.js");
    assert_eq!((manifest.limits.cpu_ms, manifest.limits.log_kb, manifest.limits.time_ms), (100, 0, 30_000));
    assert_snapshot!(serde_json::to_string(&manifest.secrets).unwrap(), @r#"[{"name":"A_1","hosts":["*.example.org:8443"],"place":{"aws":{"region":"eu-central-1","service":"s3"}},"format":"{}","asked":true},{"name":"B","hosts":["api.example.com","http://192.0.2.1"],"place":{"header":"authorization"},"format":"Bearer {}","asked":false}]"#);
    assert_eq!(manifest.egress.len(), 4);
    assert!(permit(&manifest.ask(), &Allowance::default()).unwrap().jit());
}

#[test]
fn keys_that_do_not_exist() {
    let text = "name = \"a\"\nentyr = \"server.js\"\nEntry = 1\ncpu_ms = 5\nnetwork = true\n\n[limit]\na = 1\n\n[limits]\ncpu = 1\n\
                jit = true\nmemory-mb = 9\n";
    assert_snapshot!(refused(text), @r#"
    1:1: entry: this key is needed; such as `entry = "server.js"`
    2:1: entyr: there is no such key; did you mean `entry`?
    3:1: Entry: there is no such key; did you mean `entry`?
    4:1: cpu_ms: there is no such key; `cpu_ms` belongs to `[limits]`
    5:1: network: there is no such key; there are name, description, entry, command, wall, boundary, jit, egress, environment, http, limits, secrets
    7:2: limit: there is no such table; did you mean `limits`?
    11:1: limits.cpu: there is no such key; there are cpu_ms, time_ms, memory_mb, result_kb, log_kb, host_calls, argument_kb, argument_depth, init_cpu_ms, init_time_ms, source_kb, processes, cpu_percent, scratch_mb
    12:1: limits.jit: there is no such key; `jit` stands above all tables
    13:1: limits.memory-mb: there is no such key; did you mean `memory_mb`?
    "#);
}

#[test]
fn wrong_types() {
    let text = "name = 1\ndescription = [\"a\"]\nentry = true\nwall = 2\nboundary = 1.5\njit = \"yes\"\negress = \"a.b\"\n\
                secrets = [1, \"A\", {}, {name = 1, hosts = 1, header = 1, format = 1, asked = 1}]\nlimits = 5\n";
    assert_snapshot!(refused(text), @r#"
    1:8: name: text is needed, this is an integer
    2:15: description: text is needed, this is an array
    3:9: entry: text is needed, this is a boolean
    4:8: wall: text is needed, this is an integer
    5:12: boundary: text is needed, this is a float
    6:7: jit: true or false is needed, this is a string
    7:10: egress: a list of texts is needed, this is a string
    8:12: secrets: a table is needed, this is an integer; write `[[secrets]]` on a line of its own, and `name`, `hosts` and a place below it
    8:15: secrets: a table is needed, this is a string; write `[[secrets]]` on a line of its own, and `name`, `hosts` and a place below it
    8:20: secrets.name: this key is needed; such as `name = "API_TOKEN"`
    8:20: secrets.hosts: this key is needed; such as `hosts = ["api.example.com"]`
    8:20: secrets: one place is needed, there are 0; one of header, query, cookie, body, basic, aws, such as `header = "authorization"`
    8:32: secrets.name: text is needed, this is an integer
    8:43: secrets.hosts: a list of texts is needed, this is an integer
    8:55: secrets.header: text is needed, this is an integer
    8:67: secrets.format: text is needed, this is an integer
    8:78: secrets.asked: true or false is needed, this is an integer
    9:10: limits: `limits` is a table; write `[limits]` on a line of its own
    "#);
}

#[test]
fn wrong_values() {
    let text = "name = \"Weather App\"\ndescription = \"a\\u202eb\"\nentry = \"../server.js\"\nwall = \"microvm\"\nboundary = \"sesion\"\n\
                egress = [\"ftp://api.example.com/v1/x\", \"API.example.com\", \"*.com\", \"127.1\", \"a.b:0\", \"::1\", \"bücher.de\",\n\
                \x20 \"a.b\", \"a.b\"]\n[limits]\ncpu_ms = 0\nmemory_mb = 1.5\nhost_calls = -1\n\
                log_kb = 99999999999999999999999\n";
    assert_snapshot!(refused(text), @r#"
    1:8: name: `Weather App` is no name of a server; use 1 to 63 of a-z, 0-9 and -, with no - at either end
    2:15: description: this text has invisible characters, such as `\u{202e}`
    3:9: entry: `../server.js` leads out of the project, a path below it is needed
    4:8: wall: `microvm` is none of `isolate`, `process`
    5:12: boundary: `sesion` is none of `call`, `session`, `server`, `tenant`; did you mean `session`?
    6:11: egress: `ftp://api.example.com/v1/x` has a scheme that is neither https nor http
    6:41: egress: `API.example.com` has capital letters; write `api.example.com`
    6:60: egress: `*.com` leaves too much open; two parts are needed after `*.`
    6:69: egress: `127.1` is a number and no IPv4 address; such as `192.0.2.1`
    6:78: egress: `a.b:0` has no port between 1 and 65535 after its colon
    6:87: egress: `::1` is no host name; an IPv6 address stands in brackets, such as `[2001:db8::1]`
    6:94: egress: `bücher.de` is not ASCII; write such a name in its form that begins with `xn--`
    7:10: egress: `a.b` stands here twice
    9:10: limits.cpu_ms: `0` is not between 1 and 60000
    10:13: limits.memory_mb: a whole number is needed, this is a float
    11:14: limits.host_calls: `-1` is not between 0 and 4096
    12:10: limits.log_kb: `99999999999999999999999` is not between 0 and 4096
    "#);
}

#[test]
fn secrets_that_make_no_sense() {
    let text = r#"name = "a"
entry = "b.js"
secrets = [
  { name = "token", hosts = ["a.b/c", "GET a.b"], header = "X Y" },
  { name = "A", hosts = [], query = "a" },
  { name = "A", hosts = ["a.b"], query = "a", basic = true },
  { name = "A", hosts = ["a.b"], basic = true, format = "{}" },
  { name = "A", hosts = ["a.b"], basic = false },
  { name = "A", hosts = ["a.b"], body = "token" },
  { name = "A", hosts = ["a.b"], header = "authorization", format = "Bearer" },
  { name = "B", hosts = ["a.b"], aws = { region = "a" } },
  { naem = "B", hosts = ["a.b"], header = "Authorization" },
  { name = "C", hosts = ["a.b"], basic = true },
  { name = "C", hosts = ["a.b"], basic = true },
]
"#;
    assert_snapshot!(refused(text), @r#"
    4:12: secrets.name: `token` is no name of a secret; use 1 to 64 of A-Z, 0-9 and _, a letter first, such as `API_TOKEN`
    4:30: secrets.hosts: `a.b/c` has a path and no scheme before it; such as `api.example.com`, `*.example.com:8443`, `https://api.example.com/v1/` or `GET,POST https://api.example.com`
    4:39: secrets.hosts: `GET a.b` is more than a host; a secret goes to a host, such as `api.example.com`, whatever the path
    4:60: secrets.header: `X Y` is no name for it; such as `authorization` or `x-api-key`
    5:3: secrets: a secret that goes to no host goes nowhere; name its `hosts`
    6:3: secrets: one place is needed, there are 2; one of header, query, cookie, body, basic, aws, such as `header = "authorization"`
    7:3: secrets: `basic` and `aws` have a format of their own
    8:42: secrets.basic: `basic` is true, or not there
    9:41: secrets.body: `token` is no JSON pointer; such as `/auth/token`
    10:69: secrets.format: `Bearer` does not say where the secret goes; `{}` stands for it, once, such as `Bearer {}`
    11:40: secrets.aws: this is not a region and a service; such as `aws = { region = "eu-central-1", service = "s3" }`
    12:3: secrets.name: this key is needed; such as `name = "API_TOKEN"`
    12:5: secrets.naem: there is no such key; did you mean `name`?
    12:43: secrets.header: `Authorization` is no name for it; write `authorization`
    14:3: secrets: `C` is bound to the same place twice
    "#);
}

#[test]
fn keys_that_are_missing() {
    assert_snapshot!(refused("jit = true\n"), @r#"
    1:1: name: this key is needed; such as `name = "my-server"`
    1:1: entry: this key is needed; such as `entry = "server.js"`
    "#);
}

#[test]
fn what_is_no_toml() {
    assert_snapshot!(refused("name = \"a\"\nentry = \nname = \"b\"\n"), @r#"
    2:9: string values must be quoted, expected literal string
    3:1: duplicate key
    "#);
    assert!(Manifest::parse(b"name = \"\xff\"").unwrap_err().to_string().contains("1:9: this is not UTF-8"));
}

#[test]
fn problems_are_counted_and_not_all_shown() {
    let text: String = (0..100).map(|n| format!("key{n} = 1\n")).collect();
    let error = Manifest::parse(text.as_bytes()).unwrap_err();
    // Two are that `name` and `entry` are missing.
    assert_eq!((error.problems.len(), error.more), (20, 82));
    assert!(error.to_string().ends_with("and 82 more"));
}

#[test]
fn large_files_are_not_looked_at() {
    let mut text = b"name = \"a\"\nentry = \"b\"\n".to_vec();
    text.resize(Manifest::LARGEST, b'\n');
    assert!(Manifest::parse(&text).is_ok());
    text.push(b'\n');
    assert!(Manifest::parse(&text).unwrap_err().to_string().contains("65537 bytes, 65536 are allowed"));
}

#[test]
fn hostile_files_are_refused_briefly() {
    let hostile = [
        "[".repeat(60_000),
        format!("a = {}", "[".repeat(60_000)),
        format!("a = {}", "{a=".repeat(20_000)),
        "a.".repeat(30_000),
        format!("\"{}\" = 1", "\\u202e".repeat(10_000)),
        format!("\"{}\" = 1", "\u{202e}".repeat(20_000)),
        format!("name = \"{}\"", "\u{1f600}".repeat(16_000)),
        format!("egress = [{}]", "\"x\",".repeat(15_000)),
        format!("egress = [{}]", "\"\u{200b}\",".repeat(200)),
        "[a]\n".repeat(16_000),
        "a=1\n".repeat(16_000),
        "\u{202e}\n".repeat(16_000),
    ];
    for text in hostile {
        let message = refused(&text);
        assert!(message.len() < 20_000, "{}", message.len());
        assert!(!message.chars().any(|c| c != '\n' && is_hidden(c)), "{message:?}");
    }
}

#[test]
fn the_template_can_be_read_as_it_is_and_with_everything_in_it() {
    let template = Manifest::template("my-server");
    let manifest = Manifest::parse(template.as_bytes()).unwrap();
    assert_eq!((manifest.name.as_str(), manifest.program.file()), ("my-server", "server.js"));
    let uncommented: String = template
        .lines()
        .map(|line| line.strip_prefix("# ").filter(|rest| rest.split(' ').nth(1) == Some("=")).unwrap_or(line))
        .flat_map(|line| [line, "\n"])
        .collect();
    assert_ne!(template, uncommented);
    // All defaults, so the same.
    assert_eq!(Manifest::parse(uncommented.as_bytes()).unwrap(), manifest);
    for name in LimitName::ALL {
        assert!(uncommented.contains(&format!("\n{name} = ")), "{name}");
    }
    // A name cannot smuggle in keys.
    assert_snapshot!(refused(&Manifest::template("a\"\njit = true\n#")), @r#"4:8: name: `a"\u{a}jit = true\u{a}#` is no name of a server; use 1 to 63 of a-z, 0-9 and -, with no - at either end"#);
}

#[test]
fn the_reference_has_every_key() {
    let reference = Manifest::reference();
    let keys = ["name", "description", "entry", "wall", "boundary", "jit", "egress", "secrets.name", "secrets.header"];
    let limits = LimitName::ALL.iter().map(|name| format!("limits.{name}"));
    for key in keys.iter().map(|key| (*key).to_owned()).chain(limits) {
        assert_eq!(reference.matches(&format!("\n| `{key}` | ")).count(), 1, "{key}");
    }
    assert!(reference.lines().all(|line| line.matches(" | ").count() == 3 || line.starts_with("|---")), "{reference}");
}

proptest! {
    #[test]
    fn nothing_makes_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = Manifest::parse(&bytes);
    }

    #[test]
    fn nor_does_what_looks_like_a_manifest(
        text in "((name|entry|egress|secrets|jit|limits|\\[limits\\]|cpu_ms|wall) ?=? ?(\"[a-z.*:/\u{202e}]{0,6}\"|\\[|\\]|1|true|\n)?\n?){0,8}"
    ) {
        if let Err(error) = Manifest::parse(text.as_bytes()) {
            prop_assert!(!error.problems.is_empty());
            prop_assert!(!error.to_string().chars().any(|c| c != '\n' && is_hidden(c)));
        }
    }
}
