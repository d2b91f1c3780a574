//! Honest callers, and a dice.

use super::{Server, run};
use sandbox::{Code, Pool};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Small, seeded, good enough to pick victims.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % sides
    }
}

/// Honest callers, each checking every answer, until told to stop.
pub struct Load {
    over: Arc<AtomicBool>,
    served: Arc<AtomicU64>,
    callers: Vec<tokio::task::JoinHandle<Result<(), String>>>,
}

impl Load {
    pub fn start(pool: &Arc<Pool>) -> Load {
        let over = Arc::new(AtomicBool::new(false));
        let served = Arc::new(AtomicU64::new(0));
        let callers = (0..4)
            .map(|n| {
                let (pool, over, served) = (pool.clone(), over.clone(), served.clone());
                let source = format!("export default {{ tools: {{ run: {{ run: ({{ x }}) => x * {n} }} }} }}");
                let server = Server::new(&source).tenant(&format!("tenant-{n}")).deploy();
                tokio::spawn(async move {
                    while !over.load(Ordering::Relaxed) {
                        match run(&pool, &server, r#"{"x":7}"#).await {
                            Ok(text) if text == (7 * n).to_string() => served.fetch_add(1, Ordering::Relaxed),
                            // A base zygote that dies three times within one call is more than is promised.
                            Err(Code::CompartmentLost) => 0,
                            other => return Err(format!("caller {n} heard {other:?}")),
                        };
                    }
                    Ok(())
                })
            })
            .collect();
        Load { over, served, callers }
    }

    pub async fn stop(self) -> u64 {
        self.over.store(true, Ordering::Relaxed);
        for caller in self.callers {
            let ended = tokio::time::timeout(Duration::from_secs(60), caller).await;
            ended.expect("no caller hangs").unwrap().unwrap();
        }
        self.served.load(Ordering::Relaxed)
    }
}
