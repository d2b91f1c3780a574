//! Where secrets are put into requests, so that the code inside never has them.

use crate::denied::Denied;
use crate::target::{Origin, Target};
use http::header::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// Shorter values cannot be told from ordinary text when they come back.
pub const SHORTEST_SECRET: usize = 6;

/// Puts secrets into requests. Asked on every hop whose origin it covers, after the rules have let the hop through.
pub trait Credentials: Send + Sync {
    fn covers(&self, origin: &Origin) -> bool;
    fn apply(&self, request: &mut Prepared) -> Result<Applied, Denied>;
}

pub struct NoCredentials;

impl Credentials for NoCredentials {
    fn covers(&self, _: &Origin) -> bool {
        false
    }

    fn apply(&self, _: &mut Prepared) -> Result<Applied, Denied> {
        Ok(Applied::default())
    }
}

/// A request about to be sent. Where it goes cannot be changed any more.
pub struct Prepared {
    pub(crate) method: String,
    pub(crate) target: Target,
    pub(crate) headers: HeaderMap,
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

    /// Replaces what the code inside has set under this name.
    pub fn set_header(&mut self, name: HeaderName, value: &str) -> Result<(), Denied> {
        let wrong =
            |_| Denied::refuse(format!("the secret for header `{name}` has characters that no header can carry"));
        let mut value = HeaderValue::from_str(value).map_err(wrong)?;
        value.set_sensitive(true);
        crate::headers::bindable(&name)?;
        self.headers.insert(name, value);
        Ok(())
    }

    /// Replaces every parameter of this name.
    pub fn set_query(&mut self, name: &str, value: &str) {
        let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let same = |pair: &&str| {
            let key = pair.split('=').next().unwrap_or_default().replace('+', " ");
            percent_encoding::percent_decode_str(&key).decode_utf8_lossy() == name
        };
        let old = self.target.query.trim_start_matches('?');
        let mut pairs: Vec<String> =
            old.split('&').filter(|pair| !pair.is_empty() && !same(pair)).map(str::to_owned).collect();
        pairs.push(format!("{}={}", encode(name), encode(value)));
        self.target.query = format!("?{}", pairs.join("&"));
    }
}

/// What was put in: values whose echo is masked in everything that comes back.
#[derive(Default)]
pub struct Applied {
    pub(crate) secrets: Vec<Vec<u8>>,
}

impl Applied {
    pub fn secret(&mut self, value: impl Into<Vec<u8>>) -> Result<(), Denied> {
        let value = value.into();
        if value.len() < SHORTEST_SECRET {
            return Err(Denied::refuse(format!(
                "a secret has fewer than {SHORTEST_SECRET} bytes and could not be masked"
            )));
        }
        self.secrets.push(value);
        Ok(())
    }
}
