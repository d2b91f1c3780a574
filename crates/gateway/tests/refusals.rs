//! Every route of the host with every kind of key. A route without its row here fails the suite.

mod stage;

use registry::{PolicyChange, Role, Scope};
use serde_json::Value;
use stage::{Seen, Stage, in_time, servers};
use std::collections::BTreeSet;

/// Who asks. The thing asked for is `acme`'s, and the server is `prices`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Nobody,
    /// Something that never was a key.
    Garbage,
    Revoked,
    Expired,
    Call,
    Deploy,
    Admin,
    /// An admin of another tenant.
    OtherTenant,
    /// An admin of this tenant, for another server.
    OtherServer,
    Operator,
}

use Who::*;

const EVERYBODY: [Who; 10] =
    [Nobody, Garbage, Revoked, Expired, Call, Deploy, Admin, OtherTenant, OtherServer, Operator];

/// What they hear, in that order. 415 is for who may send a body, and sent none; 406 and 400 for who reached an MCP
/// endpoint with a request that makes no sense there.
type Row = (&'static str, &'static str, [u16; 10]);

#[rustfmt::skip]
const TABLE: &[Row] = &[
    //                                                                       Nobody Garbage Revoked Expired  Call Deploy Admin  OtherTenant OtherServer Operator
    ("GET",    "/admin/v1/openapi.json",                                      [200, 200, 200, 200,  200, 200, 200,  200, 200,  200]),
    ("GET",    "/admin/v1/limits",                                            [401, 401, 401, 401,  200, 200, 200,  200, 200,  200]),
    ("GET",    "/admin/v1/host",                                              [401, 401, 401, 401,  403, 403, 403,  403, 403,  200]),
    ("GET",    "/admin/v1/audit/head",                                        [401, 401, 401, 401,  403, 403, 403,  403, 403,  200]),
    ("POST",   "/admin/v1/reload",                                            [401, 401, 401, 401,  403, 403, 403,  403, 403,  422]),
    ("POST",   "/admin/v1/keys",                                              [401, 401, 401, 401,  403, 403, 403,  403, 403,  415]),
    ("GET",    "/admin/v1/keys",                                              [401, 401, 401, 401,  403, 403, 403,  403, 403,  200]),
    ("DELETE", "/admin/v1/keys/{id}",                                         [401, 401, 401, 401,  403, 403, 403,  403, 403,  204]),
    ("POST",   "/admin/v1/tenants",                                           [401, 401, 401, 401,  403, 403, 403,  403, 403,  415]),
    ("GET",    "/admin/v1/tenants",                                           [401, 401, 401, 401,  403, 403, 403,  403, 403,  200]),
    ("GET",    "/admin/v1/tenants/{tenant}",                                  [401, 401, 401, 401,  200, 200, 200,  404, 200,  200]),
    ("PATCH",  "/admin/v1/tenants/{tenant}",                                  [401, 401, 401, 401,  403, 403, 415,  404, 403,  415]),
    ("DELETE", "/admin/v1/tenants/{tenant}",                                  [401, 401, 401, 401,  403, 403, 403,  404, 403,  204]),
    ("POST",   "/admin/v1/tenants/{tenant}/keys",                             [401, 401, 401, 401,  403, 403, 415,  404, 415,  415]),
    ("GET",    "/admin/v1/tenants/{tenant}/keys",                             [401, 401, 401, 401,  403, 403, 200,  404, 200,  200]),
    ("DELETE", "/admin/v1/tenants/{tenant}/keys/{id}",                        [401, 401, 401, 401,  403, 403, 204,  404, 404,  204]),
    ("GET",    "/admin/v1/tenants/{tenant}/servers",                          [401, 401, 401, 401,  200, 200, 200,  404, 200,  200]),
    ("GET",    "/admin/v1/tenants/{tenant}/servers/{server}",                 [401, 401, 401, 401,  200, 200, 200,  404, 404,  200]),
    ("DELETE", "/admin/v1/tenants/{tenant}/servers/{server}",                 [401, 401, 401, 401,  403, 403, 204,  404, 404,  204]),
    ("POST",   "/admin/v1/tenants/{tenant}/servers/{server}/quarantine",      [401, 401, 401, 401,  403, 403, 415,  404, 404,  415]),
    // There is no layer of this name, for whoever may ask.
    ("GET",    "/admin/v1/tenants/{tenant}/layers/{digest}",                  [401, 401, 401, 401,  403, 404, 404,  404, 404,  404]),
    ("PUT",    "/admin/v1/tenants/{tenant}/layers/{digest}",                  [401, 401, 401, 401,  403, 404, 404,  404, 404,  404]),
    ("POST",   "/admin/v1/tenants/{tenant}/servers/{server}/deployments",     [401, 401, 401, 401,  403, 415, 415,  404, 404,  415]),
    ("GET",    "/admin/v1/tenants/{tenant}/servers/{server}/deployments",     [401, 401, 401, 401,  403, 200, 200,  404, 404,  200]),
    ("GET",    "/admin/v1/tenants/{tenant}/servers/{server}/deployments/{id}", [401, 401, 401, 401,  403, 200, 200,  404, 404,  200]),
    ("POST",   "/admin/v1/tenants/{tenant}/servers/{server}/deployments/{id}/activate",
                                                                              [401, 401, 401, 401,  403, 200, 200,  404, 404,  200]),
    ("POST",   "/admin/v1/tenants/{tenant}/servers/{server}/deployments/{id}/approve",
                                                                              [401, 401, 401, 401,  403, 415, 415,  404, 404,  415]),
    ("GET",    "/admin/v1/tenants/{tenant}/servers/{server}/deployments/{id}/files",
                                                                              [401, 401, 401, 401,  403, 200, 200,  404, 404,  200]),
    ("GET",    "/admin/v1/tenants/{tenant}/servers/{server}/next",            [401, 401, 401, 401,  403, 200, 200,  404, 404,  200]),
    ("GET",    "/admin/v1/tenants/{tenant}/servers/{server}/egress",          [401, 401, 401, 401,  403, 200, 200,  404, 404,  200]),
    ("GET",    "/admin/v1/tenants/{tenant}/secrets",                          [401, 401, 401, 401,  403, 200, 200,  404, 403,  200]),
    ("PUT",    "/admin/v1/tenants/{tenant}/secrets/{name}",                   [401, 401, 401, 401,  403, 403, 415,  404, 403,  415]),
    ("PATCH",  "/admin/v1/tenants/{tenant}/secrets/{name}",                   [401, 401, 401, 401,  403, 403, 415,  404, 403,  415]),
    ("DELETE", "/admin/v1/tenants/{tenant}/secrets/{name}",                   [401, 401, 401, 401,  403, 403, 204,  404, 403,  204]),
    ("POST",   "/admin/v1/tenants/{tenant}/secrets/rotate",                   [401, 401, 401, 401,  403, 403, 204,  404, 403,  204]),
    ("POST",   "/admin/v1/host/master-key",                                   [401, 401, 401, 401,  403, 403, 403,  403, 403,  422]),
    ("GET",    "/admin/v1/tenants/{tenant}/providers",                        [401, 401, 401, 401,  200, 200, 200,  404, 200,  200]),
    ("PUT",    "/admin/v1/tenants/{tenant}/providers/{name}",                 [401, 401, 401, 401,  403, 403, 415,  404, 403,  415]),
    ("PATCH",  "/admin/v1/tenants/{tenant}/providers/{name}",                 [401, 401, 401, 401,  403, 403, 415,  404, 403,  415]),
    ("DELETE", "/admin/v1/tenants/{tenant}/providers/{name}",                 [401, 401, 401, 401,  403, 403, 204,  404, 403,  204]),
    ("POST",   "/admin/v1/tenants/{tenant}/providers/{name}/connect",         [401, 401, 401, 401,  200, 200, 200,  404, 200,  200]),
    ("POST",   "/admin/v1/tenants/{tenant}/providers/{name}/confirm",         [401, 401, 401, 401,  415, 415, 415,  404, 415,  415]),
    ("DELETE", "/admin/v1/tenants/{tenant}/providers/{name}/connect",         [401, 401, 401, 401,  404, 404, 404,  404, 404,  404]),
    ("GET",    "/admin/v1/tenants/{tenant}/connections",                      [401, 401, 401, 401,  200, 200, 200,  404, 200,  200]),
    ("GET",    "/admin/v1/me",                                                [401, 401, 401, 401,  200, 200, 200,  200, 200,  200]),
    ("GET",    "/admin/v1/tenants/{tenant}/servers/{server}/logs",            [401, 401, 401, 401,  200, 200, 200,  404, 404,  200]),
    ("GET",    "/admin/v1/tenants/{tenant}/calls",                            [401, 401, 401, 401,  200, 200, 200,  404, 200,  200]),
    ("POST",   "/{tenant}/{server}/mcp",                                      [401, 401, 401, 401,  415, 403, 415,  404, 404,  415]),
    ("GET",    "/{tenant}/{server}/mcp",                                      [401, 401, 401, 401,  406, 403, 406,  404, 404,  406]),
    ("DELETE", "/{tenant}/{server}/mcp",                                      [401, 401, 401, 401,  400, 403, 400,  404, 404,  400]),
    ("POST",   "/{tenant}/mcp",                                               [401, 401, 401, 401,  415, 403, 415,  404, 415,  415]),
    ("GET",    "/{tenant}/mcp",                                               [401, 401, 401, 401,  406, 403, 406,  404, 406,  406]),
    ("DELETE", "/{tenant}/mcp",                                               [401, 401, 401, 401,  400, 403, 400,  404, 400,  400]),
    // Without OAuth there are none; with it, they are for everybody (below).
    ("GET",    "/.well-known/oauth-protected-resource/{tenant}/{server}/mcp", [404, 404, 404, 404,  404, 404, 404,  404, 404,  404]),
    ("GET",    "/.well-known/oauth-protected-resource/{tenant}/mcp",          [404, 404, 404, 404,  404, 404, 404,  404, 404,  404]),
    // A link is all there is to show; these are none.
    ("GET",    "/connect/{ticket}",                                           [404, 404, 404, 404,  404, 404, 404,  404, 404,  404]),
    ("POST",   "/connect/{ticket}",                                           [404, 404, 404, 404,  404, 404, 404,  404, 404,  404]),
    ("GET",    "/connect/callback",                                           [400, 400, 400, 400,  400, 400, 400,  400, 400,  400]),
    ("POST",   "/connect/cancel",                                             [404, 404, 404, 404,  404, 404, 404,  404, 404,  404]),
    ("GET",    "/metrics",                                                    [401, 401, 401, 401,  404, 404, 404,  404, 404,  200]),
    ("GET",    "/healthz",                                                    [200, 200, 200, 200,  200, 200, 200,  200, 200,  200]),
    ("GET",    "/readyz",                                                     [200, 200, 200, 200,  200, 200, 200,  200, 200,  200]),
];

