use std::io;
use std::path::PathBuf;

/// What could not be enforced, and why.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("cannot become uid `{uid}`")]
    Identity {
        uid: u32,
        #[source]
        source: io::Error,
    },
    #[error("all {count} uids for jails are in use; raise `jail.uids` in the configuration")]
    NoUser { count: u32 },
    #[error("jails cannot have uids of their own: {why}")]
    NoUsers { why: String },
    #[error("the plan would leave the process with root's identity")]
    RootPlan,
    #[error("the process has the uid or gid `{found}` and not `{wanted}`")]
    WrongIdentity { wanted: u32, found: u32 },
    #[error("cannot leave the host's session")]
    Session(#[source] io::Error),
    #[error("cannot enter a new {name} namespace")]
    Namespace {
        name: &'static str,
        #[source]
        source: io::Error,
    },
    #[error("cannot map identities through `{file}`")]
    IdentityMap {
        file: &'static str,
        #[source]
        source: io::Error,
    },
    #[error("cannot replace the file system: {step} failed")]
    Mount {
        step: &'static str,
        #[source]
        source: io::Error,
    },
    #[error("cannot place `/{}` in the jail", target.display())]
    Place {
        target: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot limit {name} to `{value}`")]
    Limit {
        name: &'static str,
        value: u64,
        #[source]
        source: io::Error,
    },
    #[error("cannot measure the data segment: {step} failed")]
    Measure {
        step: &'static str,
        #[source]
        source: io::Error,
    },
    #[error("cannot make or seal the file for a zygote's memory")]
    Image(#[source] io::Error),
    #[error("the kernel does not enforce RLIMIT_DATA")]
    DataLimitIgnored,
    #[error("cannot drop capabilities: {step} failed")]
    Capabilities {
        step: &'static str,
        #[source]
        source: io::Error,
    },
    #[error("cannot set the process attribute {name}")]
    Attribute {
        name: &'static str,
        #[source]
        source: io::Error,
    },
    #[error("the process attribute {name} is `{found}` after it was set to `{wanted}`")]
    AttributeLost { name: &'static str, wanted: i32, found: i32 },
    #[error("cannot restrict the process with landlock")]
    Landlock(#[source] ::landlock::RulesetError),
    #[error("the kernel has landlock but did not enforce it")]
    LandlockNotEnforced,
    #[error("the system call policy `{policy}` is not valid")]
    Policy {
        policy: String,
        #[source]
        source: PolicyError,
    },
    #[error("cannot install the system call filter `{policy}`")]
    Filter {
        policy: &'static str,
        #[source]
        source: io::Error,
    },
    #[error("cannot install the system call filter `{policy}`: thread `{thread}` cannot take it")]
    FilterThread { policy: &'static str, thread: i64 },
    #[error("cannot set up the network of the jail: {step} failed")]
    Network {
        step: &'static str,
        #[source]
        source: io::Error,
    },
    #[error("cannot hand a descriptor out of the jail")]
    HandOut(#[source] io::Error),
    #[error("cannot enter the folder in which the program starts")]
    Folder(#[source] io::Error),
    #[error("cannot read `{file}`")]
    Itself {
        file: &'static str,
        #[source]
        source: io::Error,
    },
    #[error("cannot start the program")]
    Exec(#[source] io::Error),
    #[error("cannot fork")]
    Fork(#[source] io::Error),
    #[error("an attempt in a child process gave no answer")]
    Trial(#[source] io::Error),
    #[error("cannot wait for process `{pid}`")]
    Wait {
        pid: i32,
        #[source]
        source: io::Error,
    },
    #[error("cannot set signal `{signal}` to its disposition")]
    Signal {
        signal: i32,
        #[source]
        source: io::Error,
    },
    #[error("cannot set the CPU timer")]
    CpuTimer(#[source] io::Error),
    #[error("cannot read the CPU clock of process `{pid}`")]
    CpuClock {
        pid: i32,
        #[source]
        source: io::Error,
    },
    #[error("cannot keep descriptor `{fd}` as `{target}`")]
    Descriptor {
        fd: i32,
        target: i32,
        #[source]
        source: io::Error,
    },
    #[error("cannot close the descriptors `{first}` to `{last}`")]
    CloseRange {
        first: u32,
        last: u32,
        #[source]
        source: io::Error,
    },
    #[error("cannot make a socket pair")]
    SocketPair(#[source] io::Error),
    #[error("cannot use the process descriptor")]
    PidFd(#[source] io::Error),
    #[error("descriptor `{fd}` is not a process descriptor")]
    NotAPidFd { fd: i32 },
    #[error("the process of descriptor `{fd}` is gone")]
    ProcessGone { fd: i32 },
    #[error("`{name}` is not a name for a control group")]
    GroupName { name: String },
    #[error("cannot {action} the control group file `{path}`")]
    Group {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the control group `{path}` still holds processes")]
    GroupBusy { path: PathBuf },
    #[error("cannot limit CPU: the controller `cpu` is not available to control groups here")]
    GroupCpu,
}

/// Why a policy file was refused. Policies are compiled in, so a tenant never sees one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    #[error("the file does not parse")]
    Parse(#[from] toml::de::Error),
    #[error("unknown policy `{0}` in `extends`")]
    UnknownBase(String),
    #[error("unknown system call `{0}`")]
    UnknownSyscall(String),
    #[error("unknown constant `{0}`")]
    UnknownConstant(String),
    #[error("the rule for `{0}` has no reason")]
    NoReason(String),
    #[error("the rule for `{0}` has an argument condition that cannot hold")]
    Condition(String),
    #[error("the rule for `{0}` occurs twice")]
    Duplicate(String),
    #[error("no filter can be made for this processor architecture")]
    Architecture(#[source] seccompiler::BackendError),
    #[error("the rules do not compile")]
    Compile(#[from] seccompiler::BackendError),
}
