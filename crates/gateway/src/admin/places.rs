//! Counts what goes on at the same time, in all and by tenant.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub struct Places {
    most: usize,
    most_of_one_tenant: usize,
    taken: Arc<Mutex<HashMap<String, usize>>>,
}

/// A place that was taken; dropping it gives it back.
pub struct Place {
    tenant: String,
    taken: Arc<Mutex<HashMap<String, usize>>>,
}

/// Who has taken all there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Full {
    #[error("this host")]
    Host,
    #[error("this tenant")]
    Tenant,
}

impl Places {
    pub fn new(most: usize, most_of_one_tenant: usize) -> Places {
        Places { most, most_of_one_tenant, taken: Arc::default() }
    }

    pub fn enter(&self, tenant: &str) -> Result<Place, Full> {
        let mut taken = lock(&self.taken);
        if taken.get(tenant).is_some_and(|own| *own >= self.most_of_one_tenant) {
            return Err(Full::Tenant);
        }
        if taken.values().sum::<usize>() >= self.most {
            return Err(Full::Host);
        }
        *taken.entry(tenant.to_owned()).or_default() += 1;
        Ok(Place { tenant: tenant.to_owned(), taken: self.taken.clone() })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = lock(&self.taken);
        if let Some(own) = taken.get_mut(&self.tenant) {
            *own -= 1;
            if *own == 0 {
                taken.remove(&self.tenant);
            }
        }
    }
}

/// A poisoned lock means a panic elsewhere, which aborts the process; the data is whole either way.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_by_tenant_and_in_all() {
        let places = Places::new(5, 2);
        let mut of_a: Vec<_> = (0..2).map(|_| places.enter("a").unwrap()).collect();
        assert_eq!(places.enter("a").err(), Some(Full::Tenant));
        let others = [places.enter("b").unwrap(), places.enter("c").unwrap(), places.enter("d").unwrap()];
        assert_eq!(places.enter("e").err(), Some(Full::Host));
        of_a.pop();
        assert!(places.enter("e").is_ok(), "a place that was given back can be taken again");
        drop((of_a, others));
        assert!(lock(&places.taken).is_empty(), "nothing is kept of who has gone");
    }
}
