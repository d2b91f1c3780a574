//! Nouns of other crates, as the API's document shows them. A test below holds them to what is really sent.
#![allow(dead_code, reason = "these are drawings of types, not types that anything is made of")]

use policy::LimitName;
use std::borrow::Cow;
use std::collections::BTreeMap;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AdditionalProperties, KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::{PartialSchema, ToSchema};

/// What a key may do: `operator` runs the host, `admin` a tenant, `deploy` deploys its servers, `call` calls them. Over
/// this API each may do what those after it may.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub enum Role {
    Operator,
    Admin,
    Deploy,
    Call,
}

/// What a key is good for within its tenant; null or absent is everything.
#[derive(ToSchema)]
pub struct Scope {
    /// Names of servers.
    pub servers: Option<Vec<String>>,
    /// `server/tool`, or `server/prefix*`.
    pub tools: Option<Vec<String>>,
}

/// The hosts that each server may send a secret to, by the server's name (`*` stands for every server), each with the places in
/// requests where it may stand: `credentials`, `header:NAME`, `query:NAME`, `cookie:NAME`, `body:/POINTER`, `basic`, `aws`.
#[derive(ToSchema)]
pub struct SecretPolicy(BTreeMap<String, BTreeMap<String, Vec<String>>>);

/// The hosts that each server named may send a secret to from now on, each with its places; null takes a host or a server out. Other
/// servers and hosts keep theirs.
#[derive(ToSchema)]
#[expect(clippy::type_complexity, reason = "the schema is made of the types that stand here")]
pub struct PolicyChange(BTreeMap<String, Option<BTreeMap<String, Option<Vec<String>>>>>);

/// What may be used. Null or absent inherits: a key its tenant's, a tenant the host's.
#[derive(ToSchema)]
pub struct Quota {
    #[schema(minimum = 0)]
    pub requests_per_s: Option<f64>,
    /// Requests that may come at once after a quiet time.
    pub burst: Option<u32>,
    /// Calls at the same time.
    pub concurrent: Option<u32>,
    #[schema(minimum = 0)]
    pub cpu_s_per_min: Option<f64>,
    pub egress_bytes_per_min: Option<u64>,
    /// Of the disk, by everything that is deployed, and 1 MiB for each server's log. For tenants only.
    pub disk_bytes: Option<u64>,
}

/// How much shares one compartment: every call has its own, or the calls of a session, a server or a tenant share one.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub enum Boundary {
    Call,
    Session,
    Server,
    Tenant,
}

/// How a deployment asks to be run. What is absent has its default.
#[derive(ToSchema)]
pub struct Manifest {
    #[schema(required = false)]
    pub wall: String,
    #[schema(required = false)]
    pub boundary: Boundary,
    /// Run with V8's compilers.
    #[schema(required = false)]
    pub jit: bool,
    #[schema(required = false)]
    pub limits: Limits,
    /// What stack traces call the file.
    #[schema(required = false)]
    pub file_name: String,
}

/// One difference between two deployments in what they show and may use.
#[derive(ToSchema)]
pub struct Change {
    /// `tool_added`, `schema_changed`, `host_added`, `limit_raised` …
    pub kind: String,
    /// What it belongs to: `tool`, `host`, `limit` …
    pub of: String,
    /// What that is called; may be empty.
    pub name: String,
    /// Where it stands in the lock (RFC 6901).
    pub pointer: String,
    #[schema(value_type = Option<Object>)]
    pub old: Option<()>,
    #[schema(value_type = Option<Object>)]
    pub new: Option<()>,
    /// Whether there is more than before, or something else, to be agreed to.
    pub widens: bool,
    /// The same in words; nothing in it is invisible.
    pub text: String,
}

/// A file that differs: `sha256` and `size` as they were and as they are, or where a link leads.
#[derive(ToSchema)]
pub struct FileChange {
    pub path: String,
    #[schema(value_type = Option<Object>)]
    pub old: Option<()>,
    #[schema(value_type = Option<Object>)]
    pub new: Option<()>,
}

/// Drawn from the one table of limits.
pub struct Limits;

impl PartialSchema for Limits {
    fn schema() -> RefOr<Schema> {
        let number = |name: LimitName| {
            ObjectBuilder::new()
                .schema_type(Type::Integer)
                .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
                .description(Some(name.describe()))
                .default(Some(policy::Limits::default().get(name).into()))
                .minimum(Some(policy::Limits::LEAST.get(name) as f64))
        };
        let object = ObjectBuilder::new()
            .description(Some("What one call, or one initialisation, may use."))
            .additional_properties(Some(AdditionalProperties::FreeForm(false)));
        let object = LimitName::ALL.iter().fold(object, |object, name| object.property(name.as_str(), number(*name)));
        object.build().into()
    }
}

impl ToSchema for Limits {
    fn name() -> Cow<'static, str> {
        "Limits".into()
    }
}

/// What a deployment shows, may do and is made of.
pub struct Lock;

impl PartialSchema for Lock {
    fn schema() -> RefOr<Schema> {
        free("What a deployment shows, may do and is made of; docs/deploying.md says what stands in it.")
    }
}

impl ToSchema for Lock {
    fn name() -> Cow<'static, str> {
        "Lock".into()
    }
}

/// Who vouches for a lock.
pub struct Seal;

impl PartialSchema for Seal {
    fn schema() -> RefOr<Schema> {
        free("Who vouches for a lock; docs/deploying.md says what stands in it.")
    }
}

impl ToSchema for Seal {
    fn name() -> Cow<'static, str> {
        "Seal".into()
    }
}

fn free(described: &str) -> RefOr<Schema> {
    ObjectBuilder::new()
        .description(Some(described))
        .additional_properties(Some(AdditionalProperties::FreeForm(true)))
        .build()
        .into()
}

/// Tools, resources, templates and prompts as the code itself showed them when it was deployed.
pub struct Surface;

impl PartialSchema for Surface {
    fn schema() -> RefOr<Schema> {
        free("Tools, resources, templates and prompts as the code itself showed them when it was deployed.")
    }
}

impl ToSchema for Surface {
    fn name() -> Cow<'static, str> {
        "Surface".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Serialize;
    use serde_json::{Value, json};
    use std::collections::BTreeSet;

    fn drawn<T: PartialSchema>() -> Value {
        serde_json::to_value(T::schema()).unwrap()
    }

    /// A drawing has the properties of what is really sent, and no other.
    fn same<T: PartialSchema>(real: &impl Serialize) {
        let (drawn, real) = (drawn::<T>(), serde_json::to_value(real).unwrap());
        let names = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
        assert_eq!(names(&drawn["properties"]), names(&real));
    }

    #[test]
    fn the_drawings_are_like_what_they_show() {
        same::<Scope>(&registry::Scope::default());
        same::<Quota>(&registry::Quota { disk_bytes: Some(1), ..registry::Quota::default() });
        same::<Manifest>(&registry::Manifest::default());
        same::<Limits>(&policy::Limits::default());
    }

    #[test]
    fn so_are_the_lists_of_names() {
        use policy::Boundary as B;
        use registry::Role as R;
        let roles = [R::Operator, R::Admin, R::Deploy, R::Call];
        assert_eq!(drawn::<Role>()["enum"], json!(roles));
        let boundaries = [B::Call, B::Session, B::Server, B::Tenant];
        assert_eq!(drawn::<Boundary>()["enum"], json!(boundaries));
    }
}
