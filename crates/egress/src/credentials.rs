//! Where secrets are put into requests, so that the code inside never has them.

use crate::denied::Denied;
use crate::target::{Origin, Target};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::HeaderMap;
use zeroize::Zeroizing;

/// A secret that is masked shows that it was found, and so confirms a guess: shorter values could be guessed one by one. Nor can they
/// be told from ordinary text.
pub const SHORTEST_SECRET: usize = 12;

/// What a response is searched for at most. Finding more would cost more than the request.
pub(crate) const MOST_SEARCHED: usize = 32 << 10;

/// Puts secrets into requests. Asked on every hop whose origin it covers, after the rules have let the hop through.
pub trait Credentials: Send + Sync {
    fn covers(&self, origin: &Origin) -> bool;

    /// Whether a streamed body has to be there as a whole before [`Credentials::apply`].
    fn needs_body(&self, _: &Prepared) -> bool {
        false
    }

    fn apply<'a>(&'a self, request: &'a mut Prepared) -> BoxFuture<'a, Result<Applied, Denied>>;

    /// Whether something could come back from this origin that has to be masked. Then there is no tunnel to it.
    fn guards(&self, _: &Origin) -> bool {
        true
    }

    /// Everything that this origin may have kept from an earlier request, whoever sent that. It is masked in every response of its.
    /// Nothing is fetched for this alone.
    fn known<'a>(&'a self, _: &'a Origin) -> BoxFuture<'a, Result<Applied, Denied>> {
        Box::pin(std::future::ready(Ok(Applied::default())))
    }
}

pub struct NoCredentials;

impl Credentials for NoCredentials {
    fn covers(&self, _: &Origin) -> bool {
        false
    }

    fn guards(&self, _: &Origin) -> bool {
        false
    }

    fn apply<'a>(&'a self, _: &'a mut Prepared) -> BoxFuture<'a, Result<Applied, Denied>> {
        Box::pin(std::future::ready(Ok(Applied::default())))
    }
}

/// The body of a request about to be sent.
pub(crate) enum Payload {
    Nothing,
    Whole(Bytes),
    /// It goes by piece by piece, and nobody sees it before.
    Stream,
}

/// A value that is overwritten when nobody needs it any more.
pub(crate) type Value = Zeroizing<Vec<u8>>;

/// A request about to be sent. Where it goes cannot be changed any more.
pub struct Prepared {
    pub(crate) method: String,
    pub(crate) target: Target,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Payload,
}

impl Prepared {
    pub fn method(&self) -> &str {
        &self.method
    }

    pub fn target(&self) -> &Target {
        &self.target
    }

    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }
}

/// What was put in: values whose echo is masked in everything that comes back.
#[derive(Default)]
pub struct Applied {
    pub(crate) secrets: Vec<Value>,
    pub(crate) names: Vec<String>,
}

impl Applied {
    pub fn secret(&mut self, value: impl Into<Vec<u8>>) -> Result<(), Denied> {
        let value = Zeroizing::new(value.into());
        if value.len() < SHORTEST_SECRET {
            return Err(Denied::refuse(format!(
                "a secret has fewer than {SHORTEST_SECRET} bytes, so that it could be guessed; set a longer one"
            )));
        }
        if !self.secrets.contains(&value) {
            self.secrets.push(value);
        }
        Ok(())
    }

    /// What the receipt calls it.
    pub fn name(&mut self, name: impl Into<String>) {
        self.names.push(name.into());
    }
}