/// A stage and a token for each of them.
struct Trial {
    stage: Stage,
    revoked: String,
    expired: String,
    other_server: String,
}

impl Trial {
    async fn new() -> Trial {
        let stage = Stage::new().await;
        let (key, revoked) = stage.key(Some("acme"), Role::Admin, Scope::default(), None);
        stage.registry.revoke_key(&stage::host(), Some("acme"), &key.id).unwrap();
        let (_, expired) = stage.key(Some("acme"), Role::Admin, Scope::default(), Some(registry::now() - 1));
        let (_, other_server) = stage.key(Some("acme"), Role::Admin, servers(&["stock"]), None);
        let [revoked, expired, other_server] = [revoked, expired, other_server].map(|token| token.expose().to_owned());
        Trial { stage, revoked, expired, other_server }
    }

    fn token(&self, who: Who) -> &str {
        match who {
            Nobody => "",
            Garbage => "bh_admin_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
            Revoked => &self.revoked,
            Expired => &self.expired,
            Call => &self.stage.acme.call,
            Deploy => &self.stage.acme.deploy,
            Admin => &self.stage.acme.admin,
            OtherTenant => &self.stage.globex.admin,
            OtherServer => &self.other_server,
            Operator => &self.stage.operator,
        }
    }

    /// A path with names of things that are really there, made anew if the last one who asked deleted them.
    fn fill(&self, path: &str) -> String {
        let current = self.stage.deploy("acme", "prices", "export default {}");
        let victim = |tenant| self.stage.key(tenant, role(tenant), Scope::default(), None).0.id;
        let id = match path {
            "/admin/v1/keys/{id}" => victim(None),
            "/admin/v1/tenants/{tenant}/keys/{id}" => victim(Some("acme")),
            _ => current.id.clone(),
        };
        if path.ends_with("/secrets/{name}") {
            self.stage.registry.set_secret(&stage::host(), "acme", "TOKEN", "a long secret".into()).unwrap();
        }
        if path.contains("/providers/{name}") {
            let settings = serde_json::json!({ "authorize_url": "https://hub.example/a", "token_url": "https://hub.example/t", "client_id": "c" });
            let allow = PolicyChange::allow(["s"], ["api.example.com"], ["credentials"]).unwrap();
            self.stage.registry.set_provider_with(&stage::host(), "acme", "hub", settings, None, &allow).unwrap();
        }
        let name = if path.contains("/providers/") { "hub" } else { "TOKEN" };
        path.replace("{tenant}", "acme").replace("{server}", "prices").replace("{id}", &id).replace("{name}", name)
    }
}

