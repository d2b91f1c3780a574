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

/// A value that is about to be put into a request.
pub struct Use<'a> {
    /// Of the secret.
    pub name: &'a str,
    pub place: &'a Place,
    /// What stands around it, with `{}` for the value: once for each text that it goes into.
    pub shapes: Vec<String>,
    pub to: &'a Origin,
}

/// How a value may have been sent, and so how it may come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As it is.
    Whole,
    /// As `user:password`.
    Basic,
    /// As a key of AWS.
    Aws,
}

/// A value that an origin may have kept.
pub struct Kept {
    pub value: SecretString,
    pub forms: Vec<Form>,
}

/// Where values come from. It may take its time, for a token that has to be renewed.
pub trait Secrets: Send + Sync {
    /// A value for a request: the store may refuse to let it go there, or into this place. Nothing, if nobody has set it.
    fn get<'a>(&'a self, used: &'a Use<'a>) -> BoxFuture<'a, Result<Option<SecretString>, Denied>>;

    /// What else an origin may have kept: what other servers of the tenant may send there. Nothing, where there are no others.
    fn kept<'a>(&'a self, _: &'a Origin) -> BoxFuture<'a, Result<Vec<Kept>, Denied>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Whether there is any of that.
    fn keeps(&self, _: &Origin) -> bool {
        false
    }

    /// The value as far as it is there already, to be masked wherever it comes from. Nobody is asked for it, and nothing is renewed.
    fn known<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<SecretString>, Denied>>;
}

/// Credentials as bindings say.
pub struct Bound {
    bindings: Arc<Bindings>,
    secrets: Arc<dyn Secrets>,
}

/// A shorter password is none: services that take a token for the user want anything there.
const SHORTEST_PASSWORD: usize = 6;

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

    async fn value(&self, binding: &Binding, shapes: Vec<String>, to: &Origin) -> Result<SecretString, Denied> {
        let Binding { name, place, .. } = binding;
        let used = Use { name, place, shapes, to };
        let missing = || Denied::secret(format!("the secret `{name}` is not set"));
        self.secrets.get(&used).await?.ok_or_else(missing)
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

    fn guards(&self, origin: &Origin) -> bool {
        !self.bindings.is_empty() || self.secrets.keeps(origin)
    }

    fn known<'a>(&'a self, from: &'a Origin) -> BoxFuture<'a, Result<Applied, Denied>> {
        Box::pin(async move {
            let mut known = Applied::default();
            for binding in self.bindings.all() {
                if let Some(value) = self.secrets.known(&binding.name).await? {
                    // What is no good is never sent, so nothing of it comes back.
                    let _ = hide(&binding.name, form(&binding.place), value.expose_secret(), &mut known);
                }
            }
            for Kept { value, forms } in self.secrets.kept(from).await? {
                for form in forms {
                    let _ = hide("", form, value.expose_secret(), &mut known);
                }
            }
            Ok(known)
        })
    }

    fn apply<'a>(&'a self, request: &'a mut Prepared) -> BoxFuture<'a, Result<Applied, Denied>> {
        Box::pin(async move {
            let mut applied = Applied::default();
            // Before any value is in the request: what is refused repeats the text around it.
            let planned: Vec<_> = self
                .plan(request)
                .into_iter()
                .map(|(binding, doing)| (binding, doing, shapes(request, binding, doing)))
                .collect();
            for (binding, doing, shapes) in planned {
                let value = self.value(binding, shapes, &request.target.origin).await?;
                hide(&binding.name, form(&binding.place), value.expose_secret(), &mut applied)?;
                put(request, binding, doing, value.expose_secret())?;
                applied.name(&binding.name);
            }
            Ok(applied)
        })
    }
}

/// What stands around the value.
fn shapes(request: &Prepared, binding: &Binding, doing: Doing) -> Vec<String> {
    match doing {
        Doing::Swap => request.shapes(&binding.place, &binding.placeholder()),
        Doing::Set => vec![binding.format.clone()],
    }
}

fn form(place: &Place) -> Form {
    match place {
        Place::Basic => Form::Basic,
        Place::Aws { .. } => Form::Aws,
        _ => Form::Whole,
    }
}

/// Notes what must not be seen of a value.
fn hide(name: &str, form: Form, value: &str, applied: &mut Applied) -> Result<(), Denied> {
    let short = |_| {
        Denied::refuse(format!(
            "the secret `{name}` has fewer than {SHORTEST_SECRET} bytes, so that it could be guessed; set a longer one with \
             `bulkhead secret set`"
        ))
    };
    match form {
        Form::Basic => {
            let (user, password) = value.split_once(':').unwrap_or((value, ""));
            applied.secret(value).map_err(short)?;
            // To its last character, which stands for less than a byte.
            applied.secret(STANDARD.encode(value)).map_err(short)?;
            // Many services take a token for the user, and anything short for the password.
            let token = password.len() < SHORTEST_PASSWORD;
            applied.secret(if token { user } else { password }).map_err(short)?;
            if !token && user.len() >= SHORTEST_SECRET {
                applied.secret(user).map_err(short)?;
            }
            Ok(())
        }
        Form::Aws => {
            let key = key(name, value)?;
            applied.secret(key.secret).map_err(short)?;
            key.token.map_or(Ok(()), |token| applied.secret(token).map_err(short))
        }
        Form::Whole => applied.secret(value).map_err(short),
    }
}

fn key<'a>(name: &str, value: &'a str) -> Result<Key<'a>, Denied> {
    Key::parse(value).ok_or_else(|| {
        Denied::refuse(format!(
            "the secret `{name}` is no `ACCESS_KEY_ID:SECRET_ACCESS_KEY` with or without `:SESSION_TOKEN`"
        ))
    })
}

fn put(request: &mut Prepared, binding: &Binding, doing: Doing, value: &str) -> Result<(), Denied> {
    match &binding.place {
        Place::Basic => {
            let encoded = Zeroizing::new(STANDARD.encode(value));
            let line = Zeroizing::new(format!("Basic {}", encoded.as_str()));
            request.set_header(AUTHORIZATION, &line)
        }
        Place::Aws { region, service } => {
            let scope = Scope { region, service };
            aws::sign(request, &key(&binding.name, value)?, &scope, OffsetDateTime::now_utc())
        }
        place if doing == Doing::Swap => request.swap(place, &binding.placeholder(), value),
        place => {
            let (before, after) = binding.around();
            request.set(place, &Zeroizing::new(format!("{before}{value}{after}")))
        }
    }
}
