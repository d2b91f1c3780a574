//! Starting a base zygote.

use crate::control::{self, Control};
use crate::process::Process;
use crate::wall::{IsolateSettings, Together, WallError};
use crate::zygote::Zygote;
use isolate_wire::{Hello, Kind, Start, VERSION, encode_with};
use jail::cgroup::Group;
use jail::pidfd::{Pace, PidFd};
use jail::users::Lease;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Starting takes tens of milliseconds; a machine under load gets the benefit of the doubt.
const PATIENCE: Duration = Duration::from_secs(30);

/// Starts the carrier and waits until it is jailed.
///
/// It waits for its first frame, so it is in its group and has its pace before it does or forks anything.
pub(crate) async fn start(
    settings: &IsolateSettings,
    start: &Start,
    around: Option<&Group>,
) -> Result<(Zygote, Hello), WallError> {
    let carrier = &settings.carrier;
    let group = around.zip(settings.together).map(|(around, together)| subgroup(around, together)).transpose()?;
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
    // Reading its files takes time where there are many, and is done once.
    let user = tokio::task::spawn_blocking(jail::users::lease).await.map_err(|error| WallError::Died(error.into()))?;
    let user = user.map_err(WallError::User)?;
    let start = &Start { user: user.as_ref().map(Lease::uid), ..start.clone() };
    let process = spawn(command, Belongings { group, _user: user }).await?;
    process.view().set_pace(Pace::Brisk);

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

/// A group for this base and all that comes of it, inside of the one around all: when it is full, or has too many processes,
/// the others do not notice.
fn subgroup(around: &Group, together: Together) -> Result<Group, WallError> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let name = format!("base-{}", NEXT.fetch_add(1, Ordering::Relaxed));
    around.subgroup(&name, &together.of_one_base().limits()).map_err(WallError::Group)
}

/// What a base has to itself. Given back when it has ended, and with it everything that it forked.
struct Belongings {
    group: Option<Group>,
    _user: Option<Lease>,
}

/// Spawns from a thread that then waits for the child: the kernel kills the child when that very thread ends,
/// which is when the host does, and no zombie is left when the child ends first.
async fn spawn(mut command: Command, belongings: Belongings) -> Result<Process, WallError> {
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
        let handle = i32::try_from(child.id()).map_err(std::io::Error::other).and_then(|pid| {
            let group = belongings.group.as_ref();
            group.map_or(Ok(()), |group| group.add(pid)).map_err(std::io::Error::other)?;
            PidFd::open(pid).map_err(std::io::Error::other).and_then(Process::new)
        });
        let failed = handle.is_err();
        let given = tell.send(handle.map_err(WallError::Died));
        if failed || given.is_err() {
            // Nobody wants it any more, or nobody can have it; it has not been waited for, so this is still that child.
            let _ = child.kill();
        }
        let _ = child.wait();
        drop(belongings);
    };
    std::thread::Builder::new().name("zygote-keeper".into()).spawn(waiter).map_err(WallError::Spawn)?;
    told.await.map_err(|_| WallError::Protocol("its keeper went away"))?
}
