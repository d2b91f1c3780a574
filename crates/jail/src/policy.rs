//! Which system calls a process may make, as data: the files in `policies/`, one per process kind.

use std::collections::BTreeMap;
use std::collections::HashSet;

use seccompiler::{
    SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};
use serde::Deserialize;

use crate::error::PolicyError;
use crate::symbols;

/// Every policy file by the name that `extends` uses.
const FILES: [(&str, &str); 8] = [
    ("isolate-base", include_str!("../policies/isolate-base.toml")),
    ("isolate-call", include_str!("../policies/isolate-call.toml")),
    ("isolate-zygote", include_str!("../policies/isolate-zygote.toml")),
    ("program", include_str!("../policies/program.toml")),
    ("tree", include_str!("../policies/tree.toml")),
    ("tree-in-group", include_str!("../policies/tree-in-group.toml")),
    ("tree-unix", include_str!("../policies/tree-unix.toml")),
    ("tree-unix-in-group", include_str!("../policies/tree-unix-in-group.toml")),
];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    extends: Option<String>,
    #[serde(rename = "rule")]
    rules: Vec<RuleText>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleText {
    syscall: Calls,
    #[serde(default)]
    args: Vec<ArgumentText>,
    only: Option<Mode>,
    reason: String,
}

/// Several may share their conditions and their reason.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Calls {
    One(String),
    Several(Vec<String>),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ArgumentText {
    index: u8,
    bits: u8,
    equals: Value,
    ignoring: Option<Value>,
    looking_at: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Value {
    Number(u64),
    Names(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    Jit,
    Jitless,
}

/// One allowed shape of one system call.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Rule {
    pub(crate) syscall: String,
    pub(crate) number: i64,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) only: Option<Mode>,
}

/// `argument & mask == value`, where the mask also says how much of it the kernel looks at.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Argument {
    pub(crate) index: u8,
    pub(crate) wide: bool,
    pub(crate) mask: u64,
    pub(crate) value: u64,
}

/// All rules of a policy for both modes, those it extends first.
pub(crate) fn rules(policy: &str) -> Result<Vec<Rule>, PolicyError> {
    let text = FILES
        .iter()
        .find(|(name, _)| *name == policy)
        .map(|(_, text)| *text)
        .ok_or_else(|| PolicyError::UnknownBase(policy.to_owned()))?;
    let (extends, own) = parse(text)?;
    let mut all = match extends {
        Some(base) if base != policy => rules(&base)?,
        Some(base) => return Err(PolicyError::UnknownBase(base)),
        None => Vec::new(),
    };
    all.extend(own);
    let mut seen = HashSet::new();
    for rule in &all {
        if !seen.insert(rule) {
            return Err(PolicyError::Duplicate(rule.syscall.clone()));
        }
    }
    Ok(all)
}

/// One file by itself: the policy it extends, and its own rules.
pub(crate) fn parse(text: &str) -> Result<(Option<String>, Vec<Rule>), PolicyError> {
    let file: File = toml::from_str(text)?;
    let mut rules = Vec::with_capacity(file.rules.len());
    for text in &file.rules {
        let calls = match &text.syscall {
            Calls::One(call) => std::slice::from_ref(call),
            Calls::Several(calls) => calls,
        };
        for call in calls {
            rules.push(rule(call, text)?);
        }
    }
    Ok((file.extends, rules))
}

fn rule(syscall: &str, text: &RuleText) -> Result<Rule, PolicyError> {
    if text.reason.trim().is_empty() {
        return Err(PolicyError::NoReason(syscall.to_owned()));
    }
    let number = symbols::syscall(syscall).ok_or_else(|| PolicyError::UnknownSyscall(syscall.to_owned()))?;
    let arguments = text.args.iter().map(|argument| self::argument(syscall, argument)).collect::<Result<_, _>>()?;
    Ok(Rule { syscall: syscall.to_owned(), number, arguments, only: text.only })
}

fn argument(syscall: &str, text: &ArgumentText) -> Result<Argument, PolicyError> {
    let impossible = || PolicyError::Condition(syscall.to_owned());
    let whole = match text.bits {
        32 => u64::from(u32::MAX),
        64 => u64::MAX,
        _ => return Err(impossible()),
    };
    let value = number(&text.equals)?;
    let ignored = match (&text.ignoring, &text.looking_at) {
        (Some(_), Some(_)) => return Err(impossible()),
        (_, Some(bits)) => !number(bits)? & whole,
        (Some(bits), None) => number(bits)?,
        (None, None) => 0,
    };
    // A bit that is compared and ignored, or lies beyond the argument, is a slip of the pen.
    if text.index > 5 || value & ignored != 0 || (value | ignored) & !whole != 0 {
        return Err(impossible());
    }
    Ok(Argument { index: text.index, wide: text.bits == 64, mask: whole & !ignored, value })
}

