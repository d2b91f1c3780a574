//! From a fresh process to a jailed base zygote.

use crate::channel::{self, Channel, Gone};
use crate::realm::Engine;
use crate::zygote::{self, Sealing};
use isolate_engine::Compiler;
use isolate_engine::image::Image;
use isolate_wire::{Hello, Kind, Start, VERSION};
use jail::confine::Confinement;
use jail::namespaces::{self, Plan, Side};
use jail::seccomp::{Filter, PolicyName};
use std::os::fd::IntoRawFd;

/// Takes the place of the carrier's `main`. The control channel is standard input.
pub fn main() -> i32 {
    jail::process::abort_on_panic();
    match prepare() {
        Ok((engine, channel, sealing)) => zygote::run(engine, channel, sealing),
        Err(reason) => {
            // The host turns this into its own error; if it is gone, nobody is left to tell.
            let _ = channel::send(Kind::StartFailed, 0, b"", reason.as_bytes());
            1
        }
    }
}

fn prepare() -> Result<(Engine, Channel, Sealing), String> {
    jail::process::reset_signals().map_err(text)?;
    jail::process::keep_only(&[(0, channel::FD)]).map_err(text)?;
    null_standard_streams().map_err(text)?;
    let mut channel = Channel::new();
    let frame = channel.receive().map_err(|Gone| "the host went away".to_owned())?;
    let start: Start = frame.meta().map_err(text)?;

    let plan = Plan::for_this_process().map_err(text)?.as_user(start.user);
    namespaces::enter(&plan).map_err(text)?;
    // After `enter`, because a change of user clears it. Process 1 in turn dies with this one.
    jail::process::die_with_parent().map_err(text)?;
    if let Side::Outer { init } = namespaces::fork_init().map_err(text)? {
        namespaces::outlive(init);
    }

    isolate_engine::layout::gather();

    // From here on this is process 1 of its own namespace. V8 comes up before the files disappear.
    let compiler = if start.jit { Compiler::Jit } else { Compiler::Jitless };
    isolate_engine::start(compiler)?;
    let engine = Engine::new(start.heap_mb)?;
    let zygote_filter = Filter::load(PolicyName::IsolateZygote, start.jit).map_err(text)?;
    let child = Filter::load_on_top(PolicyName::IsolateCall, PolicyName::IsolateZygote, start.jit).map_err(text)?;
    isolate_engine::layout::scatter();
    let image = if start.quick_forks { Some(Image::freeze().map_err(text)?) } else { None };
    let by_touch = image.as_ref().is_some_and(|image| !image.must_be_touched());
    crate::account::BY_TOUCH.store(by_touch, std::sync::atomic::Ordering::Relaxed);
    let sealing = Sealing { child, image, data_in_use: jail::limits::data_in_use().map_err(text)? };
    let confinement = Confinement {
        address_space: 64 << 30,
        data: sealing.data_in_use + (start.heap_mb << 20) + (64 << 20),
        cpu_seconds: u64::MAX,
        // No process in there can open any. It is also how many descriptors may be on their way between processes of this
        // user's, and a zygote that cannot pass one on ends.
        open_files: 4096,
        processes: start.processes,
        stack: 8 << 20,
    };
    let enforced = jail::confine::confine(&plan, &confinement).map_err(text)?;
    zygote_filter.install().map_err(text)?;

    let hello = Hello {
        version: VERSION,
        v8: v8::V8::get_version().to_owned(),
        landlock_abi: enforced.landlock_abi,
        user_namespace: plan.user_namespace,
    };
    channel::send_with(Kind::Hello, 0, &hello, b"").map_err(|Gone| "the host went away".to_owned())?;
    Ok((engine, channel, sealing))
}

/// Numbers 0 to 2 must not become someone's channel: what prints to them prints nowhere.
fn null_standard_streams() -> std::io::Result<()> {
    for _ in 0..3 {
        let null = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
        let _ = null.into_raw_fd();
    }
    Ok(())
}

/// The whole chain of causes: the host prints it once.
fn text(error: impl std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
