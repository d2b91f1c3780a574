//! Starting a base zygote.

use crate::carrier::Carrier;
use crate::control::{self, Control};
use crate::process::Process;
use crate::wall::WallError;
use crate::zygote::Zygote;
use isolate_wire::{Hello, Kind, Start, VERSION, encode_with};
use jail::cgroup::Group;
use jail::pidfd::{Pace, PidFd};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Starting takes tens of milliseconds; a machine under load gets the benefit of the doubt.
const PATIENCE: Duration = Duration::from_secs(30);

/// Starts the carrier and waits until it is jailed.
///
/// It waits for its first frame, so it is in its group and has its pace before it does or forks anything.
pub(crate) async fn start(
    carrier: &Carrier,
    start: &Start,
    group: Option<&Group>,
) -> Result<(Zygote, Hello), WallError> {
    let (ours, theirs) = control::pair().map_err(WallError::Channel)?;
    let mut command = Command::new(&carrier.executable);
    command
        .env_clear()
        .env("LD_PRELOAD", carrier.preloads())
        .env("TZ", "UTC")
        .envs(carrier.environment.iter().map(|(name, value)| (name, value)))
        // The worker takes no arguments. Should the preload fail, the carrier says its version and ends.
        .arg("--version")
        .current_dir("/")
        .stdin(Stdio::from(theirs))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let process = spawn(command).await?;
    process.view().set_pace(Pace::Brisk);
    if let Some(group) = group {
        let pid = process.pid().ok_or(WallError::Protocol("nobody knows which process it is"))?;
        group.add(pid).map_err(|error| WallError::Died(std::io::Error::other(error)))?;
    }

    let mut control = Control::new(ours);
    let frame = encode_with(Kind::Start, 0, start, b"").ok_or(WallError::Protocol("the start does not fit a frame"))?;
    let hello = async {
        control.send(&frame, None).await?;
        control.receive().await
    };
    let frame = match tokio::time::timeout(PATIENCE, hello).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(source)) => return Err(WallError::Died(source)),
        Err(_) => return Err(WallError::Protocol("it did not come up in time")),
    };
    match frame.kind {
        Kind::StartFailed => Err(WallError::Refused(String::from_utf8_lossy(&frame.body).into_owned())),
        Kind::Hello => {
            let hello: Hello = frame.meta().map_err(|_| WallError::Protocol("its greeting is malformed"))?;
            if hello.version != VERSION {
                return Err(WallError::Version { worker: hello.version, host: VERSION });
            }
            Ok((Zygote::new(control, process, None), hello))
        }
        _ => Err(WallError::Protocol("it did not greet")),
    }
}

/// Spawns from a thread that then waits for the child: the kernel kills the child when that very thread ends,
/// which is when the host does, and no zombie is left when the child ends first.
async fn spawn(mut command: Command) -> Result<Process, WallError> {
    let (tell, told) = tokio::sync::oneshot::channel();
    let waiter = move || {
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(source) => {
                let _ = tell.send(Err(WallError::Spawn(source)));
                return;
            }
        };
        // Our own copy of the child's end of the channel goes, so that its end is seen.
        drop(command);
        let handle = i32::try_from(child.id())
            .map_err(std::io::Error::other)
            .and_then(|pid| PidFd::open(pid).map_err(std::io::Error::other))
            .and_then(Process::new);
        let given = tell.send(handle.map_err(WallError::Died));
        if given.is_err() {
            // Nobody wants it any more; it has not been waited for, so this is still that child.
            let _ = child.kill();
        }
        let _ = child.wait();
    };
    std::thread::Builder::new().name("zygote-keeper".into()).spawn(waiter).map_err(WallError::Spawn)?;
    told.await.map_err(|_| WallError::Protocol("its keeper went away"))?
}
