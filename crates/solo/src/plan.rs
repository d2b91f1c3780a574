//! What the jail will be: decided before anything is started, and changed by nobody afterwards.

use crate::error::Error;
use crate::guard::{Allowed, Guarded};
use crate::options::{Limits, Options};
use crate::ports::{self, Port};
use crate::profile::{self, Access, Profile};
use egress::proxy::Outfit;
use egress::{BareStar, Host, Rules, Target};
use install::toolchain::{self, Found, of_system};
use install::{HOME, PACKAGE, PROXY_PORT, Package, Source, Surroundings, TMP};
use jail::program::shields_sockets;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::FileType;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// What is the jail's own. Nothing of the host is shown in its place or around it.
const OWN: [&str; 10] = ["/proc", "/dev", "/sys", TMP, HOME, PACKAGE, "/usr", "/etc", "/bin", "/lib"];
/// Nothing of the host is shown in there either.
const CLOSED: [&str; 4] = ["/proc", "/dev", "/sys", PACKAGE];

/// Interpreters, whose first argument that is no flag is the server.
const INTERPRETERS: [&str; 9] = ["node", "python", "deno", "bun", "tsx", "ruby", "php", "bash", "sh"];

/// The jail of one server.
#[derive(Debug, Clone)]
pub struct Plan {
    /// As it was written.
    pub command: Vec<String>,
    pub start: Start,
    pub arguments: Vec<String>,
    /// Where the server starts, inside.
    pub folder: PathBuf,
    /// What it sees of the host beside the system. What lies in another comes after it.
    pub shown: Vec<Shown>,
    /// Its whole environment.
    pub variables: BTreeMap<String, String>,
    /// The person's own variables that are not in it.
    pub withheld: BTreeSet<String>,
    /// What it may reach.
    pub allow: Vec<String>,
    /// And what it may reach beside the proxy.
    pub tcp: Vec<Port>,
    pub limits: Limits,
    /// What is known about this server, if a profile was used.
    pub profile: Option<String>,
    /// Lines for the person: what looks wrong, and what to do about it.
    pub hints: Vec<String>,
    /// What it may not change in there, nor use.
    pub guarded: Guarded,
    /// Whether it may make sockets with paths.
    pub unix_sockets: bool,
    pub offline: bool,
    pub refresh: bool,
    pub scripts: bool,
}

/// What is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    Program(PathBuf),
    /// A package that is installed first, with the interpreter that runs it.
    Package {
        package: Package,
        interpreter: PathBuf,
    },
}

/// A file or folder of the host, at the same path inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    pub path: PathBuf,
    pub access: Access,
    pub why: Why,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// A flag names it.
    Asked,
    /// The profile says that an argument or variable names it.
    Profile,
    /// A program of the command needs it.
    Toolchain,
    /// The server itself is in it.
    Code,
}

impl Plan {
    /// Looks at files of the host, and changes nothing.
    pub fn new(options: &Options, around: &Surroundings) -> Result<Plan, Error> {
        options.limits.check()?;
        let around = &around.showing(options.ro.iter().chain(&options.rw));
        let (program, rest) = options.command.split_first().ok_or(Error::NoCommand)?;
        let request = install::recognise(&options.command);
        let (start, arguments, found) = match request {
            Some(request) => {
                let named = options.interpreter.as_deref().or(request.interpreter.as_deref());
                let found = match named {
                    Some(name) => toolchain::find(name, around)?,
                    None => install::interpreter_of(&request.package, options.scripts, around)?,
                };
                let start = Start::Package { package: request.package, interpreter: found.program.clone() };
                (start, request.arguments, found)
            }
            None => {
                let found = toolchain::find(program, around)?;
                (Start::Program(found.program.clone()), rest.to_vec(), found)
            }
        };
        let profile = match &start {
            Start::Package { package, .. } if !options.no_profile => profile::find(package)?,
            _ => None,
        };
        let mut plan = Plan {
            command: options.command.clone(),
            start,
            arguments,
            folder: PathBuf::new(),
            shown: Vec::new(),
            variables: BTreeMap::new(),
            withheld: BTreeSet::new(),
            allow: options.allow.clone(),
            tcp: ports::read(&options.tcp)?,
            limits: options.limits,
            profile: profile.as_ref().map(|profile| profile.about.clone()),
            hints: Vec::new(),
            guarded: Guarded::default(),
            unix_sockets: options.unix_sockets,
            offline: options.offline,
            refresh: options.refresh,
            scripts: options.scripts,
        };
        if matches!(plan.start, Start::Program(_)) && install::fetches(&options.command) {
            plan.hints.push(format!(
                "this command is not understood, so nothing is installed ahead: `{program}` itself runs in the jail, and would \
                 fetch at every start; what is understood is a package of the registry, as in `npx -y NAME@VERSION` or \
                 `uvx --from NAME==VERSION PROGRAM`"
            ));
        }
        plan.show_asked(options, around)?;
        plan.set_variables(options, around, &found)?;
        plan.apply(profile.as_ref(), around)?;
        plan.show_needed(&found, around);
        plan.hint_withheld(&found);
        plan.rules()?;
        plan.shown.sort_by_key(|shown| shown.path.components().count());
        plan.guard(options, profile.as_ref())?;
        plan.folder = plan.working_folder(&around.folder);
        plan.settle_arguments(around);
        plan.hint(around);
        plan.hint_addresses();
        let withheld = around.variables.keys().filter(|name| !plan.variables.contains_key(*name));
        plan.withheld = withheld.cloned().collect();
        Ok(plan)
    }

