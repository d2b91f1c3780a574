//! A process that forks others: the base zygote, and one zygote per deployment.

use crate::account::memory_since;
use crate::channel::{self, Channel, Gone};
use crate::compartment;
use crate::realm::Engine;
use crate::server;
use isolate_engine::image::Image;
use isolate_wire::{Ended, FailCode, Failed, Fork, Kind, Load, Role, Used};
use jail::process::{self, Exit, Memory};
use jail::seccomp::Filter;
use std::collections::HashMap;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// What a forked compartment locks itself in with; made before the jail, when there still were files to read.
pub struct Sealing {
    pub child: Filter,
    /// What of the base zygote was frozen, if it was.
    pub image: Option<Image>,
    /// Of the base zygote: what memory limits are counted from.
    pub data_in_use: u64,
}

/// Serves the host's commands until it goes away. Returns the exit code of whatever this process became:
/// each fork leaves the loop as a process of its own.
pub fn run(mut engine: Engine, mut channel: Channel, sealing: Sealing) -> i32 {
    let mut ended = HashMap::new();
    let Ok(mut fresh) = memory_of_fresh(&mut engine, &sealing) else { return 1 };
    loop {
        let Ok((frame, fd)) = channel.receive_with_fd() else { return 0 };
        collect(&mut ended);
        let done = match (frame.kind, fd) {
            (Kind::Fork, Some(fd)) => match frame.meta::<Fork>() {
                Ok(fork) => match split(fd) {
                    Ok(Split::Parent) => Ok(()),
                    Ok(Split::Child) => {
                        channel = Channel::new();
                        ended = HashMap::new();
                        if become_new(&mut engine, &fork, &sealing).is_err() {
                            return 1;
                        }
                        match fork.role {
                            Role::Zygote => memory_of_fresh(&mut engine, &sealing).map(|memory| fresh = memory),
                            Role::Call | Role::Spare => compartment::serve_one(engine, channel, &fork, &sealing, fresh),
                            Role::Serve => compartment::serve_many(engine, channel, &sealing),
                        }
                    }
                    Err(gone) => Err(gone),
                },
                Err(_) => Err(Gone),
            },
            (Kind::Freeze, Some(file)) => freeze(&sealing, file, &frame.body),
            (Kind::Rehearse, None) => rehearse(&mut engine, &sealing).map(|memory| fresh = memory),
            (Kind::Load, _) => load(&mut engine, &frame),
            (Kind::Reap, _) => reap(&mut ended, frame.id, fresh),
            _ => Err(Gone),
        };
        if done.is_err() {
            return 0;
        }
    }
}

/// Memory of a fork that has done nothing yet: what that of others is counted from.
fn memory_of_fresh(engine: &mut Engine, sealing: &Sealing) -> Result<Memory, Gone> {
    match process::fork_with_pidfd().map_err(|_| Gone)? {
        process::Fork::Parent(forked) => process::wait(forked.pid).map(|exit| exit.memory).map_err(|_| Gone),
        process::Fork::Child => {
            compartment::touch(engine, sealing);
            isolate_engine::exit_now(0)
        }
    }
}

enum Split {
    Parent,
    Child,
}

/// Forks. The child keeps nothing but its new channel; the parent tells the host.
fn split(channel: OwnedFd) -> Result<Split, Gone> {
    match process::fork_with_pidfd().map_err(|_| Gone)? {
        process::Fork::Parent(forked) => {
            let id = u32::try_from(forked.pid).map_err(|_| Gone)?;
            channel::send_fd(Kind::Forked, id, forked.pidfd.as_fd())?;
            Ok(Split::Parent)
        }
        process::Fork::Child => {
            process::keep_only(&[(channel.as_raw_fd(), channel::FD)]).map_err(|_| Gone)?;
            // Its number is closed or is someone else's by now.
            std::mem::forget(channel);
            Ok(Split::Child)
        }
    }
}

/// What every fork does first: forget the parent's randomness and clocks, and lower its limits for good.
fn become_new(engine: &mut Engine, fork: &Fork, sealing: &Sealing) -> Result<(), Gone> {
    engine.after_fork();
    if fork.role == Role::Zygote || !engine.limited() {
        // The kernel's limit is on everything, with a little for the process's own. V8's is on what survives
        // collections and comes first, so that a full heap ends at once instead of collecting again and again.
        let bytes = fork.memory_mb << 20;
        jail::limits::set_limit_data(sealing.data_in_use + bytes + (8 << 20)).map_err(|_| Gone)?;
        engine.limit_heap(bytes / 4 * 3);
    }
    Ok(())
}

