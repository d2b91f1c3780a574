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
    work: JoinHandle<()>,
}

impl Neighbour {
    /// Starts working, and returns once the first call is answered: the case begins beside one at work.
    pub(super) async fn start(subject: &Arc<Subject>) -> Neighbour {
        let over = Arc::new(AtomicBool::new(false));
        let stage = Stage::new(subject.clone());
        let news = stage.neighbour.clone();
        let pool = stage.pool();
        let server = stage.server(Behaviour::Count).tenant("neighbour").deploy();
        let (done, heard) = (over.clone(), news.clone());
        let work = tokio::spawn(async move {
            // At least one more after the case is over.
            let mut last = false;
            while !last {
                last = done.load(Ordering::SeqCst);
                let answer = run(&pool, &server).await;
                if answer.as_deref() != Ok("1") {
                    let trouble = format!("the neighbour expected its own first call, and heard {answer:?}");
                    return heard.trouble.set(trouble).expect("it stops at the first");
                }
                heard.served.fetch_add(1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        });
        super::stage::until("the neighbour works", || news.served.load(Ordering::SeqCst) > 0 || work.is_finished())
            .await;
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
        (&mut self.work).await.expect("the neighbour does not panic");
        assert_eq!(self.stage.neighbour.trouble.get(), None);
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
