//! Looks for processes behind the wall that nobody ordered: a zygote that was taken over can fork what it likes, and such
//! children would outlive their server.

use crate::zygote::Zygote;
use jail::pidfd::living_children;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;

/// How often it looks.
const PERIOD: Duration = Duration::from_secs(1);

/// A zygote forks and then tells. So much later it has told.
const PAUSE: Duration = Duration::from_millis(50);

/// In so many looks in a row there must have been strangers: one may have come upon a fork of an honest zygote.
const LOOKS: u32 = 3;

/// The base zygotes of a wall.
#[derive(Default)]
pub(crate) struct Census {
    bases: Mutex<Vec<Weak<Zygote>>>,
}

impl Census {
    /// Looks as long as somebody has the result, in a thread of its own: it reads many small files.
    pub(crate) fn start() -> std::io::Result<Arc<Census>> {
        let census = Arc::new(Census::default());
        let looks = Arc::downgrade(&census);
        thread::Builder::new().name("census".into()).spawn(move || {
            let mut strikes = HashMap::new();
            while let Some(census) = looks.upgrade() {
                census.look(&mut strikes);
                drop(census);
                thread::sleep(PERIOD);
            }
        })?;
        Ok(census)
    }

    pub(crate) fn add(&self, base: &Arc<Zygote>) {
        let mut bases = self.bases.lock().unwrap_or_else(PoisonError::into_inner);
        bases.retain(|base| base.strong_count() > 0);
        bases.push(Arc::downgrade(base));
    }

    /// Ends each base zygote below which strangers live. It is process 1 of its namespace, so the kernel ends all of them
    /// with it, however quickly they fork.
    fn look(&self, strikes: &mut HashMap<usize, u32>) {
        let bases = self.bases.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut now = HashMap::new();
        for base in bases.iter().filter_map(Weak::upgrade).filter(|base| base.alive()) {
            if has_strangers(&base) && still_has_strangers(&base) {
                let key = Arc::as_ptr(&base) as usize;
                let count = strikes.get(&key).map_or(1, |count| count + 1);
                now.insert(key, count);
                if count >= LOOKS {
                    tracing::error!(
                        "a zygote forked processes that nobody ordered; it is ended with all that it forked"
                    );
                    base.end();
                }
            }
        }
        *strikes = now;
    }
}

fn has_strangers(base: &Zygote) -> bool {
    forked_strangers(base) || base.zygotes().iter().any(|zygote| forked_strangers(zygote))
}

fn still_has_strangers(base: &Zygote) -> bool {
    thread::sleep(PAUSE);
    has_strangers(base)
}

fn forked_strangers(zygote: &Zygote) -> bool {
    // Listed first: who is in the list has been forked by the time that the zygote is heard.
    let children = zygote.pid().map(living_children).unwrap_or_default();
    !children.is_empty() && zygote.knows_all(&children) == Some(false)
}
