//! System call filters, made of the policies before the jail and installed inside.

use seccompiler::{BpfProgram, SeccompAction};
use std::collections::HashSet;

use crate::error::Error;
use crate::policy::{self, Mode};
use crate::sys::check_long;

/// The processes that have a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PolicyName {
    /// Runs module initialisation and forks children.
    IsolateZygote,
    /// Serves calls, one or several.
    IsolateCall,
    /// Any program of one process that reads files and talks over pipes ([`crate::program`]).
    Program,
    /// Any program with whatever it starts ([`crate::program::Tree`]).
    Tree,
    /// The same in a control group.
    TreeInGroup,
    /// A tree whose programs may make sockets that have paths.
    TreeUnix,
    /// The same in a control group.
    TreeUnixInGroup,
}

impl PolicyName {
    /// Every policy.
    pub const ALL: [PolicyName; 7] = [
        PolicyName::IsolateZygote,
        PolicyName::IsolateCall,
        PolicyName::Program,
        PolicyName::Tree,
        PolicyName::TreeInGroup,
        PolicyName::TreeUnix,
        PolicyName::TreeUnixInGroup,
    ];

    /// The name of its file.
    pub fn as_str(self) -> &'static str {
        match self {
            PolicyName::IsolateZygote => "isolate-zygote",
            PolicyName::IsolateCall => "isolate-call",
            PolicyName::Program => "program",
            PolicyName::Tree => "tree",
            PolicyName::TreeInGroup => "tree-in-group",
            PolicyName::TreeUnix => "tree-unix",
            PolicyName::TreeUnixInGroup => "tree-unix-in-group",
        }
    }
}

/// A compiled filter. Loading parses and allocates; installing is one system call.
#[derive(Debug, Clone)]
pub struct Filter {
    name: PolicyName,
    program: BpfProgram,
}

impl Filter {
    /// Compiles a policy, with the rules for compiled code or without.
    pub fn load(name: PolicyName, jit: bool) -> Result<Filter, Error> {
        Filter::compile(name, jit, None)
    }

    /// Compiles the policy of a process that is forked from one with the filter `beneath` and keeps that.
    ///
    /// The kernel asks all filters and takes the strictest answer. So where both policies say the same of a system call,
    /// this filter leaves its arguments to the one beneath. It is shorter for that, and every fork has to install it.
    pub fn load_on_top(name: PolicyName, beneath: PolicyName, jit: bool) -> Result<Filter, Error> {
        let (mut own, beneath) = (rules_for(name, jit)?, rules_for(beneath, jit)?);
        let of = |rules: &[policy::Rule], number| -> HashSet<policy::Rule> {
            rules.iter().filter(|rule| rule.number == number).cloned().collect()
        };
        let same: HashSet<i64> =
            own.iter().map(|rule| rule.number).filter(|number| of(&own, *number) == of(&beneath, *number)).collect();
        for rule in own.iter_mut().filter(|rule| same.contains(&rule.number)) {
            rule.arguments.clear();
        }
        Ok(Filter { name, program: policy::compile_short(&own).map_err(refused(name))? })
    }

    /// The filter without the rules for one system call: when a workload passes with it, nobody needs the rule.
    pub fn load_without(name: PolicyName, jit: bool, syscall: &str) -> Result<Filter, Error> {
        Filter::compile(name, jit, Some(syscall))
    }

    /// The system calls that a policy allows in some shape.
    pub fn syscalls(name: PolicyName) -> Result<Vec<String>, Error> {
        let mut names: Vec<String> = rules(name)?.into_iter().map(|rule| rule.syscall).collect();
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    fn compile(name: PolicyName, jit: bool, without: Option<&str>) -> Result<Filter, Error> {
        let mut rules = rules_for(name, jit)?;
        rules.retain(|rule| without != Some(rule.syscall.as_str()));
        let program = policy::compile_otherwise(&rules, otherwise(name)).map_err(refused(name))?;
        Ok(Filter { name, program })
    }

    /// Installs the filter on top of those already there: for good, on every thread and every descendant.
    /// Needs no_new_privs, which [`crate::confine::confine`] sets.
    pub fn install(&self) -> Result<(), Error> {
        let policy = self.name.as_str();
        let program = libc::sock_fprog {
            // The compiler refuses programs of more than 4096 instructions.
            len: self.program.len() as u16,
            filter: self.program.as_ptr().cast_mut().cast(),
        };
        // SAFETY: program describes a live slice of instructions of the kernel's layout, which the call only reads.
        let thread = check_long(unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER as libc::c_long,
                libc::SECCOMP_FILTER_FLAG_TSYNC as libc::c_long,
                &raw const program,
            )
        })
        .map_err(|source| Error::Filter { policy, source })?;
        if thread != 0 {
            return Err(Error::FilterThread { policy, thread });
        }
        Ok(())
    }

    /// Number of BPF instructions; never zero.
    #[expect(clippy::len_without_is_empty, reason = "a filter is never empty")]
    pub fn len(&self) -> usize {
        self.program.len()
    }
}

/// Our own processes never do what their policy does not say. Programs of others try what the kernel might have, and do
/// without when it says that it does not.
fn otherwise(name: PolicyName) -> SeccompAction {
    match name {
        PolicyName::IsolateZygote | PolicyName::IsolateCall => SeccompAction::KillProcess,
        _ => SeccompAction::Errno(libc::ENOSYS as u32),
    }
}

/// Those that hold in one mode.
fn rules_for(name: PolicyName, jit: bool) -> Result<Vec<policy::Rule>, Error> {
    let mode = if jit { Mode::Jit } else { Mode::Jitless };
    let mut rules = rules(name)?;
    rules.retain(|rule| rule.only.is_none_or(|only| only == mode));
    Ok(rules)
}

fn rules(name: PolicyName) -> Result<Vec<policy::Rule>, Error> {
    policy::rules(name.as_str()).map_err(refused(name))
}

fn refused(name: PolicyName) -> impl FnOnce(crate::error::PolicyError) -> Error {
    move |source| Error::Policy { policy: name.as_str().to_owned(), source }
}
