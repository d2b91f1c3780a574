//! `--for`, `--to` and `--in`: which servers may use a secret or a provider, which hosts it may go to, and where in requests.

use super::names;
use super::table::{field, word};
use super::{print_answer, talk};
use crate::client::{Client, ClientError};
use clap::ArgGroup;
use registry::{AllowedPlace, SecretPolicy};
use serde_json::{Map, Value, json};
use std::process::ExitCode;

/// What a policy belongs to.
pub struct Item<'a> {
    /// `secret` or `provider`.
    pub kind: &'static str,
    pub tenant: &'a str,
    pub name: &'a str,
}

/// A policy, or none.
#[derive(clap::Args)]
pub struct Policy {
    /// A server that may use it, or `*` for all; may be repeated
    #[arg(long = "for", value_name = "SERVER", value_parser = names::any_server, requires = "to")]
    servers: Vec<String>,
    /// A host that it may go to, such as `api.example.com`, `*.example.com` or `http://localhost:8080`; may be repeated
    #[arg(long, value_name = "HOST", value_parser = names::bound_host, requires = "servers")]
    to: Vec<String>,
    /// Where it may stand in requests; may be repeated [default: credentials]
    ///
    /// `credentials`: basic authentication, AWS signatures and the usual headers (`authorization`, `x-api-key` …), bare or behind a
    /// scheme. Or one place: `header:NAME`, `query:NAME`, `cookie:NAME`, `body:/POINTER`, `basic`, `aws`. A service may store what stands
    /// elsewhere than in `credentials`. `PLACE as FORMAT` allows other text around the value, `{}` in it.
    #[arg(long = "in", value_name = "PLACE", value_parser = names::allowed_place, requires = "to")]
    places: Vec<String>,
}

/// What is taken away.
#[derive(clap::Args)]
pub struct Denied {
    /// A server that may not use it any more, or `*` for the entry of all; may be repeated
    #[arg(long = "for", value_name = "SERVER", value_parser = names::any_server, required = true)]
    servers: Vec<String>,
    /// Only this host, as the policy has it; may be repeated [default: all hosts of the server]
    #[arg(long, value_name = "HOST", value_parser = names::bound_host)]
    to: Vec<String>,
}

/// As the API takes it: each of the servers gets all of the hosts, each with all of the places.
fn change(servers: &[String], to: &[String], places: &[String]) -> Value {
    let places = if places.is_empty() { json!([AllowedPlace::CREDENTIALS]) } else { json!(places) };
    let hosts: Map<_, _> = to.iter().map(|host| (host.clone(), places.clone())).collect();
    servers.iter().map(|server| (server.clone(), Value::from(hosts.clone()))).collect::<Map<_, _>>().into()
}

/// Where a policy has to be said.
pub fn required() -> ArgGroup {
    ArgGroup::new("required_policy").arg("servers").required(true)
}

impl Policy {
    /// Nothing, if nothing was said.
    pub fn change(&self) -> Option<Value> {
        (!self.servers.is_empty()).then(|| change(&self.servers, &self.to, &self.places))
    }

    /// Changes the policy of something that is there.
    pub async fn allow(&self, client: &Client, item: &Item<'_>, json: bool) -> Result<ExitCode, ClientError> {
        let change = self.change().unwrap_or_default();
        let now = item.patch(client, &change, json).await.map_err(|error| {
            let Some(policy) = change.as_object().filter(|_| error.code() == "not_found") else { return error };
            let hint = format!("set it first, with this policy: {}", item.commands("set", policy).join(" and "));
            ClientError::refused("not_found", format!("there is no {} `{}`", item.kind, item.name), Some(hint))
        });
        item.tell(&now?)
    }
}

impl Denied {
    pub async fn run(&self, client: &Client, item: &Item<'_>, json: bool) -> Result<ExitCode, ClientError> {
        let hosts: Map<_, _> = self.to.iter().map(|host| (host.clone(), Value::Null)).collect();
        let gone = if hosts.is_empty() { Value::Null } else { hosts.into() };
        let change: Map<_, _> = self.servers.iter().map(|server| (server.clone(), gone.clone())).collect();
        let now = item.patch(client, &change.into(), json).await?;
        let every = SecretPolicy::EVERY_SERVER;
        if now.policy.get(every).is_some() && !self.servers.iter().any(|server| server == every) {
            let command = format!("bulkhead {} deny {} --for '{every}'", item.kind, item.words());
            talk(&format!("every server may still use it by the entry `{every}`, which `{command}` takes away"));
        }
        item.tell(&now)
    }
}

