//! Who stands at the door, and what they get.

use crate::credentials::{Credentials, NoCredentials};
use crate::ledger::{Budget, NoBudget, Watch};
use crate::rule::Rules;
use bytes::Bytes;
use std::sync::Arc;

/// Who comes, and what they may.
pub struct Pass {
    pub tenant: String,
    pub deployment: String,
    pub rules: Arc<Rules>,
    pub credentials: Arc<dyn Credentials>,
    pub budget: Arc<dyn Budget>,
    pub watch: Option<Watch>,
}

impl Pass {
    /// Without credentials, without a budget, unwatched.
    pub fn new(tenant: impl Into<String>, deployment: impl Into<String>, rules: Arc<Rules>) -> Pass {
        let (credentials, budget) = (Arc::new(NoCredentials), Arc::new(NoBudget));
        Pass { tenant: tenant.into(), deployment: deployment.into(), rules, credentials, budget, watch: None }
    }
}

/// The answer to a host call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// JSON.
    pub meta: String,
    pub body: Bytes,
}

impl Reply {
    pub(crate) fn empty() -> Reply {
        Reply { meta: "{}".to_owned(), body: Bytes::new() }
    }
}
