//! Somebody else on the same wall, who must notice nothing.

use super::stage::{Stage, run};
use super::{Behaviour, Subject};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::JoinHandle;

pub(super) struct Neighbour {
    over: Arc<AtomicBool>,
    stage: Stage,
    work: JoinHandle<Result<(), String>>,
}

impl Neighbour {
    /// Starts working, and returns once the first call is answered: the case begins beside one at work.
    pub(super) async fn start(subject: &Arc<Subject>) -> Neighbour {
        let over = Arc::new(AtomicBool::new(false));
        let stage = Stage::new(subject.clone());
        let served = stage.neighbour.clone();
        let pool = stage.pool();
        let server = stage.server(Behaviour::Count).tenant("neighbour").deploy();
        let (done, count) = (over.clone(), served.clone());
        let work = tokio::spawn(async move {
            // At least one more after the case is over.
            let mut last = false;
            while !last {
                last = done.load(Ordering::SeqCst);
                match run(&pool, &server).await {
                    Ok(text) if text == "1" => count.fetch_add(1, Ordering::SeqCst),
                    other => return Err(format!("the neighbour expected its own first call, and heard {other:?}")),
                };
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            Ok(())
        });
        super::stage::until("the neighbour works", || served.load(Ordering::SeqCst) > 0 || work.is_finished()).await;
        Neighbour { over, stage, work }
    }

    /// A stage beside it.
    pub(super) fn stage(&self, subject: Arc<Subject>) -> Arc<Stage> {
        let mut stage = Stage::new(subject);
        stage.neighbour = self.stage.neighbour.clone();
        Arc::new(stage)
    }

    /// Panics if anything went wrong for it. A pool hides a lost seed from callers by planting anew, so that is
    /// looked at as well.
    pub(super) async fn stop(mut self, keeps_seeds: bool) {
        self.over.store(true, Ordering::SeqCst);
        if let Err(trouble) = (&mut self.work).await.expect("the neighbour does not panic") {
            panic!("{trouble}");
        }
        if keeps_seeds {
            assert_eq!(self.stage.wall.plants(), 1, "the neighbour lost its seed to somebody else's case");
        }
        self.stage.until_empty().await;
    }
}

/// A case that panics takes its neighbour along.
impl Drop for Neighbour {
    fn drop(&mut self) {
        self.work.abort();
    }
}