/// A policy after a change.
struct Now {
    policy: Value,
    printed: Option<ExitCode>,
}

impl Item<'_> {
    pub fn path(&self) -> [&str; 4] {
        let list = if self.kind == "secret" { "secrets" } else { "providers" };
        ["tenants", self.tenant, list, self.name]
    }

    /// As commands name it.
    fn words(&self) -> String {
        let between = if self.kind == "secret" { ' ' } else { '/' };
        format!("{}{between}{}", self.tenant, self.name)
    }

    async fn patch(&self, client: &Client, change: &Value, json: bool) -> Result<Now, ClientError> {
        let answer = client.patch(&self.path(), &json!({ "policy": change })).await?;
        let mut now: Value = client.read(&answer)?;
        Ok(Now { policy: now["policy"].take(), printed: json.then(|| print_answer(&answer)) })
    }

    fn tell(&self, now: &Now) -> Result<ExitCode, ClientError> {
        if let Some(printed) = now.printed {
            return Ok(printed);
        }
        talk(&format!("`{}` may be used by: {}", self.name, policy_words(&now.policy)));
        Ok(ExitCode::SUCCESS)
    }

    /// Says so if no server may use it yet.
    pub fn tell_unused(&self, policy: &Value) -> bool {
        let unused = policy.as_object().is_some_and(Map::is_empty);
        if unused {
            let allow = format!("bulkhead {} allow {} --for SERVER --to HOST", self.kind, self.words());
            talk(&format!("no server may use it yet: `{allow}`"));
        }
        unused
    }

    /// What makes a policy again, one command for each server and host.
    pub fn commands(&self, verb: &str, policy: &Map<String, Value>) -> Vec<String> {
        let usual = json!([AllowedPlace::CREDENTIALS]);
        // A provider has settings besides.
        let more = if self.kind == "provider" && verb == "set" { " …" } else { "" };
        let each = policy.iter().flat_map(|(server, hosts)| {
            hosts.as_object().into_iter().flatten().map(move |(host, places)| (server, host, places))
        });
        let command = |(server, host, places): (&String, &String, &Value)| {
            let places = places.as_array().filter(|_| *places != usual).into_iter().flatten().map(word);
            let places: String = places.map(|place| format!(" --in {}", quoted(&place))).collect();
            let server = if server == SecretPolicy::EVERY_SERVER { quoted(server) } else { server.clone() };
            let (kind, words, host) = (self.kind, self.words(), quoted(host));
            format!("`bulkhead {kind} {verb} {words}{more} --for {server} --to {host}{places}`")
        };
        each.map(command).collect()
    }
}

fn quoted(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b".-:/".contains(&b);
    if text.bytes().all(plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// A policy in a line: `prices to api.example.com; bills to *.example.org (query:key)`.
pub fn policy_words(policy: &Value) -> String {
    let usual = json!([AllowedPlace::CREDENTIALS]);
    let host = |(host, places): (&String, &Value)| match *places == usual {
        true => host.clone(),
        false => format!("{host} ({})", word(places)),
    };
    let one = |(server, hosts): (&String, &Value)| {
        let hosts: Vec<_> = hosts.as_object().into_iter().flatten().map(host).collect();
        format!("{server} to {}", hosts.join(", "))
    };
    let all: Vec<_> = policy.as_object().into_iter().flatten().map(one).collect();
    if all.is_empty() { "no server".to_owned() } else { all.join("; ") }
}

/// The policy of a secret before it goes, from a list.
pub fn policy_of<'a>(list: &'a Value, name: &str) -> Option<&'a Map<String, Value>> {
    let found = list.as_array()?.iter().find(|one| field(one, "name") == name)?;
    found["policy"].as_object().filter(|policy| !policy.is_empty())
}
