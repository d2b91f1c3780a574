//! Runs the built program and keeps what it said.
#![allow(dead_code, reason = "each test binary uses its own part")]

pub mod fake;
pub mod host;
pub mod http;
pub mod signed;
pub mod subordinate;
pub mod world;

use std::io::{Read, Write};
use std::ops::Deref;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// No run may take longer, whatever happens.
const PATIENCE: Duration = Duration::from_secs(60);

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_bulkhead");

/// The file in `examples/`.
pub fn example(name: &str) -> String {
    root().join("examples").join(name).to_string_lossy().into_owned()
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the crate lies in the workspace")
}

/// What lies beside the program when `make build` has been there.
pub fn beside(name: &str) -> PathBuf {
    let path = Path::new(PROGRAM).with_file_name(name);
    assert!(path.is_file(), "`{}` is missing; run `make test`", path.display());
    path
}

/// A folder that is gone at the end of the test.
pub struct Dir(tempfile::TempDir);

impl Dir {
    pub fn new() -> Dir {
        Dir(tempfile::tempdir().expect("a temporary folder"))
    }

    /// One that other users can look into.
    pub fn for_everybody() -> Dir {
        let dir = Dir::new();
        allow(dir.0.path(), 0o755);
        dir
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file and gives its path.
    pub fn file(&self, name: &str, content: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, content).expect("a file in a temporary folder");
        allow(&path, 0o644);
        path.to_string_lossy().into_owned()
    }
}

fn allow(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("permissions of our own file");
}

/// Copies the program and what it needs.
pub fn install(dir: &Dir) {
    for file in [Path::new(PROGRAM).to_owned(), beside("bulkhead-v8"), beside("libisolate_worker.so")] {
        let copy = dir.path(&file.file_name().expect("a file has a name").to_string_lossy());
        std::fs::copy(&file, &copy).expect("a copy of the program");
        allow(&copy, 0o755);
    }
}

/// How to become a user without any rights; `None` for who has none to give up.
pub fn nobody() -> Option<Vec<String>> {
    let id = Command::new("id").arg("-u").output().ok()?;
    let become_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let works = id.stdout == b"0\n" && Command::new("setpriv").arg("--version").output().is_ok();
    works.then(|| become_nobody.map(str::to_owned).to_vec())
}

/// What a run of the program gave.
#[derive(Debug)]
pub struct Output {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// A run of the program, made when its outcome is first looked at.
pub struct Run {
    program: Vec<String>,
    args: Vec<String>,
    env: Vec<(String, String)>,
    dir: Option<PathBuf>,
    stdin: String,
    print_to: Option<Stdout>,
    patience: Duration,
    output: OnceLock<Output>,
}

enum Stdout {
    ClosedPipe,
    File(PathBuf),
}

pub fn bulkhead<'a>(args: impl IntoIterator<Item = &'a str>) -> Run {
    beside("bulkhead-v8");
    beside("libisolate_worker.so");
    Run {
        program: vec![PROGRAM.to_owned()],
        args: args.into_iter().map(str::to_owned).collect(),
        env: Vec::new(),
        dir: None,
        stdin: String::new(),
        print_to: None,
        patience: PATIENCE,
        output: OnceLock::new(),
    }
}

impl Run {
    pub fn arg(mut self, arg: &str) -> Run {
        self.args.push(arg.to_owned());
        self
    }

    pub fn with_stdin(mut self, text: &str) -> Run {
        text.clone_into(&mut self.stdin);
        self
    }

    pub fn with_env(mut self, name: &str, value: &str) -> Run {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn in_dir(mut self, dir: &Dir) -> Run {
        self.dir = Some(dir.path(""));
        self
    }

    pub fn in_folder(mut self, folder: &str) -> Run {
        self.dir = Some(folder.into());
        self
    }

    /// It may take longer than others.
    pub fn within(mut self, patience: Duration) -> Run {
        self.patience = patience;
        self
    }

    /// Nobody reads what it prints.
    pub fn into_closed_pipe(mut self) -> Run {
        self.print_to = Some(Stdout::ClosedPipe);
        self
    }

    pub fn into_file(mut self, path: &Path) -> Run {
        self.print_to = Some(Stdout::File(path.to_owned()));
        self
    }

    /// The program installed in `dir`, started with the command of another user.
    pub fn started_by(mut self, user: &[String], dir: &Dir) -> Run {
        self.program = user.to_vec();
        self.program.push(dir.path("bulkhead").to_string_lossy().into_owned());
        self.in_dir(dir)
    }

    /// Runs it, whether or not anybody looks.
    pub fn now(self) -> Run {
        let _ = &*self;
        self
    }

    /// Stderr with `#` for every number.
    pub fn stderr_without_figures(&self) -> String {
        without_figures(&self.stderr)
    }

    fn run(&self) -> Output {
        let mut command = Command::new(&self.program[0]);
        command
            .args(&self.program[1..])
            .args(&self.args)
            .env_remove("BULKHEAD_V8")
            .env_remove("BULKHEAD_WORKER")
            .env_remove("BULKHEAD_URL")
            .env_remove("BULKHEAD_KEY")
            .env_remove("BULKHEAD_DATA")
            .env_remove("BULKHEAD_LISTEN")
            .env_remove("COLUMNS")
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(dir) = &self.dir {
            command.current_dir(dir);
        }
        if let Some(Stdout::File(path)) = &self.print_to {
            command.stdout(std::fs::OpenOptions::new().write(true).open(path).expect("a file to print into"));
        }
        let mut child = command.spawn().expect("the program starts");
        if let Some(Stdout::ClosedPipe) = &self.print_to {
            child.stdout.take();
        }
        // Fits the pipe, or is read; a program that does not want it closes its end.
        let stdin = child.stdin.take();
        let text = self.stdin.clone();
        let writer = std::thread::spawn(move || stdin.map(|mut stdin| stdin.write_all(text.as_bytes())));
        let (stdout, stderr) = (keep(child.stdout.take()), keep(child.stderr.take()));
        let code = wait(&mut child, self.patience);
        let _ = writer.join();
        let text = |kept: std::thread::JoinHandle<String>| kept.join().expect("the reader does not panic");
        Output { code, stdout: text(stdout), stderr: text(stderr) }
    }
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Output { code, stdout, stderr } = &**self;
        write!(f, "{:?} {:?}: exit {code}\n--- stdout\n{stdout}--- stderr\n{stderr}", self.program, self.args)
    }
}

impl Deref for Run {
    type Target = Output;

    fn deref(&self) -> &Output {
        self.output.get_or_init(|| self.run())
    }
}

pub fn without_figures(text: &str) -> String {
    let mut shown = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if !c.is_ascii_digit() {
            shown.push(c);
            continue;
        }
        shown.push('#');
        while chars.next_if(|c| c.is_ascii_digit() || *c == '.').is_some() {}
    }
    shown
}

fn keep(from: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut from) = from {
            let _ = from.read_to_end(&mut bytes);
        }
        String::from_utf8(bytes).expect("the program speaks UTF-8")
    })
}

/// The exit code, or -1 for a signal. A program that takes too long is killed.
fn wait(child: &mut Child, patience: Duration) -> i32 {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(status) = child.try_wait().expect("our own child") {
            return status.code().unwrap_or(-1);
        }
        if Instant::now() > deadline {
            let _ = child.kill();
            let _ = child.wait();
            panic!("the program did not end within {patience:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
