//! Landlock: a second, independent "no" to files, TCP and signals, should a descriptor or a mount slip through.

use std::path::Path;

use ::landlock::{
    ABI, Access, AccessFs, AccessNet, LandlockStatus, PathBeneath, PathFd, RestrictionStatus, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};

use crate::error::Error;

/// The newest interface whose rights are asked for. An older kernel enforces the part it knows, and its number is
/// what [`deny_all`] returns.
const NEWEST: ABI = ABI::V9;

/// The interface version of this kernel; 0 when it has none.
pub(crate) fn version() -> u32 {
    const ASK_FOR_VERSION: libc::c_long = 1;
    let nothing = std::ptr::null::<libc::c_void>();
    // SAFETY: with this flag the kernel wants no pointer and no length, and only tells a number.
    let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, nothing, 0usize, ASK_FOR_VERSION) };
    version.try_into().unwrap_or(0)
}

/// What a program may do with a file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    Read,
    Run,
    Write,
    WriteAndRun,
    /// Reading from a device and writing to it, and no more.
    Device,
}

/// What landlock says to TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tcp {
    Denied,
    /// There is a network namespace around, with nothing in it.
    Anywhere,
}

/// Denies everything landlock can deny but these uses of these places. Returns the same as [`deny_all`].
pub(crate) fn allow_only(places: &[(&Path, Use)], tcp: Tcp) -> Result<u32, Error> {
    enforced(restrict(places, tcp).map_err(Error::Landlock)?)
}

/// Denies everything landlock can deny. Returns the interface version in force, 0 when this kernel has none.
pub(crate) fn deny_all() -> Result<u32, Error> {
    enforced(restrict(&[], Tcp::Denied).map_err(Error::Landlock)?)
}

fn enforced(status: RestrictionStatus) -> Result<u32, Error> {
    match (status.landlock, status.ruleset) {
        (LandlockStatus::Available { .. }, RulesetStatus::NotEnforced) => Err(Error::LandlockNotEnforced),
        (LandlockStatus::Available { effective_abi, .. }, _) => Ok(effective_abi as u32),
        (LandlockStatus::NotEnabled | LandlockStatus::NotImplemented, _) => Ok(0),
    }
}

fn restrict(places: &[(&Path, Use)], tcp: Tcp) -> Result<RestrictionStatus, RulesetError> {
    let mut ruleset = Ruleset::default().handle_access(AccessFs::from_all(NEWEST))?;
    if tcp == Tcp::Denied {
        ruleset = ruleset.handle_access(AccessNet::from_all(NEWEST))?;
    }
    let mut ruleset = ruleset.scope(Scope::from_all(NEWEST))?.create()?;
    for (path, used) in places {
        // Sockets with a path that somebody outside made are not for programs in a jail, wherever they lie.
        let all = AccessFs::from_all(NEWEST) & !AccessFs::ResolveUnix;
        let rights = match used {
            Use::Read => AccessFs::ReadFile | AccessFs::ReadDir,
            Use::Run => AccessFs::ReadFile | AccessFs::ReadDir | AccessFs::Execute,
            Use::Write => all & !AccessFs::Execute,
            Use::WriteAndRun => all,
            Use::Device => AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate,
        };
        // A place that cannot be opened is one that nothing is allowed on. On a file the rights of folders fall away.
        if let Ok(place) = PathFd::new(path) {
            ruleset = ruleset.add_rule(PathBeneath::new(place, rights))?;
        }
    }
    ruleset.restrict_self()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{process, trial};
    use std::fs::File;

    #[test]
    fn only_what_is_allowed_can_be_opened() {
        let itself = std::env::current_exe().expect("this program");
        let found = trial::attempt(|| {
            process::set_no_new_privs()?;
            let abi = allow_only(&[(&itself, Use::Read)], Tcp::Denied)?;
            Ok(format!("{} {}", abi == 0 || File::open("/etc/passwd").is_err(), File::open(&itself).is_ok()))
        });
        assert_eq!(found.expect("a child"), Ok("true true".to_owned()));
    }
}
