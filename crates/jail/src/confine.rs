//! Takes everything away from a process that it does not need, once and for good.

use crate::error::Error;
use crate::namespaces::Plan;
use crate::process::{set_dumpable, set_no_new_privs};
use crate::sys::check;
use crate::{capabilities, landlock, limits, root};

/// Queued signals: timers and the like; no tool needs any.
pub(crate) const PENDING_SIGNALS: u64 = 64;

/// Hard limits for the process and each of its descendants by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Confinement {
    /// All mapped memory, reserved or used, in bytes.
    pub address_space: u64,
    /// Private writable memory in bytes: what bounds a heap.
    pub data: u64,
    /// CPU seconds over the whole life; the kernel kills at this figure.
    pub cpu_seconds: u64,
    /// One more than the highest descriptor number.
    pub open_files: u64,
    /// Processes of this user: in this user namespace, or on the whole host when there is none.
    pub processes: u64,
    /// Stack of the main thread, in bytes.
    pub stack: u64,
}

/// What is in force after [`confine`], as far as it can differ between hosts. All else is enforced or an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Enforced {
    /// The landlock interface in force; 0 means that the kernel has none, and the caller decides whether to go on.
    pub landlock_abi: u32,
    /// Whether the process lives in a user namespace of its own.
    pub user_namespace: bool,
    /// The uid as the process sees it; never 0.
    pub uid: u32,
}

/// Confines the process that [`crate::namespaces::fork_init`] made. After an error the process must exit.
///
/// System call filters come last and by themselves, see [`crate::seccomp`].
pub fn confine(plan: &Plan, confinement: &Confinement) -> Result<Enforced, Error> {
    root::replace_with_empty()?;
    limit(confinement)?;
    forbid_implied_execution()?;
    capabilities::drop_all()?;
    set_no_new_privs()?;
    expect("no_new_privs", libc::PR_GET_NO_NEW_PRIVS, 1)?;
    set_dumpable(false)?;
    expect("dumpable", libc::PR_GET_DUMPABLE, 0)?;
    let landlock_abi = landlock::deny_all()?;
    expect_parent_death_signal()?;
    Ok(Enforced { landlock_abi, user_namespace: plan.user_namespace, uid: expect_identity(plan)? })
}

fn limit(confinement: &Confinement) -> Result<(), Error> {
    let limits = [
        ("RLIMIT_AS", libc::RLIMIT_AS, confinement.address_space),
        ("RLIMIT_DATA", libc::RLIMIT_DATA, confinement.data),
        ("RLIMIT_CPU", libc::RLIMIT_CPU, confinement.cpu_seconds),
        ("RLIMIT_NOFILE", libc::RLIMIT_NOFILE, confinement.open_files),
        ("RLIMIT_NPROC", libc::RLIMIT_NPROC, confinement.processes),
        ("RLIMIT_STACK", libc::RLIMIT_STACK, confinement.stack),
        ("RLIMIT_SIGPENDING", libc::RLIMIT_SIGPENDING, PENDING_SIGNALS),
        ("RLIMIT_FSIZE", libc::RLIMIT_FSIZE, 0),
        ("RLIMIT_CORE", libc::RLIMIT_CORE, 0),
        ("RLIMIT_MEMLOCK", libc::RLIMIT_MEMLOCK, 0),
        ("RLIMIT_MSGQUEUE", libc::RLIMIT_MSGQUEUE, 0),
        ("RLIMIT_NICE", libc::RLIMIT_NICE, 0),
        ("RLIMIT_RTPRIO", libc::RLIMIT_RTPRIO, 0),
    ];
    for (name, resource, value) in limits {
        limits::lower(name, resource, value)?;
    }
    Ok(())
}

/// With the personality READ_IMPLIES_EXEC every readable mapping is executable, whatever the filter says about
/// PROT_EXEC. It is inherited, so a host started under `setarch` would hand it down.
pub(crate) fn forbid_implied_execution() -> Result<(), Error> {
    const ASK: libc::c_ulong = 0xffff_ffff;
    let failed = |source| Error::Attribute { name: "personality", source };
    // SAFETY: takes a number only; this one changes nothing.
    let current = check(unsafe { libc::personality(ASK) }).map_err(failed)?;
    if current & libc::READ_IMPLIES_EXEC != 0 {
        let without = (current & !libc::READ_IMPLIES_EXEC) as libc::c_ulong;
        // SAFETY: takes a number only; existing mappings keep their protection.
        check(unsafe { libc::personality(without) }).map_err(failed)?;
    }
    Ok(())
}

/// Reads an attribute back: one that silently did not take is an error like one that failed.
pub(crate) fn expect(name: &'static str, option: libc::c_int, wanted: i32) -> Result<(), Error> {
    // SAFETY: the options used return a number and take none.
    let found = check(unsafe {
        libc::prctl(option, 0 as libc::c_ulong, 0 as libc::c_ulong, 0 as libc::c_ulong, 0 as libc::c_ulong)
    })
    .map_err(|source| Error::Attribute { name, source })?;
    agree(name, wanted, found)
}

/// A change of user clears the signal without a word, so look again when the last one is over.
pub(crate) fn expect_parent_death_signal() -> Result<(), Error> {
    let name = "parent-death signal";
    let mut found = 0;
    // SAFETY: the call writes one int, which `found` is.
    check(unsafe { libc::prctl(libc::PR_GET_PDEATHSIG, &raw mut found) })
        .map_err(|source| Error::Attribute { name, source })?;
    agree(name, libc::SIGKILL, found)
}

fn agree(name: &'static str, wanted: i32, found: i32) -> Result<(), Error> {
    if wanted == found { Ok(()) } else { Err(Error::AttributeLost { name, wanted, found }) }
}

/// All ids are the planned one, which is not root's.
pub(crate) fn expect_identity(plan: &Plan) -> Result<u32, Error> {
    let wanted = plan.inner_id()?;
    let mut ids = [0; 6];
    let [user, effective_user, saved_user, group, effective_group, saved_group] = &mut ids;
    // SAFETY: each call writes three ids, to six different places.
    unsafe {
        check(libc::getresuid(user, effective_user, saved_user))
            .and_then(|_| check(libc::getresgid(group, effective_group, saved_group)))
    }
    .map_err(|source| Error::Identity { uid: wanted, source })?;
    match ids.into_iter().find(|id| *id != wanted) {
        None => Ok(wanted),
        Some(found) => Err(Error::WrongIdentity { wanted, found }),
    }
}
