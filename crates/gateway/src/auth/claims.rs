//! What a token says, once its signature is known to be the issuer's.

use super::settings::OAuthSettings;
use super::{Denied, Resource};
use registry::{Role, Scope};
use serde_json::{Map, Value};

/// What is taken over of a subject into logs and the like.
const MAX_SUBJECT_BYTES: usize = 255;

/// What is kept of a token.
#[derive(Debug, PartialEq)]
pub(super) struct Claims {
    pub subject: String,
    pub tenant: String,
    /// None if no scope stands for one.
    pub role: Option<Role>,
    pub scope: Scope,
    audiences: Vec<String>,
    expires_at: u64,
    not_before: u64,
}

impl Claims {
    /// Everything that does not depend on the time or on what is asked for.
    pub fn parse(payload: &[u8], settings: &OAuthSettings) -> Result<Claims, Denied> {
        let claims: Map<String, Value> =
            serde_json::from_slice(payload).map_err(|_| Denied::Invalid("the token is malformed"))?;
        if claims.get("iss").and_then(Value::as_str) != Some(&settings.issuer) {
            return Err(Denied::Invalid("the token is of another issuer"));
        }
        let subject = claims.get("sub").and_then(Value::as_str).filter(|sub| is_subject(sub));
        let tenant = claim(&claims, &settings.tenant_claim).and_then(Value::as_str).filter(|tenant| !tenant.is_empty());
        let scopes = scopes(&claims, &settings.scope_claims);
        Ok(Claims {
            subject: subject.ok_or(Denied::Invalid("the token names no usable subject"))?.to_owned(),
            tenant: tenant.ok_or(Denied::Invalid("the token names no tenant"))?.to_owned(),
            role: role(&claims, &scopes, settings),
            scope: narrowed(&scopes),
            audiences: texts(claims.get("aud")).map(str::to_owned).collect(),
            expires_at: time(&claims, "exp")?.ok_or(Denied::Invalid("the token does not say when it expires"))?,
            not_before: time(&claims, "nbf")?.unwrap_or(0),
        })
    }

    pub fn check_time(&self, now: u64, leeway: u64) -> Result<(), Denied> {
        if now >= self.ends(leeway) {
            return Err(Denied::Invalid("the token has expired"));
        }
        if now.saturating_add(leeway) < self.not_before {
            return Err(Denied::Invalid("the token is not valid yet"));
        }
        Ok(())
    }

    pub fn check_audience(&self, resource: &Resource<'_>, public_url: &str, more: &[String]) -> Result<(), Denied> {
        let meant = |audience: &String| more.contains(audience) || resource.is_audience(public_url, audience);
        if self.audiences.iter().any(meant) {
            Ok(())
        } else {
            Err(Denied::Invalid("the token is not made out to this resource"))
        }
    }

    /// From then on it counts no more.
    pub fn ends(&self, leeway: u64) -> u64 {
        self.expires_at.saturating_add(leeway)
    }
}

/// By its name, or as a JSON pointer: issuers like names with slashes and dots in them, so neither separates.
fn claim<'a>(claims: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    let Some(pointer) = name.strip_prefix('/') else { return claims.get(name) };
    let mut steps = pointer.split('/').map(|step| step.replace("~1", "/").replace("~0", "~"));
    let first = claims.get(&steps.next()?)?;
    steps.try_fold(first, |value, step| value.get(&step))
}

fn is_subject(subject: &str) -> bool {
    !subject.is_empty() && subject.len() <= MAX_SUBJECT_BYTES && !subject.chars().any(char::is_control)
}

/// RFC 7519 allows fractions of seconds.
fn time(claims: &Map<String, Value>, name: &str) -> Result<Option<u64>, Denied> {
    match claims.get(name) {
        None => Ok(None),
        // The cast is cut off at both ends of the range.
        Some(Value::Number(number)) => {
            Ok(Some(number.as_u64().unwrap_or_else(|| number.as_f64().unwrap_or(0.0) as u64)))
        }
        Some(_) => Err(Denied::Invalid("a time in the token is no number")),
    }
}

/// A text or a list of texts.
fn texts(value: Option<&Value>) -> impl Iterator<Item = &str> {
    let list = match value {
        Some(Value::Array(list)) => list.as_slice(),
        Some(one) => std::slice::from_ref(one),
        None => &[],
    };
    list.iter().filter_map(Value::as_str)
}

fn scopes<'a>(claims: &'a Map<String, Value>, names: &[String]) -> Vec<&'a str> {
    names.iter().flat_map(|name| texts(claims.get(name))).flat_map(str::split_ascii_whitespace).collect()
}

