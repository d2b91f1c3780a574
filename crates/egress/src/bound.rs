//! Secrets of a tenant, put into their places.

use crate::aws::{self, Key, Scope};
use crate::binding::{Binding, Bindings, Place};
use crate::credentials::{Applied, Credentials, Prepared, SHORTEST_SECRET};
use crate::denied::Denied;
use crate::put;
use crate::target::Origin;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::BoxFuture;
use http::header::AUTHORIZATION;
use secrecy::{ExposeSecret, SecretString};
use std::sync::Arc;
use time::OffsetDateTime;
use zeroize::Zeroizing;

/// Where values come from. It may take its time, for a token that has to be renewed.
pub trait Secrets: Send + Sync {
    /// A value for a request to this origin: the store may refuse to let it go there. Nothing, if nobody has set it.
    fn get<'a>(&'a self, name: &'a str, to: &'a Origin) -> BoxFuture<'a, Result<Option<SecretString>, Denied>>;
}

/// Credentials as bindings say.
pub struct Bound {
    bindings: Arc<Bindings>,
    secrets: Arc<dyn Secrets>,
}

/// What becomes of a binding in one request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Doing {
    /// The placeholder is there.
    Swap,
    Set,
}

impl Bound {
    pub fn new(bindings: impl Into<Arc<Bindings>>, secrets: Arc<dyn Secrets>) -> Bound {
        Bound { bindings: bindings.into(), secrets }
    }

    /// What is to be done for a request. A placeholder wins over what would be set in its place; signatures come last,
    /// because they are of all the rest.
    fn plan<'a>(&'a self, request: &Prepared) -> Vec<(&'a Binding, Doing)> {
        let all: Vec<&'a Binding> = self.bindings.of(&request.target.origin).collect();
        let holds = |binding: &&&Binding| request.holds(&binding.place, &binding.placeholder());
        let held: Vec<&Binding> = all.iter().filter(holds).copied().collect();
        let mut plan = Vec::new();
        for binding in all {
            if held.contains(&binding) {
                plan.push((binding, Doing::Swap));
            } else if !binding.asked && !held.iter().any(|other| other.place.overlaps(&binding.place)) {
                plan.push((binding, Doing::Set));
            }
        }
        plan.sort_by_key(|(binding, _)| matches!(binding.place, Place::Aws { .. }));
        plan
    }

    async fn value(&self, name: &str, to: &Origin) -> Result<SecretString, Denied> {
        self.secrets.get(name, to).await?.ok_or_else(|| {
            Denied::secret(format!(
                "the secret `{name}` is not set; who looks after the tenant sets it with `bulkhead secret set TENANT {name}`"
            ))
        })
    }
}

impl Credentials for Bound {
    fn covers(&self, origin: &Origin) -> bool {
        self.bindings.of(origin).next().is_some()
    }

    fn needs_body(&self, request: &Prepared) -> bool {
        let in_body = |binding: &Binding| matches!(binding.place, Place::Body(_));
        put::is_json(request) && self.bindings.of(&request.target.origin).any(in_body)
    }

    fn apply<'a>(&'a self, request: &'a mut Prepared) -> BoxFuture<'a, Result<Applied, Denied>> {
        Box::pin(async move {
            let mut applied = Applied::default();
            for (binding, doing) in self.plan(request) {
                let value = self.value(&binding.name, &request.target.origin).await?;
                put(request, binding, doing, value.expose_secret(), &mut applied)?;
                applied.name(&binding.name);
            }
            Ok(applied)
        })
    }
}

fn put(
    request: &mut Prepared,
    binding: &Binding,
    doing: Doing,
    value: &str,
    applied: &mut Applied,
) -> Result<(), Denied> {
    let short = |_| {
        Denied::refuse(format!(
            "the secret `{}` has fewer than {SHORTEST_SECRET} bytes and could not be masked",
            binding.name
        ))
    };
    match &binding.place {
        Place::Basic => {
            let encoded = Zeroizing::new(STANDARD.encode(value));
            let line = Zeroizing::new(format!("Basic {}", encoded.as_str()));
            applied.secret(value).map_err(short)?;
            applied.secret(encoded.as_str()).map_err(short)?;
            applied.secret(half(value)).map_err(short)?;
            request.set_header(AUTHORIZATION, &line)
        }
        Place::Aws { region, service } => {
            let wrong = || {
                Denied::refuse(format!(
                    "the secret `{}` is no `ACCESS_KEY_ID:SECRET_ACCESS_KEY` with or without `:SESSION_TOKEN`",
                    binding.name
                ))
            };
            let key = Key::parse(value).ok_or_else(wrong)?;
            applied.secret(key.secret).map_err(short)?;
            if let Some(token) = key.token {
                applied.secret(token).map_err(short)?;
            }
            aws::sign(request, &key, &Scope { region, service }, OffsetDateTime::now_utc())
        }
        place => {
            applied.secret(value).map_err(short)?;
            if doing == Doing::Swap {
                return request.swap(place, &binding.placeholder(), value);
            }
            let (before, after) = binding.around();
            let text = Zeroizing::new(format!("{before}{value}{after}"));
            applied.secret(text.as_bytes()).map_err(short)?;
            request.set(place, &text)
        }
    }
}

/// The half of `user:password` that must not be seen: the password, or the user where there is none to speak of (many
/// services take a token for the user).
fn half(value: &str) -> &str {
    match value.split_once(':') {
        Some((_, password)) if password.len() >= SHORTEST_SECRET => password,
        Some((user, _)) => user,
        None => value,
    }
}