/// Evaluates a server in this process: everything forked from here on has it loaded.
fn load(engine: &mut Engine, frame: &isolate_wire::Frame) -> Result<(), Gone> {
    let load: Load = frame.meta().map_err(|_| Gone)?;
    let budget = std::time::Duration::from_millis(load.cpu_ms);
    process::arm_cpu_timer(Some(isolate_wire::with_grace(budget))).map_err(|_| Gone)?;
    let loaded = server::load(engine, &load, &frame.body);
    // Collecting garbage takes as long as what the server left makes it.
    let tidying = compartment::BETWEEN + budget;
    process::arm_cpu_timer(Some(tidying)).map_err(|_| Gone)?;
    engine.tidy();
    process::arm_cpu_timer(None).map_err(|_| Gone)?;
    answer_load(loaded)
}

/// Freezes this process's memory into the host's file: what is forked from here on finds it there.
fn freeze(sealing: &Sealing, file: OwnedFd, length: &[u8]) -> Result<(), Gone> {
    let most = length.try_into().map(u64::from_le_bytes).map_err(|_| Gone)?;
    let most = usize::try_from(most).map_err(|_| Gone)?;
    // The filter knows the file by this number only.
    process::keep_only(&[(channel::FD, channel::FD), (file.as_raw_fd(), jail::IMAGE_FD)]).map_err(|_| Gone)?;
    std::mem::forget(file);
    let used = match &sealing.image {
        Some(image) => image.freeze_again(jail::IMAGE_FD, most).map_err(|_| Gone)?,
        None => 0,
    };
    process::keep_only(&[(channel::FD, channel::FD)]).map_err(|_| Gone)?;
    channel::send(Kind::Frozen, 0, b"", &(used as u64).to_le_bytes())
}

/// What this process looks at and writes to is inherited with its neighbourhood, and its forks need not find it again.
fn rehearse(engine: &mut Engine, sealing: &Sealing) -> Result<Memory, Gone> {
    process::arm_cpu_timer(Some(compartment::BETWEEN)).map_err(|_| Gone)?;
    compartment::rehearse(engine);
    process::arm_cpu_timer(None).map_err(|_| Gone)?;
    let fresh = memory_of_fresh(engine, sealing)?;
    channel::send(Kind::Rehearsed, 0, b"", b"")?;
    Ok(fresh)
}

pub fn answer_load(loaded: Result<String, String>) -> Result<(), Gone> {
    match loaded {
        Ok(surface) => channel::send(Kind::Loaded, 0, b"", surface.as_bytes()),
        Err(message) => {
            let used = Used { cpu_us: 0, memory_kb: 0 };
            channel::send_with(Kind::Failed, 0, &Failed { code: FailCode::InitFailed, message, used }, b"")
        }
    }
}

/// Takes note of every child that has ended, also of those that were inherited from a dead zygote.
fn collect(ended: &mut HashMap<i32, Exit>) {
    // Bounded: a host that never asks must not make a zygote grow.
    const MOST: usize = 4096;
    while let Ok(Some((pid, exit))) = process::wait_any_nohang() {
        if ended.len() >= MOST {
            ended.clear();
        }
        // Only failures are ever asked for.
        if exit.code != Some(0) {
            ended.insert(pid, exit);
        }
    }
}

fn reap(ended: &mut HashMap<i32, Exit>, id: u32, fresh: Memory) -> Result<(), Gone> {
    let pid = i32::try_from(id).map_err(|_| Gone)?;
    let exit = match ended.remove(&pid) {
        Some(exit) => Some(exit),
        // The host has killed it or seen it close its channel; waiting is short. Gone already: it ended well.
        None => process::wait(pid).ok(),
    };
    let ended = match exit {
        Some(exit) => Ended {
            code: exit.code,
            signal: exit.signal,
            cpu_us: u64::try_from(exit.cpu.as_micros()).unwrap_or(u64::MAX),
            memory_kb: memory_since(exit.memory, fresh),
        },
        None => Ended { code: Some(0), signal: None, cpu_us: 0, memory_kb: 0 },
    };
    channel::send_with(Kind::Reaped, id, &ended, b"")
}