fn role(claims: &Map<String, Value>, scopes: &[&str], settings: &OAuthSettings) -> Option<Role> {
    let by_claim = |name: &String| match claim(claims, name)?.as_str()? {
        "admin" => Some(Role::Admin),
        "deploy" => Some(Role::Deploy),
        "call" => Some(Role::Call),
        _ => None,
    };
    if let Some(name) = &settings.role_claim {
        return by_claim(name);
    }
    let names = &settings.scopes;
    let ranked = [(&names.admin, Role::Admin), (&names.deploy, Role::Deploy), (&names.call, Role::Call)];
    ranked.into_iter().find(|(name, _)| scopes.contains(&name.as_str())).map(|(_, role)| role)
}

/// `server:NAME` and `tool:SERVER/TOOL`. Each of them adds, as scopes of OAuth do, so a server that stands there whole
/// keeps all its tools beside single tools of others. Without any of them the token is good for the whole tenant.
fn narrowed(scopes: &[&str]) -> Scope {
    let with = |prefix| scopes.iter().filter_map(move |scope: &&str| scope.strip_prefix(prefix));
    let whole: Vec<&str> = with("server:").collect();
    let tools: Vec<&str> = with("tool:").collect();
    if whole.is_empty() && tools.is_empty() {
        return Scope::default();
    }
    let of_tools = tools.iter().filter_map(|tool| tool.split_once('/')).map(|(server, _)| server);
    let servers = whole.iter().copied().chain(of_tools).map(str::to_owned).collect();
    let tools = (!tools.is_empty()).then(|| {
        whole.iter().map(|server| format!("{server}/*")).chain(tools.iter().map(|tool| (*tool).to_owned())).collect()
    });
    Scope { servers: Some(servers), tools }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const ISSUER: &str = "https://idp.example";

    fn good() -> Value {
        json!({
            "iss": ISSUER, "sub": "ann", "tenant": "acme", "exp": 2000, "nbf": 1000,
            "aud": "https://mcp.example.com/acme/mcp", "scope": "openid mcp:call"
        })
    }

    fn parse(claims: &Value, settings: &OAuthSettings) -> Result<Claims, Denied> {
        Claims::parse(&serde_json::to_vec(claims).unwrap(), settings)
    }

    fn with(name: &str, value: Value) -> Result<Claims, Denied> {
        let mut claims = good();
        claims[name] = value;
        parse(&claims, &OAuthSettings::new(ISSUER))
    }

    #[test]
    fn a_good_one() {
        let claims = with("more", json!([1])).unwrap();
        assert_eq!((claims.subject.as_str(), claims.tenant.as_str()), ("ann", "acme"));
        assert_eq!(claims.role, Some(Role::Call));
        assert_eq!(claims.scope, Scope::default());
    }

    #[test]
    fn what_must_be_there_must_be_right() {
        for (name, values) in [
            (
                "iss",
                vec![
                    json!(null),
                    json!(""),
                    json!("https://idp.example/"),
                    json!([ISSUER]),
                    json!("HTTPS://idp.example"),
                ],
            ),
            ("sub", vec![json!(null), json!(""), json!(7), json!("a\nb"), json!("x".repeat(MAX_SUBJECT_BYTES + 1))]),
            ("tenant", vec![json!(null), json!(""), json!(["acme"]), json!({"acme": 1})]),
            ("exp", vec![json!(null), json!("2000"), json!([2000]), json!(true)]),
            ("nbf", vec![json!(null), json!("x")]),
        ] {
            for value in values {
                assert!(with(name, value.clone()).is_err(), "{name} = {value}");
            }
        }
        for name in ["iss", "sub", "tenant", "exp"] {
            let mut claims = good();
            claims.as_object_mut().unwrap().remove(name);
            assert!(parse(&claims, &OAuthSettings::new(ISSUER)).is_err(), "{name}");
        }
        for payload in ["", "null", "[]", "\"x\"", "{", "{\"iss\": \"https://idp.example\"} x"] {
            assert!(Claims::parse(payload.as_bytes(), &OAuthSettings::new(ISSUER)).is_err(), "{payload}");
        }
    }

    #[test]
    fn time_with_leeway() {
        let claims = with("exp", json!(2000.9)).unwrap();
        for now in [970, 1000, 2000, 2029] {
            assert_eq!(claims.check_time(now, 30), Ok(()), "{now}");
        }
        for now in [0, 969, 2030, u64::MAX] {
            assert!(claims.check_time(now, 30).is_err(), "{now}");
        }
    }

    #[test]
    fn times_at_the_end_of_the_range() {
        for (exp, good) in [
            (json!(-1), false),
            (json!(0), false),
            (json!(1e300), true),
            (json!(u64::MAX), true),
            (json!(-1e300), false),
        ] {
            assert_eq!(with("exp", exp.clone()).unwrap().check_time(1500, 30).is_ok(), good, "{exp}");
        }
        assert!(with("nbf", json!(1e300)).unwrap().check_time(u64::MAX - 1, 30).is_err());
    }

    #[test]
    fn audiences() {
        let resource = Resource::Server { tenant: "acme", server: "prices" };
        let check = |audience: Value, more: &[&str]| {
            let more: Vec<String> = more.iter().map(|m| (*m).to_owned()).collect();
            with("aud", audience).unwrap().check_audience(&resource, "https://mcp.example.com", &more).is_ok()
        };
        assert!(check(json!("https://mcp.example.com/acme/prices/mcp"), &[]));
        assert!(check(json!(["x", "https://mcp.example.com/acme/mcp"]), &[]));
        assert!(check(json!(["api"]), &["api"]));
        for bad in
            [json!(null), json!([]), json!(""), json!("x"), json!(7), json!(["https://mcp.example.com/evil/mcp"])]
        {
            assert!(!check(bad.clone(), &["api"]), "{bad}");
        }
    }

    #[test]
    fn roles_by_scope_or_by_claim() {
        for (scope, role) in [
            (json!("mcp:call"), Some(Role::Call)),
            (json!("mcp:call mcp:deploy"), Some(Role::Deploy)),
            (json!(["mcp:admin", "mcp:call"]), Some(Role::Admin)),
            (json!("openid"), None),
            (json!("mcp:callx mcp:operator operator MCP:CALL"), None),
            (json!({"mcp:call": true}), None),
        ] {
            assert_eq!(with("scope", scope.clone()).unwrap().role, role, "{scope}");
        }
        let mut settings = OAuthSettings::new(ISSUER);
        settings.role_claim = Some("/app/role".to_owned());
        for (value, role) in
            [(json!({"role": "admin"}), Some(Role::Admin)), (json!({"role": "operator"}), None), (json!(null), None)]
        {
            let mut claims = good();
            claims["app"] = value;
            assert_eq!(parse(&claims, &settings).unwrap().role, role, "the scope counts no more");
        }
    }

    #[test]
    fn the_other_name_of_the_scope_claim() {
        let mut claims = good();
        claims.as_object_mut().unwrap().remove("scope");
        claims["scp"] = json!(["mcp:call", "server:prices"]);
        let claims = parse(&claims, &OAuthSettings::new(ISSUER)).unwrap();
        assert_eq!(claims.role, Some(Role::Call));
        assert_eq!(claims.scope.servers.unwrap(), ["prices"]);
    }

    #[test]
    fn the_tenant_may_lie_deeper_or_have_an_odd_name() {
        for (name, value) in [
            ("https://example.com/tenant", json!({"https://example.com/tenant": "acme"})),
            ("/org/ten~1ant", json!({"org": {"ten/ant": "acme"}})),
        ] {
            let mut settings = OAuthSettings::new(ISSUER);
            settings.tenant_claim = name.to_owned();
            let mut claims = good();
            claims.as_object_mut().unwrap().remove("tenant");
            assert!(parse(&claims, &settings).is_err());
            claims.as_object_mut().unwrap().extend(value.as_object().unwrap().clone());
            assert_eq!(parse(&claims, &settings).unwrap().tenant, "acme");
        }
    }

    #[test]
    fn scopes_narrow_and_add_up() {
        let scope = |text: &str| with("scope", json!(text)).unwrap().scope;
        let list = |names: &[&str]| Some(names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>());
        assert_eq!(scope("mcp:call server:prices"), Scope { servers: list(&["prices"]), tools: None });
        assert_eq!(
            scope("mcp:call tool:prices/double"),
            Scope { servers: list(&["prices"]), tools: list(&["prices/double"]) }
        );
        assert_eq!(
            scope("mcp:call tool:prices/double server:bills"),
            Scope { servers: list(&["bills", "prices"]), tools: list(&["bills/*", "prices/double"]) }
        );
        // Something that narrows and says nothing leaves nothing.
        assert_eq!(scope("mcp:call tool:"), Scope { servers: Some(vec![]), tools: list(&[""]) });
    }
}
