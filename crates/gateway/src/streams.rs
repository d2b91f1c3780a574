//! How many streams of news a tenant's clients hold open.

use crate::mcp::RpcError;
use http::StatusCode;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Open streams per tenant.
pub struct StreamCount {
    most: usize,
    open: Arc<Mutex<HashMap<String, usize>>>,
}

/// A place for one stream; given back on drop.
pub struct StreamPlace {
    tenant: String,
    open: Arc<Mutex<HashMap<String, usize>>>,
}

impl StreamCount {
    pub fn new(most: usize) -> StreamCount {
        StreamCount { most, open: Arc::default() }
    }

    pub fn open(&self, tenant: &str) -> Result<StreamPlace, RpcError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let count = open.entry(tenant.to_owned()).or_default();
        if *count >= self.most {
            let message = format!("this tenant has {} streams open already", self.most);
            let error = RpcError::new(StatusCode::TOO_MANY_REQUESTS, -32029, message);
            return Err(RpcError { retry_after: Some(5), ..error });
        }
        *count += 1;
        Ok(StreamPlace { tenant: tenant.to_owned(), open: self.open.clone() })
    }

    pub fn len(&self) -> usize {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).values().sum()
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(&self.tenant) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.tenant);
            }
        }
    }
}