fn role(tenant: Option<&str>) -> Role {
    if tenant.is_some() { Role::Call } else { Role::Operator }
}

#[tokio::test]
async fn every_route_has_its_row() {
    let document = in_time(async { Stage::new().await.get("", "/admin/v1/openapi.json").await.json() }).await;
    let mut routes: BTreeSet<(String, String)> = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let methods = item.as_object().unwrap().keys();
        routes.extend(methods.map(|method| (method.to_ascii_uppercase(), path.clone())));
    }
    assert!(routes.len() > 20, "the document lists the admin routes");
    routes.extend(gateway::ROUTES.iter().map(|(method, path)| ((*method).to_owned(), (*path).to_owned())));
    let rows: BTreeSet<_> = TABLE.iter().map(|(method, path, _)| ((*method).to_owned(), (*path).to_owned())).collect();
    assert_eq!(rows.len(), TABLE.len(), "no row is there twice");
    assert_eq!(rows, routes, "rows on the left, routes on the right");
}

#[tokio::test]
async fn everybody_hears_what_the_table_says() {
    in_time(async {
        let mut wrong = Vec::new();
        for (method, path, expected) in TABLE {
            let trial = Trial::new().await;
            for (who, expected) in EVERYBODY.into_iter().zip(expected) {
                let filled = trial.fill(path);
                let before = trial.stage.registry.directory().revision;
                let seen = trial.stage.ask(trial.token(who), method, &filled, None).await;
                if seen.status != *expected {
                    wrong.push(format!(
                        "{method} {path} as {who:?}: {} instead of {expected}: {}",
                        seen.status,
                        seen.text()
                    ));
                }
                if path.starts_with("/connect/") {
                    assert!(seen.text().starts_with("<!doctype html>"), "{path} is for browsers");
                    assert!(seen.headers.contains_key("content-security-policy"), "{path}");
                } else if !seen.status.is_success() {
                    check_refusal(&seen, &format!("{method} {path} as {who:?}"));
                    let after = trial.stage.registry.directory().revision;
                    assert_eq!(before, after, "{method} {path} as {who:?}: a refusal changes nothing");
                }
            }
            assert_eq!(trial.stage.wall.asked(), 0, "{method} {path}: nothing of this wakes a compartment");
        }
        assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    })
    .await;
}

