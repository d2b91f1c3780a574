//! Esbuild, in a jail that shows it the project and itself. It talks over pipes and writes no file.

use crate::advice::Message;
use crate::error::BuildError;
use crate::files::{Project, folder_of};
use crate::packet::{Value, receive};
use crate::{Options, text};
use jail::program::{Content, End, Jail, Limits, Mount};
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Its packets are those of exactly this version, which scripts/esbuild.sh pins.
const VERSION: &str = "0.28.2";

/// Neutral names, which is all that the results could tell of the host.
const PROGRAM: &str = "/esbuild";
const PROJECT: &str = "/project";
pub(crate) const OUTPUT: &str = "/project/.bulkhead.js";

/// Conditions: packages for the web's APIs, and not those for Node, browsers' documents or one vendor's platform.
const FLAGS: [&str; 22] = [
    "--bundle",
    "--format=esm",
    "--platform=neutral",
    "--main-fields=module,main",
    "--conditions=worker,browser,module",
    "--target=es2024",
    "--charset=utf8",
    "--sourcemap=external",
    "--sources-content=false",
    "--metafile",
    "--log-level=silent",
    "--log-limit=100",
    "--color=false",
    // Packages ask for it and would fail where there is no `process`.
    "--define:process.env.NODE_ENV=\"production\"",
    // Files to import as text.
    "--loader:.txt=text",
    "--loader:.md=text",
    "--loader:.html=text",
    "--loader:.css=text",
    "--loader:.module.css=text",
    "--loader:.svg=text",
    "--loader:.sql=text",
    "--loader:.csv=text",
];

/// Room for what Go reserves beside what it uses.
const SPARE: u64 = 256 << 20;
/// What is kept of what it says on its way out.
const LAST_WORDS: u64 = 16 << 10;
/// What to bundle.
pub(crate) struct Request<'a> {
    pub(crate) entry: &'a str,
    /// Instead of what is in the entry.
    pub(crate) script: Option<&'a str>,
    /// Modules not to look for.
    pub(crate) external: &'a [&'a str],
}

/// What came of it, as esbuild says.
pub(crate) struct Response {
    pub(crate) errors: Vec<Message>,
    pub(crate) warnings: Vec<Message>,
    pub(crate) files: Vec<(String, Vec<u8>)>,
    pub(crate) metafile: Vec<u8>,
}

impl Request<'_> {
    pub(crate) fn run(&self, project: &Project, options: &Options) -> Result<Response, BuildError> {
        // Go collects garbage harder when it comes close.
        let soft = (options.memory_bytes / 4 * 3).to_string();
        let variables = [("GOMEMLIMIT", soft.as_str()), ("GOTRACEBACK", "none")];
        let jail = jail(&find(options)?, project, options);
        let started = jail.spawn(PROGRAM, &[&format!("--service={VERSION}")], &variables);
        let mut child = started.map_err(BuildError::Jail)?;
        let broken = || BuildError::Esbuild("it cannot be talked to".to_owned());
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else { return Err(broken()) };
        let request = self.packet().request();
        // Code, map and metafile.
        let most = options.output_bytes.saturating_mul(3).saturating_add(1 << 20);
        let (end, answer, last_words) = std::thread::scope(|scope| {
            let answer = scope.spawn(move || talk(stdin, stdout, &request, most));
            let last_words = scope.spawn(move || listen(stderr));
            let end = child.watch(options.wall_clock, options.memory_bytes);
            // Then nobody is left to write to the pipes, and both threads come to an end.
            child.kill();
            (end, answer.join(), last_words.join().unwrap_or_default())
        });
        match (end.map_err(|error| BuildError::Esbuild(error.to_string()))?, answer.map_err(|_| broken())?) {
            (End::TooLong, _) => Err(BuildError::TooLong(options.wall_clock)),
            (End::TooLarge, _) => Err(BuildError::TooMuchMemory(options.memory_bytes)),
            (End::Exited(_), Ok(response)) => read(response),
            (End::Exited(_), Err(Silence::TooLarge)) => Err(BuildError::TooLarge(options.output_bytes)),
            (End::Exited(exit), Err(Silence::Broken)) => Err(reason(exit.code, &last_words, options)),
        }
    }

    fn packet(&self) -> Value {
        let mut flags: Vec<Value> = FLAGS.iter().map(|flag| Value::from(*flag)).collect();
        flags.push(Value::Text(format!("--outfile={OUTPUT}")));
        flags.extend(self.external.iter().map(|path| Value::Text(format!("--external:{path}"))));
        let (entries, stdin, folder) = match self.script {
            None => {
                (vec![Value::List(vec!["".into(), Value::Text(format!("./{}", self.entry))])], Value::Null, Value::Null)
            }
            Some(script) => {
                flags.extend(["--loader=js".into(), Value::Text(format!("--sourcefile={}", self.entry))]);
                let folder = format!("{PROJECT}/{}", folder_of(self.entry));
                (Vec::new(), Value::Bytes(script.as_bytes().to_vec()), Value::Text(folder))
            }
        };
        Value::map([
            ("command", "build".into()),
            ("key", Value::Number(0)),
            ("entries", Value::List(entries)),
            ("flags", Value::List(flags)),
            ("write", Value::Bool(false)),
            ("stdinContents", stdin),
            ("stdinResolveDir", folder),
            ("absWorkingDir", PROJECT.into()),
            ("nodePaths", Value::List(Vec::new())),
            ("context", Value::Bool(false)),
        ])
    }
}