fn number(value: &Value) -> Result<u64, PolicyError> {
    match value {
        Value::Number(number) => Ok(*number),
        Value::Names(names) => names.split('|').try_fold(0, |bits, name| {
            symbols::constant(name)
                .map(|constant| bits | constant)
                .ok_or_else(|| PolicyError::UnknownConstant(name.to_owned()))
        }),
    }
}

/// Whatever no rule allows kills the whole process, and so does a call of another architecture. The x32 calls are
/// calls of the same architecture with a high bit in their number, so no rule allows them.
pub(crate) fn compile(rules: &[Rule]) -> Result<seccompiler::BpfProgram, PolicyError> {
    compile_otherwise(rules, SeccompAction::KillProcess)
}

/// The same program, shorter: what is allowed whatever its arguments takes one instruction each and comes first.
/// The kernel translates a filter anew for every process that installs one.
pub(crate) fn compile_short(rules: &[Rule]) -> Result<seccompiler::BpfProgram, PolicyError> {
    let mut always: Vec<i64> = rules.iter().filter(|rule| rule.arguments.is_empty()).map(|rule| rule.number).collect();
    always.sort_unstable();
    always.dedup();
    let others: Vec<Rule> = rules.iter().filter(|rule| !always.contains(&rule.number)).cloned().collect();
    let rest = compile(&others)?;
    let instruction = |code: u32, jt: usize, jf: usize, k: u32| -> Option<seccompiler::sock_filter> {
        let (jt, jf) = (u8::try_from(jt).ok()?, u8::try_from(jf).ok()?);
        Some(seccompiler::sock_filter { code: u16::try_from(code).ok()?, jt, jf, k })
    };
    let short = || -> Option<seccompiler::BpfProgram> {
        let (load, equal) = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K);
        // Beyond the numbers is the one instruction that allows, and beyond that the rest, which asks everything itself.
        let count = always.len();
        let mut program = vec![
            instruction(load, 0, 0, std::mem::offset_of!(libc::seccomp_data, arch) as u32)?,
            instruction(equal, 0, count + 2, ARCHITECTURE)?,
            instruction(load, 0, 0, std::mem::offset_of!(libc::seccomp_data, nr) as u32)?,
        ];
        for (index, number) in always.iter().enumerate() {
            let last = usize::from(index + 1 == count);
            program.push(instruction(equal, count - 1 - index, last, u32::try_from(*number).ok()?)?);
        }
        program.push(instruction(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW)?);
        program.extend(rest.iter().cloned());
        Some(program)
    };
    // Without a single number, or with more than a jump reaches, nothing is gained.
    if always.is_empty() { compile(rules) } else { short().map_or_else(|| compile(rules), Ok) }
}

/// As the kernel names it to filters.
const ARCHITECTURE: u32 = if cfg!(target_arch = "x86_64") { 0xc000_003e } else { 0xc000_00b7 };

/// The same with another answer to what no rule allows.
pub(crate) fn compile_otherwise(
    rules: &[Rule],
    otherwise: SeccompAction,
) -> Result<seccompiler::BpfProgram, PolicyError> {
    let mut chains: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for rule in rules {
        let unconditional = rules.iter().any(|other| other.number == rule.number && other.arguments.is_empty());
        let chain = chains.entry(rule.number).or_default();
        // To the compiler an empty chain is "always", which only a rule without conditions may mean.
        if !unconditional {
            let conditions = rule.arguments.iter().map(condition);
            let conditions = conditions.collect::<Result<_, _>>()?;
            chain.push(SeccompRule::new(conditions)?);
        }
    }
    let filter = SeccompFilter::new(
        chains,
        otherwise,
        SeccompAction::Allow,
        TargetArch::try_from(std::env::consts::ARCH).map_err(PolicyError::Architecture)?,
    )?;
    Ok(filter.try_into()?)
}

fn condition(argument: &Argument) -> Result<SeccompCondition, seccompiler::BackendError> {
    let width = if argument.wide { SeccompCmpArgLen::Qword } else { SeccompCmpArgLen::Dword };
    SeccompCondition::new(argument.index, width, SeccompCmpOp::MaskedEq(argument.mask), argument.value)
}

#[cfg(test)]
mod tests;