    /// What could run the package instead, where it is for another Python and the command names none.
    pub(crate) fn other_interpreters(&self, options: &Options, around: &Surroundings) -> Vec<String> {
        let named = install::recognise(&options.command).is_some_and(|request| request.interpreter.is_some());
        let Start::Package { package: Package { source: Source::PyPi, .. }, interpreter } = &self.start else {
            return Vec::new();
        };
        let usual = Found { program: interpreter.clone(), ..Found::default() };
        let others = if named { Vec::new() } else { toolchain::pythons(&usual, around) };
        others.into_iter().map(|found| found.program.to_string_lossy().into_owned()).collect()
    }

    fn show_asked(&mut self, options: &Options, around: &Surroundings) -> Result<(), Error> {
        let asked = options.ro.iter().map(|path| (path, Access::Read));
        for (path, access) in asked.chain(options.rw.iter().map(|path| (path, Access::Write))) {
            let path = around.absolute(path);
            let refuse = |why: &str| Err(Error::Folder { path: path.clone(), why: why.to_owned() });
            let Ok(real) = path.canonicalize() else { return refuse("it is not there") };
            if let Some(why) = real.metadata().ok().and_then(|found| no_file(&real, found.file_type())) {
                return refuse(&why);
            }
            if self.shown.iter().any(|shown| shown.path == path) {
                return refuse("it is named twice");
            }
            if let Some(why) = closed(&path).or_else(|| closed_behind(&real)) {
                return refuse(why);
            }
            if let Some(what) = around.private(&real) {
                let leads = if real == path { String::new() } else { format!(" leads to `{}`, and", real.display()) };
                self.hints.push(format!("`{}`{leads} is shown with {what}", path.display()));
            }
            self.shown.push(Shown { path, access, why: Why::Asked });
        }
        Ok(())
    }

    /// What lies in the folders that are shown, and is not for the server.
    fn guard(&mut self, options: &Options, profile: Option<&Profile>) -> Result<(), Error> {
        let allowed = match profile {
            _ if options.repo_settings => Allowed::Everything,
            Some(profile) if profile.commits => Allowed::Commits,
            _ if options.commits => Allowed::Commits,
            _ => Allowed::Nothing,
        };
        let others: Vec<PathBuf> = self.shown.iter().map(|shown| shown.path.clone()).collect();
        for shown in &self.shown {
            let writable = shown.access == Access::Write;
            if !self.guarded.add(&shown.path, writable, allowed, &others) && writable && allowed != Allowed::Everything
            {
                let why = "it holds more than can be searched for what programs outside run or obey, such as `.git`; name a \
                           smaller folder, or add `--repo-settings` to let the server change all of it";
                return Err(Error::Folder { path: shown.path.clone(), why: why.to_owned() });
            }
        }
        Ok(())
    }