/// All that esbuild sees is itself and the project.
fn jail(program: &Path, project: &Project, options: &Options) -> Jail {
    let host = |source: &Path, executable| Content::Host { source: source.to_owned(), executable };
    Jail {
        mounts: vec![
            Mount { target: PROGRAM.into(), content: host(program, true) },
            Mount { target: PROJECT.into(), content: host(&project.folder, false) },
        ],
        limits: Limits {
            // All processors together.
            cpu_seconds: options.wall_clock.as_secs().saturating_mul(4).max(1),
            data_bytes: options.memory_bytes.saturating_add(SPARE),
            file_bytes: 0,
            open_files: 256,
            threads: 256,
        },
        // Root builds a project as whoever owns it, so it need not be everybody's to read.
        reads_as: std::fs::metadata(&project.folder).ok().map(|folder| folder.uid()),
    }
}

/// Why it ended without an answer.
fn reason(code: Option<i32>, last_words: &str, options: &Options) -> BuildError {
    if last_words.contains("out of memory") {
        return BuildError::TooMuchMemory(options.memory_bytes);
    }
    if last_words.contains("stack overflow") {
        return BuildError::Project("some code of the project is nested too deep to be read".to_owned());
    }
    match code {
        // Killed by the kernel for its CPU time.
        Some(137) => BuildError::TooLong(options.wall_clock),
        code => {
            let first = last_words.lines().next().unwrap_or("it said nothing");
            let code = code.map_or_else(|| "?".to_owned(), |code| code.to_string());
            BuildError::Esbuild(format!("it ended with status {code}: {}", text::line(first, 300)))
        }
    }
}

/// Why there was no answer.
enum Silence {
    Broken,
    TooLarge,
}

/// One question and its answer. When this returns, esbuild's input ends, and so does esbuild.
fn talk(mut stdin: impl Write, mut stdout: impl Read, request: &[u8], most: usize) -> Result<Value, Silence> {
    let silence = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::FileTooLarge => Silence::TooLarge,
        _ => Silence::Broken,
    };
    let version = receive(&mut stdout, 100).map_err(|_| Silence::Broken)?;
    if version != VERSION.as_bytes() {
        return Err(Silence::Broken);
    }
    stdin.write_all(request).map_err(silence)?;
    let packet = receive(&mut stdout, most).map_err(silence)?;
    Value::response(&packet).ok_or(Silence::Broken)
}

/// The beginning of what it says; the rest is read and forgotten.
fn listen(mut stderr: impl Read) -> String {
    let mut words = Vec::new();
    let _ = stderr.by_ref().take(LAST_WORDS).read_to_end(&mut words);
    let _ = std::io::copy(&mut stderr, &mut std::io::sink());
    String::from_utf8_lossy(&words).into_owned()
}

fn read(mut response: Value) -> Result<Response, BuildError> {
    if let Some(error) = response.get("error").and_then(Value::text) {
        return Err(BuildError::Esbuild(text::line(error, 500)));
    }
    let messages =
        |field| response.get(field).map(Value::items).unwrap_or_default().iter().filter_map(Message::read).collect();
    let (errors, warnings) = (messages("errors"), messages("warnings"));
    let mut files = Vec::new();
    if let Some(Value::List(all)) = response.take("outputFiles") {
        for mut file in all {
            if let (Some(Value::Text(path)), Some(Value::Bytes(bytes))) = (file.take("path"), file.take("contents")) {
                files.push((path, bytes));
            }
        }
    }
    let metafile = match response.take("metafile") {
        Some(Value::Bytes(bytes)) => bytes,
        Some(Value::Text(text)) => text.into_bytes(),
        _ => Vec::new(),
    };
    Ok(Response { errors, warnings, files, metafile })
}

fn find(options: &Options) -> Result<PathBuf, BuildError> {
    let named = options.esbuild.clone().or_else(|| std::env::var_os("BULKHEAD_ESBUILD").map(PathBuf::from));
    let path = named.unwrap_or_else(|| {
        let program = std::env::current_exe().unwrap_or_default();
        program.parent().unwrap_or(Path::new(".")).join("bulkhead-esbuild")
    });
    match path.canonicalize() {
        Ok(found) if found.is_file() => Ok(found),
        _ => Err(BuildError::Missing(path)),
    }
}
