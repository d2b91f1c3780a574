use super::*;
use crate::seccomp::PolicyName;

fn all() -> impl Iterator<Item = (&'static str, Vec<Rule>)> {
    PolicyName::ALL.map(PolicyName::as_str).into_iter().map(|name| (name, rules(name).expect(name)))
}

fn refusal(text: &str) -> String {
    parse(text).expect_err("refused").to_string()
}

#[test]
fn every_policy_parses_and_compiles_in_both_modes() {
    for (name, rules) in all() {
        for mode in [Mode::Jit, Mode::Jitless] {
            let of_mode: Vec<Rule> = rules.iter().filter(|rule| rule.only.is_none_or(|m| m == mode)).cloned().collect();
            let program = compile(&of_mode).expect(name);
            // Ours are installed by every fork. Those for programs of others are installed once.
            let most = if name.starts_with("tree") { 2000 } else { 400 };
            assert!(program.len() > of_mode.len() && program.len() < most, "{name}: {}", program.len());
        }
    }
}

/// A rule that another rule of the same policy makes pointless is a rule nobody needs.
#[test]
fn no_rule_is_covered_by_another() {
    for (name, rules) in all() {
        for (index, rule) in rules.iter().enumerate() {
            for (other_index, other) in rules.iter().enumerate() {
                let covered = index != other_index && covers(other, rule);
                assert!(!covered, "{name}: {rule:?} is covered by {other:?}");
            }
        }
    }
}

/// Filters add up, so a rule that only the child has would never allow anything.
#[test]
fn a_zygote_may_do_whatever_its_children_may() {
    let zygote = rules("isolate-zygote").expect("the zygote's policy");
    for rule in rules("isolate-call").expect("the child's policy") {
        assert!(zygote.iter().any(|other| covers(other, &rule)), "{rule:?}");
    }
}

#[test]
fn a_child_and_a_zygote_read_and_write_their_one_descriptor() {
    for policy in ["isolate-call", "isolate-zygote"] {
        let rules = rules(policy).expect(policy);
        for syscall in ["read", "write"] {
            let own: Vec<&Rule> = rules.iter().filter(|rule| rule.syscall == syscall).collect();
            let [Rule { arguments, .. }] = own[..] else { panic!("{policy}: {own:?}") };
            let fd = Argument { index: 0, wide: false, mask: u32::MAX.into(), value: crate::CHILD_FD as u64 };
            assert_eq!(arguments, &[fd]);
        }
    }
}

#[test]
fn the_zygote_forks_with_exactly_the_flags_of_our_fork() {
    let rules = rules("isolate-zygote").expect("the zygote's policy");
    let clones: Vec<&Rule> = rules.iter().filter(|rule| rule.syscall.starts_with("clone")).collect();
    let [clone] = clones[..] else { panic!("{clones:?}") };
    let flags = &clone.arguments[0];
    assert_eq!((flags.mask, flags.value), (u64::MAX, crate::process::FORK_FLAGS));
}

/// Every name that the table of symbols knows occurs in some policy.
#[test]
fn no_symbol_is_known_in_vain() {
    let policies: String = FILES.iter().map(|(_, text)| *text).collect();
    let source = include_str!("../symbols.rs");
    let list = |start: &str| source.split_once(start).expect("the list").1.split_once('}').expect("its end").0;
    for name in list("\ncalls! {").split_whitespace() {
        let name = name.strip_prefix("SYS_").expect("a system call");
        assert!(symbols::syscall(name).is_some() && policies.contains(&format!("\"{name}\"")), "{name}");
    }
    for name in list("\nconstants! {").split_whitespace() {
        assert!(symbols::constant(name).is_some(), "{name}");
        let used = policies.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name);
        assert!(used, "{name}");
    }
}

#[test]
fn what_a_policy_does_not_say_clearly_is_refused() {
    let unknown_key = refusal("[[rule]]\nsyscall = \"brk\"\nreason = \"r\"\ncolour = \"red\"");
    assert_eq!(unknown_key, "the file does not parse");
    assert_eq!(refusal("default = \"allow\"\nrule = []"), "the file does not parse");
    assert_eq!(refusal("[[rule]]\nsyscall = \"brk\""), "the file does not parse");
    assert_eq!(refusal("[[rule]]\nsyscall = \"brk\"\nonly = \"sometimes\"\nreason = \"r\""), "the file does not parse");
    assert_eq!(refusal("[[rule]]\nsyscall = \"brk\"\nreason = \" \""), "the rule for `brk` has no reason");
    assert_eq!(refusal("[[rule]]\nsyscall = \"bark\"\nreason = \"r\""), "unknown system call `bark`");
    let with =
        |argument: &str| refusal(&format!("[[rule]]\nsyscall = \"brk\"\nreason = \"r\"\nargs = [{{ {argument} }}]"));
    assert_eq!(with("index = 0, bits = 32, equals = \"PROT_EXCE\""), "unknown constant `PROT_EXCE`");
    let impossible = "the rule for `brk` has an argument condition that cannot hold";
    assert_eq!(with("index = 6, bits = 32, equals = 0"), impossible);
    assert_eq!(with("index = 0, bits = 16, equals = 0"), impossible);
    assert_eq!(with("index = 0, bits = 32, equals = 1, ignoring = 1"), impossible);
    assert_eq!(with("index = 0, bits = 32, equals = 4294967296"), impossible);
    assert_eq!(with("index = 0, bits = 32, equals = 2, looking_at = 1"), impossible);
    assert_eq!(with("index = 0, bits = 32, equals = 0, looking_at = 1, ignoring = 2"), impossible);
    assert_eq!(with("index = 0, bits = 32"), "the file does not parse");
}

/// To the compiler a system call without conditions is allowed; one whose rules are all for the other mode is not.
#[test]
fn a_call_without_rules_in_this_mode_is_not_allowed() {
    let rules = rules("isolate-call").expect("the child's policy");
    let with_jit = rules.iter().filter(|rule| rule.only == Some(Mode::Jit)).cloned().collect::<Vec<_>>();
    assert!(!with_jit.is_empty());
    let program = compile(&rules.into_iter().filter(|rule| rule.only.is_none()).collect::<Vec<_>>()).expect("compiled");
    assert!(program.iter().all(|instruction| u64::from(instruction.k) != libc::SYS_mmap as u64));
}

/// Whatever satisfies `narrow` satisfies `wide`.
fn covers(wide: &Rule, narrow: &Rule) -> bool {
    let implied = |condition: &Argument| {
        narrow.arguments.iter().any(|given| {
            given.index == condition.index
                && condition.mask & !given.mask == 0
                && given.value & condition.mask == condition.value
        })
    };
    wide.number == narrow.number
        && wide.only.is_none_or(|mode| narrow.only == Some(mode))
        && wide.arguments.iter().all(implied)
}

/// What the kernel makes of them is tried with real processes (`tests/jail/attacks.rs`).
#[test]
fn the_short_program_names_the_same_calls() {
    for (name, rules) in all() {
        let names = |program: &[seccompiler::sock_filter]| -> HashSet<u32> {
            let equal = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
            program.iter().filter(|instruction| instruction.code == equal).map(|instruction| instruction.k).collect()
        };
        let (whole, short) = (compile(&rules).expect(name), compile_short(&rules).expect(name));
        assert!(short.len() < whole.len(), "{name}: {} and {}", short.len(), whole.len());
        for rule in &rules {
            assert!(names(&short).contains(&(rule.number as u32)), "{name}: {}", rule.syscall);
        }
    }
}