/// Whatever refuses, it says so in the same form, and tells strangers how to show who they are.
fn check_refusal(seen: &Seen, what: &str) {
    let body: Value = seen.json();
    if body["jsonrpc"] != "2.0" {
        let error = body["error"].as_object().unwrap_or_else(|| panic!("{what}: {body}"));
        let fields: Vec<_> = error.keys().map(String::as_str).collect();
        assert_eq!(fields, ["code", "hint", "message"], "{what}");
        let message = error["message"].as_str().unwrap();
        assert!(!message.ends_with('.') && !message.starts_with(char::is_uppercase), "{what}: {message}");
    }
    assert_eq!(seen.headers.contains_key("www-authenticate"), seen.status == 401, "{what}");
}

#[tokio::test]
async fn a_head_is_guarded_like_the_body_it_belongs_to() {
    in_time(async {
        let trial = Trial::new().await;
        for (_, path, expected) in TABLE.iter().filter(|(method, path, _)| *method == "GET" && !path.ends_with("/mcp"))
        {
            for (who, expected) in EVERYBODY.into_iter().zip(expected).filter(|(_, status)| **status >= 400) {
                let seen = trial.stage.ask(trial.token(who), "HEAD", &trial.fill(path), None).await;
                assert_eq!(seen.status, *expected, "HEAD {path} as {who:?}");
            }
        }
    })
    .await;
}

