//! A person's surroundings in a folder of the test, gone with it.

use install::testing::Folder;
use install::{Error, HOME, Installed, Order, PACKAGE, Package, Surroundings, TMP, ground, host, install, toolchains};
use jail::program::{Bounds, Child, Tree};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub struct Place {
    folder: Folder,
    pub around: Surroundings,
}

impl Place {
    /// With this machine's programs and settings, but a home and a cache of its own.
    pub fn new(name: &str) -> Place {
        let folder = Folder::new(name);
        let mut around = Surroundings::here().expect("surroundings");
        around.cache = folder.path().join("cache");
        Place { folder, around }
    }

    /// Whose home is the folder's, and whose settings are these.
    pub fn with(name: &str, settings: &[(&str, &str)]) -> Place {
        let mut place = Place::new(name);
        place.around.home = place.path().join("home");
        let home = place.around.home.to_string_lossy().into_owned();
        let all = [("HOME", home.as_str()), ("A_SECRET", "a secret value")];
        let all = all.iter().chain(settings).map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        place.around.variables.extend(all);
        place
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn install(&self, package: &str, scripts: bool) -> Result<Installed, Error> {
        let package = Package::parse(package)?;
        let order = Order::new(&package, &self.around, &|_| {})?;
        let order = Order { scripts, refresh: true, ..order };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(install(&order))
    }

    /// Starts what is installed as a host of deployments would: by names, in the folder.
    pub fn start(&self, installed: &Installed) -> Child {
        let tools = toolchains(&["node", "python3"], &self.around);
        let mut mounts = ground(16 << 20, 16 << 20, false);
        mounts.push(host(PACKAGE, &installed.folder));
        mounts.extend(tools.iter().map(|folder| host(folder, folder)));
        let (name, arguments) = installed.command.split_first().expect("a command");
        let own = [PathBuf::from(PACKAGE)].into_iter().chain(tools.iter().map(|folder| folder.join("bin")));
        let folders = own.chain(["/usr/local/bin".into(), "/usr/bin".into()]);
        let program = match name.contains('/') {
            true => Path::new(PACKAGE).join(name),
            false => folders.map(|folder| folder.join(name)).find(|path| path.is_file()).expect("an interpreter"),
        };
        let memory = 1 << 30;
        let bounds = Bounds {
            processes: 100,
            memory_bytes: memory,
            cpu_percent: 200,
            cpu_seconds: 60,
            data_bytes: memory * 4,
            file_bytes: 1 << 20,
            open_files: 1024,
        };
        let tree = Tree { mounts, bounds, reads_as: None, folder: PACKAGE.into(), proxy: None, unix_sockets: true };
        let mut variables = BTreeMap::from([("HOME", HOME), ("TMPDIR", TMP), ("PATH", "/usr/bin:/bin")]);
        variables.extend(installed.environment.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let groups = install::groups();
        let program = program.to_str().expect("text");
        let variables: Vec<_> = variables.into_iter().collect();
        tree.spawn(groups.as_ref(), program, &arguments, &variables).expect("a jail")
    }
}
