//! The data limit and the size it counts.

use std::fs;

use jail::limits::{data_in_use, set_limit_data};
use jail::process::{self, Fork, fork_with_pidfd};
use jail::seccomp::{Filter, PolicyName};

use crate::compartment::{MIB, ask, say};

/// The measured size is the kernel's own figure, in this process and in a forked one.
pub fn the_size_in_use_is_what_the_kernel_counts() {
    let check = || {
        let block = vec![1_u8; 30 << 20];
        let measured = data_in_use().expect("the size in use");
        assert_eq!(measured, counted(), "with a block of {} bytes", block.len());
        drop(block);
        assert_eq!(data_in_use().expect("the size in use"), counted());
    };
    check();
    let Fork::Parent(child) = fork_with_pidfd().expect("a child") else {
        check();
        process::exit_now(0)
    };
    assert_eq!(process::wait(child.pid).expect("the child").code, Some(0));
}

/// As a deployment zygote does: measure what the engine needs, allow so much more, and never again more than that.
pub fn a_zygote_limits_itself_to_what_it_uses_and_some() {
    let said = ask(None, |_| {
        let zygote = Filter::load(PolicyName::IsolateZygote, false).expect("the zygote's policy");
        zygote.install().expect("the zygote's filter");
        let Fork::Parent(child) = fork_with_pidfd().expect("a child") else {
            let before = data_in_use().expect("the size in use");
            set_limit_data(before + MIB).expect("a limit");
            assert!(map(2 * MIB).is_none(), "twice the allowance fits");
            assert!(map(MIB / 2).is_some(), "half of the allowance does not fit");
            assert_eq!(data_in_use().expect("the size in use"), before + MIB / 2);
            set_limit_data(before + 64 * MIB).expect("a hard limit that is lower stays");
            assert!(map(2 * MIB).is_none(), "the limit was raised");
            assert!(map(MIB / 2).is_some(), "the rest of the allowance does not fit");
            assert!(map(4096).is_none(), "more than the allowance fits");
            data_in_use().expect_err("no page is left to measure with");
            process::exit_now(0)
        };
        say(&format!("{:?}", process::wait(child.pid).expect("the child").code));
    });
    assert_eq!(said, "Some(0)");
}

fn map(bytes: u64) -> Option<()> {
    // SAFETY: a fresh anonymous mapping overlaps nothing; it is leaked.
    let address = unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        libc::mmap(std::ptr::null_mut(), bytes as usize, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
    };
    (address != libc::MAP_FAILED).then_some(())
}

fn counted() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmData:")).expect("VmData");
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kib * 1024
}