/// Nobody learns from an answer whether what is not theirs exists.
#[tokio::test]
async fn what_is_not_theirs_looks_like_what_is_not_there() {
    in_time(async {
        let trial = Trial::new().await;
        let stage = &trial.stage;
        for (method, path, _) in TABLE.iter().filter(|(_, path, _)| path.contains("{tenant}")) {
            let at = |tenant: &str, server: &str| {
                path.replace("{tenant}", tenant)
                    .replace("{server}", server)
                    .replace("{id}", "key-1")
                    .replace("{name}", "TOKEN")
            };
            // One of globex looks at acme, which exists, and at a tenant that does not.
            let exists = stage.ask(&stage.globex.admin, method, &at("acme", "prices"), None).await;
            let missing = stage.ask(&stage.globex.admin, method, &at("nobody", "prices"), None).await;
            assert_same(&exists, &missing, &format!("{method} {path}: tenants"));
            if !path.contains("{server}") || path.starts_with("/.well-known") {
                continue;
            }
            // One who may use `stock` looks at `prices`, which exists, and at a server that does not.
            let exists = stage.ask(&trial.other_server, method, &at("acme", "prices"), None).await;
            let missing = stage.ask(&trial.other_server, method, &at("acme", "nothing"), None).await;
            assert_same(&exists, &missing, &format!("{method} {path}: servers"));
        }
    })
    .await;
}

fn assert_same(one: &Seen, other: &Seen, what: &str) {
    assert_eq!(one.status, 404, "{what}");
    assert_eq!(other.status, 404, "{what}");
    assert_eq!(one.text(), other.text(), "{what}");
    let headers = |seen: &Seen| {
        let mut headers = seen.headers.clone();
        headers.remove("date");
        headers
    };
    assert_eq!(headers(one), headers(other), "{what}");
}

#[tokio::test]
async fn other_spellings_of_a_path_open_nothing() {
    in_time(async {
        let trial = Trial::new().await;
        for path in [
            "//admin/v1/tenants",
            "/admin//v1/tenants",
            "/admin/v1//tenants",
            "/ADMIN/v1/tenants",
            "/admin/v1/tenants/",
            "/admin/v1/tenants/acme/",
            "/admin/v1/tenants/%61cme",
            "/admin/v1/tenants/acme%2Fkeys",
            "/admin/v1/tenants/globex/../acme",
            "/admin/v1/tenants/globex%2F..%2Facme",
            "/admin/v1/tenants/acme/servers/prices%00",
            "/admin/v1/tenants/%FF%FE",
            "/admin/v1/openapi.json/../tenants",
            "/%61dmin/v1/tenants",
            "/admin/v2/tenants",
            "/admin/v1",
            "/admin/v1/",
            "/admin",
            "/",
        ] {
            for who in [Nobody, Garbage, OtherTenant] {
                let seen = trial.stage.ask(trial.token(who), "GET", path, None).await;
                assert!([401, 404].contains(&seen.status.as_u16()), "{path} as {who:?}: {}", seen.status);
                check_refusal(&seen, path);
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_key_in_any_other_place_is_no_key() {
    in_time(async {
        let trial = Trial::new().await;
        let key = &trial.stage.operator;
        for (name, value) in [
            ("authorization", key.clone()),
            ("authorization", format!("Basic {key}")),
            ("authorization", format!("Bearer {key} {key}")),
            ("authorization", format!("Bearer {key},")),
            ("authorization", format!("Bearer {}", &key[..key.len() - 1])),
            ("authorization", format!("Bearer {}", key.to_ascii_uppercase())),
            ("x-api-key", key.clone()),
            ("cookie", format!("key={key}")),
            ("proxy-authorization", format!("Bearer {key}")),
        ] {
            let request = axum::http::Request::builder().uri("/admin/v1/tenants").header("host", "127.0.0.1");
            let request = request.header(name, &value).body(axum::body::Body::empty()).unwrap();
            let seen = stage::whole(trial.stage.send(request).await).await;
            assert_eq!(seen.status, 401, "{name}: {value}");
        }
        let seen = trial.stage.get("", &format!("/admin/v1/tenants?access_token={key}")).await;
        assert!(seen.status.is_client_error(), "{}", seen.status);
    })
    .await;
}

/// Where to get a token is for everybody to know, and says nothing about who exists.
#[tokio::test]
async fn with_oauth_its_metadata_is_for_everybody() {
    in_time(async {
        let mut settings = gateway::Settings::default();
        settings.auth.oauth = Some(gateway::auth::OAuthSettings::new("http://127.0.0.1:1/realm"));
        let stage = Stage::with(settings, None).await;
        for path in ["acme/prices/mcp", "acme/mcp", "nobody/nothing/mcp", "nobody/mcp"] {
            for key in ["", "garbage", &stage.globex.call] {
                let seen = stage.get(key, &format!("/.well-known/oauth-protected-resource/{path}")).await;
                assert_eq!(seen.status, 200, "{path}");
                assert_eq!(seen.json()["resource"], format!("http://127.0.0.1:8470/{path}"));
            }
        }
        assert_eq!(stage.wall.asked(), 0);
    })
    .await;
}
