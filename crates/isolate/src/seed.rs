//! A deployment zygote: one server, initialised, ready to be forked.

use crate::compartment::{ManyCalls, OneCall, Shared};
use crate::control::Control;
use crate::driver::Driver;
use crate::verdict::{Cause, verdict};
use crate::zygote::Zygote;
use isolate_wire::{Failed, Fork, Frame, Kind, Load, Role, encode_with};
use policy::Limits;
use sandbox::{Code, Compartment, Deployment, During, Failure, Future, Growth, Program, Seed};
use serde_json::value::RawValue;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The greatest surface a server may show, in bytes of JSON.
pub(crate) const SURFACE_BYTES: u64 = 1 << 20;

/// A zygote's children share its address layout. After this many, or this long, it is planted anew.
const WORN_FORKS: u64 = 10_000;
const WORN_AGE: Duration = Duration::from_secs(3600);

/// After this many forks, cheaper ones are worth their price.
const BUSY_FORKS: u64 = 16;

pub(crate) struct IsolateSeed {
    zygote: Arc<Zygote>,
    limits: Limits,
    surface: Box<RawValue>,
    planted: Instant,
    /// Whether someone has seen to it that it is frozen.
    frozen: AtomicBool,
    /// What the server keeps, as the kernel counted it when it was loaded.
    memory_mb: u64,
}

/// Forks a zygote off the base and has it evaluate the server, under the limits of initialisation.
pub(crate) async fn plant(base: &Arc<Zygote>, deployment: &Deployment) -> Result<IsolateSeed, Failure> {
    let limits = deployment.permit.limits();
    let command = load_frame(deployment)?;
    let role = Fork { role: Role::Zygote, memory_mb: limits.memory_mb, cpu_ms: limits.cpu_ms };
    let before = memory_of(base);
    let forked = base.fork(&role).await.map_err(|_| lost(limits))?;
    let zygote = Arc::new(Zygote::new(Control::new(forked.stream), forked.process, Some(base.clone())));
    base.adopt(&zygote);
    let answer = zygote.exchange(&command, None, Duration::from_millis(limits.init_time_ms)).await;
    let cause = match answer {
        Ok(frame) => {
            let surface = read_loaded(&frame)?;
            zygote.rest();
            let (planted, frozen) = (Instant::now(), AtomicBool::new(false));
            let memory_mb = memory_of(&zygote).saturating_sub(before).div_ceil(1 << 20);
            return Ok(IsolateSeed { zygote, limits: limits.clone(), surface, planted, frozen, memory_mb });
        }
        Err(error) if error.kind() == std::io::ErrorKind::TimedOut => Cause::Limit(Code::TimeLimit),
        Err(error) => match error.get_ref().and_then(|e| e.downcast_ref::<isolate_wire::Malformed>()) {
            Some(malformed) => Cause::Malformed(*malformed),
            None => Cause::Closed,
        },
    };
    zygote.end();
    let ended = base.reap(zygote.process()).await;
    Err(verdict(&cause, ended.as_ref(), limits, During::Initialisation))
}

fn memory_of(zygote: &Zygote) -> u64 {
    zygote.pid().map_or(0, jail::pidfd::private_memory)
}

pub(crate) fn load_frame(deployment: &Deployment) -> Result<Vec<u8>, Failure> {
    let Program::Module { source, file_name } = &deployment.program else {
        return Err(Failure::new(Code::InitFailed, "the wall `isolate` runs modules of JavaScript, and no commands"));
    };
    let limits = deployment.permit.limits();
    let most = limits.source_kb * 1024;
    if source.len() as u64 > most {
        let message = format!("the source has {} bytes, {most} are allowed (`source_kb`)", source.len());
        return Err(Failure::new(Code::InitFailed, message));
    }
    let load = Load { name: file_name.clone(), cpu_ms: limits.init_cpu_ms, surface_bytes: SURFACE_BYTES };
    encode_with(Kind::Load, 0, &load, source)
        .ok_or_else(|| Failure::new(Code::InitFailed, "the source does not fit a frame"))
}

/// The surface, or the author's error.
pub(crate) fn read_loaded(frame: &Frame) -> Result<Box<RawValue>, Failure> {
    let nonsense = || Failure::new(Code::ProtocolViolation, "the compartment broke the protocol with its host");
    match frame.kind {
        Kind::Loaded => serde_json::from_slice(&frame.body).map_err(|_| nonsense()),
        Kind::Failed => {
            let failed: Failed = frame.meta().map_err(|_| nonsense())?;
            Err(Failure::new(Code::InitFailed, failed.message))
        }
        _ => Err(nonsense()),
    }
}

pub(crate) fn lost(limits: &Limits) -> Failure {
    verdict(&Cause::Closed, None, limits, During::Initialisation)
}

impl IsolateSeed {
    /// A zygote that many calls come to is frozen, once. It costs time, once, and a copy of its memory.
    async fn freeze_if_busy(&self) {
        if self.zygote.forks() >= BUSY_FORKS && !self.frozen.swap(true, Ordering::Relaxed) {
            // Without, it forks as before; if it was lost, the next fork tells.
            let _ = self.zygote.freeze((self.limits.memory_mb + 64) << 20).await;
        }
    }
}

impl Seed for IsolateSeed {
    fn surface(&self) -> &RawValue {
        &self.surface
    }

    fn grow(&self, growth: Growth) -> Future<'_, Result<Arc<dyn Compartment>, Failure>> {
        Box::pin(async move {
            let role = match growth {
                Growth::OneCall => Role::Call,
                Growth::Spare => Role::Spare,
                Growth::ManyCalls => Role::Serve,
            };
            self.freeze_if_busy().await;
            let fork = Fork { role, memory_mb: self.limits.memory_mb, cpu_ms: self.limits.cpu_ms };
            let limits = self.limits.clone();
            if growth == Growth::OneCall {
                let compartment = OneCall::on_request(&self.zygote, fork, limits).map_err(|_| lost(&self.limits))?;
                return Ok(Arc::new(compartment) as Arc<dyn Compartment>);
            }
            let forked = self.zygote.fork(&fork).await.map_err(|_| lost(&self.limits))?;
            let driver = Driver::new(forked, self.zygote.clone()).map_err(|_| lost(&self.limits))?;
            Ok(if growth == Growth::Spare {
                Arc::new(OneCall::waiting(driver, limits))
            } else {
                let process = ManyCalls::start(driver).map_err(|_| lost(&self.limits))?;
                Arc::new(Shared { process: Arc::new(process), server: 0, limits })
            })
        })
    }

    fn memory_mb(&self) -> u64 {
        self.memory_mb
    }

    fn alive(&self) -> bool {
        self.zygote.alive()
    }

    fn worn(&self) -> bool {
        self.zygote.forks() > WORN_FORKS || self.planted.elapsed() > WORN_AGE
    }

    fn ended(&self) -> Option<Code> {
        if !self.zygote.alive() || !self.zygote.computes() {
            return None;
        }
        self.zygote.end();
        Some(Code::CpuLimit)
    }
}