    fn set_variables(&mut self, options: &Options, around: &Surroundings, found: &Found) -> Result<(), Error> {
        let own_programs = format!("{PACKAGE}/bin:{PACKAGE}/node_modules/.bin");
        let folders =
            found.folders.iter().filter_map(|folder| folder.to_str()).filter(|folder| !of_system(folder.as_ref()));
        let path: Vec<&str> =
            [own_programs.as_str()].into_iter().chain(folders).chain(["/usr/local/bin", "/usr/bin", "/bin"]).collect();
        let own = [("PATH", path.join(":")), ("HOME", HOME.into()), ("LANG", "C.UTF-8".into()), ("TMPDIR", TMP.into())];
        self.variables.extend(own.map(|(name, value)| (name.to_owned(), value)));
        if !options.offline {
            self.variables.extend(Outfit::new(PROXY_PORT, None).variables);
        }
        if !self.own_ports().is_empty() {
            // Its own loopback is reached without the proxy, and this machine's with it: only one of them can be meant.
            self.variables.extend(["NO_PROXY", "no_proxy"].map(|name| (name.to_owned(), String::new())));
        }
        if matches!(&self.start, Start::Package { package, .. } if package.source == Source::PyPi) {
            // Many servers would ask the registry for a newer version of what they are made with.
            self.variables.insert("FASTMCP_CHECK_FOR_UPDATES".to_owned(), "off".to_owned());
        }
        let node = self.variables.get("NODE_OPTIONS").cloned();
        for entry in &options.env {
            let (name, value) = match entry.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (entry.as_str(), around.variables.get(entry).cloned()),
            };
            if name.is_empty() || name.contains('\0') || value.as_ref().is_some_and(|value| value.contains('\0')) {
                return Err(Error::Variable(entry.clone()));
            }
            match value {
                Some(value) => drop(self.variables.insert(name.to_owned(), value)),
                None => self.hints.push(format!("`--env {name}`: the variable is not set")),
            }
        }
        if let (Some(own), Some(given)) = (node, self.variables.get_mut("NODE_OPTIONS")) {
            *given = if *given == own { own } else { format!("{own} {given}") };
        }
        Ok(())
    }

    /// A profile adds what no flag has said.
    fn apply(&mut self, profile: Option<&Profile>, around: &Surroundings) -> Result<(), Error> {
        let Some(profile) = profile else { return Ok(()) };
        self.allow.extend(profile.hosts.iter().cloned());
        for name in profile.variables.iter().chain(&profile.files) {
            if let Some(value) = around.variables.get(name) {
                self.variables.entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
        let arguments = self.arguments.clone();
        let files = profile.files.iter().filter_map(|name| Some((name, PathBuf::from(self.variables.get(name)?))));
        let files = files.filter(|(_, file)| file.is_absolute());
        let behind = profile.written(&arguments).into_iter();
        let behind = behind.map(|(flag, file)| (flag, around.absolute(Path::new(file))));
        let folders = files.map(|(name, file)| (name.as_str(), file)).chain(behind);
        let folders =
            folders.filter_map(|(name, file)| Some((name.to_owned(), file.parent()?.to_owned(), Access::Write)));
        let named = profile.named(&arguments).into_iter();
        let named = named.map(|(path, access)| (String::new(), around.absolute(Path::new(path)), access));
        for (variable, path, access) in folders.chain(named).collect::<Vec<_>>() {
            // Where a link leads counts, too.
            let harmless = |path: &Path| closed(path).is_none() && !around.around_home(path);
            let real = path.canonicalize().is_ok_and(|real| harmless(&real));
            if self.sees(&path) {
                continue;
            }
            if real && harmless(&path) {
                self.shown.push(Shown { path, access, why: Why::Profile });
            } else if !variable.is_empty() {
                self.hints.push(format!(
                    "the folder of the file in {variable} is not shown to the server; move the file to one of its own"
                ));
            }
        }
        for (name, value) in &profile.values {
            self.variables.entry(name.clone()).or_insert_with(|| value.clone());
        }
        Ok(())
    }

    fn show_needed(&mut self, found: &Found, around: &Surroundings) {
        let code = match &self.start {
            Start::Program(program) => self.script(program, around),
            Start::Package { .. } => None,
        };
        let needs = found.needs.iter().cloned().map(|path| (path, Why::Toolchain));
        for (path, why) in needs.chain(code.map(|path| (path, Why::Code))) {
            let readable = |shown: &Shown| shown.access == Access::Read && path.starts_with(&shown.path);
            let same = |shown: &Shown| shown.path == path;
            if !of_system(&path)
                && closed(&path).is_none()
                && !self.shown.iter().any(|shown| readable(shown) || same(shown))
            {
                self.shown.push(Shown { path, access: Access::Read, why });
            }
        }
    }

    /// The file that an interpreter is to run, with the project that it belongs to.
    fn script(&self, program: &Path, around: &Surroundings) -> Option<PathBuf> {
        let name = program.file_name()?.to_str()?;
        if !INTERPRETERS.iter().any(|known| name.starts_with(known)) {
            return None;
        }
        let argument = self.arguments.iter().find(|argument| !argument.starts_with('-'))?;
        let file = Some(around.absolute(Path::new(argument))).filter(|file| file.is_file())?;
        let marks = ["package.json", "pyproject.toml"];
        let project = |folder: &&Path| marks.iter().any(|mark| folder.join(mark).is_file());
        let inner = |folder: &&Path| !around.around_home(folder) && closed(folder).is_none();
        let project = file.ancestors().skip(1).take_while(inner).find(project);
        Some(project.map_or_else(|| file.clone(), Path::to_owned))
    }

    /// Checked early, so that a mistake is told before anything is installed.
    pub(crate) fn rules(&self) -> Result<Rules, Error> {
        Rules::parse(self.allow.iter().map(String::as_str), BareStar::Refused).map_err(Error::Rule)
    }

    /// The ports of this machine's own loopback that rules name.
    pub(crate) fn own_ports(&self) -> Vec<u16> {
        let target = |rule: &String| Target::parse(rule.rsplit(' ').next()?).ok();
        self.allow.iter().filter_map(target).filter(|to| own(&to.origin.host)).map(|to| to.origin.port).collect()
    }

    /// Whether it may make sockets with paths: by a flag, or because no folder is shown that could hold one of somebody else's.
    pub(crate) fn makes_sockets(&self) -> bool {
        self.unix_sockets || self.shown.iter().all(|shown| shown.path.is_file())
    }

    fn sees(&self, path: &Path) -> bool {
        of_system(path) || self.shown.iter().any(|shown| path.starts_with(&shown.path))
    }

    /// The same as outside, if there is such a folder inside: then relative paths mean the same.
    fn working_folder(&self, folder: &Path) -> PathBuf {
        let leads_there = self.shown.iter().any(|shown| shown.path.starts_with(folder) && shown.path != folder);
        let inside = self.shown.iter().any(|shown| folder.starts_with(&shown.path));
        if leads_there || inside { folder.to_owned() } else { HOME.into() }
    }

    /// `~` is another folder inside, and so is `.` where the server starts elsewhere: what is meant is written out.
    fn settle_arguments(&mut self, around: &Surroundings) {
        let moved = self.folder != around.folder;
        for at in 0..self.arguments.len() {
            let argument = &self.arguments[at];
            let path = around.absolute(Path::new(argument));
            let relative = moved && (argument.starts_with("./") || argument.starts_with("../")) && path.exists();
            if (argument.starts_with("~/") || relative) && self.sees(&path) {
                self.arguments[at] = path.to_string_lossy().into_owned();
            }
        }
    }

    /// Installations that a repository leads to, and that the person has not shown.
    fn hint_withheld(&mut self, found: &Found) {
        for folder in found.withheld.iter().map(|folder| folder.display()) {
            self.hints.push(format!(
                "`{folder}` is not visible to the server: a link or file of the project leads there, and it is no usual place of \
                 installations; if all of it may be read, add `--ro {folder}` before `--`"
            ));
        }
    }

    /// The script that is shown without the folder around it.
    pub(crate) fn lone_script(&self) -> Option<&Path> {
        let alone = |shown: &&Shown| shown.why == Why::Code && shown.path.is_file();
        let script = self.shown.iter().find(alone)?.path.as_path();
        script.parent().filter(|folder| !self.sees(folder)).map(|_| script)
    }

    /// Arguments and variables that name what cannot be reached. What is in a variable is not told.
    fn hint_addresses(&mut self) {
        let value = |argument: &str| match argument.split_once('=').filter(|(flag, _)| flag.starts_with('-')) {
            Some((_, value)) => value.to_owned(),
            None => argument.to_owned(),
        };
        let proxy = format!(":{PROXY_PORT}");
        let variables = self.variables.iter().filter(|(_, value)| !value.ends_with(&proxy));
        let named = variables.map(|(name, value)| (format!("the address in {name}"), value.clone()));
        let arguments =
            self.arguments.iter().map(|argument| ("an address in the arguments".to_owned(), value(argument)));
        let told = arguments.chain(named);
        let told = told.filter_map(|(what, text)| Some(format!("{what} {}", self.unreachable(&text)?)));
        let told: Vec<String> = told.collect();
        self.hints.extend(told);
    }

    /// Why an address cannot be reached as things are, and what would help.
    fn unreachable(&self, text: &str) -> Option<String> {
        let (scheme, rest) = text.split_once("://")?;
        if NOT_HTTP.contains(&scheme) {
            let place = rest.split(['/', '?']).next()?.rsplit('@').next()?;
            let (host, port) = place.rsplit_once(':').unwrap_or((place, "PORT"));
            let open = self.tcp.iter().any(|open| open.host == host);
            return (!open).then(|| {
                format!("speaks `{scheme}`, which goes through no proxy; add `--tcp {host}:{port}` before `--`")
            });
        }
        let origin = Target::parse(text).ok()?.origin;
        let closed = own(&origin.host) && !self.own_ports().contains(&origin.port);
        closed.then(|| {
            format!("is on this machine, and the jail has a loopback of its own; add `--allow {origin}` before `--`")
        })
    }

    /// Arguments that name what is there and cannot be seen.
    fn hint(&mut self, around: &Surroundings) {
        let value = |argument: &String| match argument.split_once('=').filter(|(flag, _)| flag.starts_with('-')) {
            Some((_, value)) => value.to_owned(),
            None => argument.clone(),
        };
        for argument in self.arguments.iter().map(value).collect::<Vec<_>>() {
            let path_like = argument.starts_with(['.', '/', '~']) || argument.contains('/');
            let path = around.absolute(Path::new(&argument));
            if !path_like || argument.contains("://") || self.sees(&path) {
                continue;
            }
            if !path.exists() {
                let harmless = |folder: &&Path| closed(folder).is_none() && !around.around_home(folder);
                let folder = path.parent().filter(|folder| folder.is_dir()).filter(harmless);
                if let Some(folder) = folder.filter(|_| argument.starts_with(['.', '/', '~'])) {
                    self.hints.push(format!(
                        "`{argument}` is not there; what the server writes to it is gone at its end, unless you add \
                         `--rw {}` before `--`",
                        folder.display()
                    ));
                }
                continue;
            }
            let told = match closed(&path) {
                Some(why) => format!("`{argument}` is not visible to the server: {why}"),
                None => format!(
                    "`{argument}` is not visible to the server; add `--ro {argument}` or `--rw {argument}` before `--`"
                ),
            };
            self.hints.push(told);
        }
    }
}

/// What is named as URLs are and is no HTTP: the proxy does not help.
const NOT_HTTP: [&str; 13] = [
    "amqp",
    "amqps",
    "bolt",
    "clickhouse",
    "mariadb",
    "mongodb",
    "mongodb+srv",
    "mysql",
    "neo4j",
    "postgres",
    "postgresql",
    "redis",
    "rediss",
];

/// Whether it means the machine itself.
fn own(host: &Host) -> bool {
    match host {
        Host::Name(name) => name == "localhost",
        Host::Address(address) => address.is_loopback(),
    }
}

/// Why something that is neither a file nor a folder cannot be shown, and what to do instead.
fn no_file(path: &Path, kind: FileType) -> Option<String> {
    let folder = path.parent().unwrap_or(Path::new("/")).display();
    if kind.is_file() || kind.is_dir() {
        return None;
    }
    Some(match kind.is_socket() {
        true if shields_sockets() => {
            "it is a socket, and this kernel keeps sockets of other programs from every jail; if the \
                                      program has a port, add `--tcp HOST:PORT` before `--`"
                .to_owned()
        }
        true => format!(
            "it is a socket, which leads to a program outside; `--ro {folder} --unix-sockets` before `--` shows its folder and lets \
             the server connect"
        ),
        false => "it is neither a file nor a folder".to_owned(),
    })
}

/// Why what a link leads to cannot be shown: with it came the processes and devices of this machine.
fn closed_behind(real: &Path) -> Option<&'static str> {
    let closed = CLOSED[..3].iter().any(|own| real.starts_with(own)) || real == Path::new("/");
    closed.then_some("it is, or leads to, the processes and devices of this machine; name the folders that are needed")
}

/// Why this path of the host cannot be shown.
fn closed(path: &Path) -> Option<&'static str> {
    if CLOSED.iter().any(|own| path.starts_with(own)) {
        return Some("the jail has its own");
    }
    let around = OWN.iter().any(|own| Path::new(own).starts_with(path));
    around.then_some("the jail has its own there; name the folders in it that are needed")
}

#[cfg(test)]
mod tests;
