//! Who is calling, once that is known.

use registry::{Key, Quota, Role, Scope, Timestamp};
use std::sync::Arc;

/// What the subject of a token begins with, so that nobody's `sub` can be taken for the id of a key.
const OAUTH: &str = "oauth:";

/// Whoever sent a request.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The key they showed. None for a token of the issuer.
    pub key: Option<Arc<Key>>,
    /// Id of the key, or `oauth:ISSUER#SUB` for a token: what the audit log calls them. Unique in a tenant, also when the
    /// configuration names another issuer, who may give the same `sub` to somebody else.
    pub subject: String,
    /// None for an operator.
    pub tenant: Option<String>,
    pub role: Role,
    pub scope: Scope,
    /// The key's own quota; what it does not say is the tenant's.
    pub quota: Quota,
    /// Whose quota it is. Unique on the host.
    pub quota_id: String,
    /// When the key or token ends. A stream that outlives it should end with it.
    pub expires_at: Option<Timestamp>,
}

impl Caller {
    pub(crate) fn of_key(key: &Arc<Key>) -> Caller {
        Caller {
            key: Some(key.clone()),
            subject: key.id.clone(),
            tenant: key.tenant.clone(),
            role: key.role,
            scope: key.scope.clone(),
            quota: key.quota.clone(),
            quota_id: key.id.clone(),
            expires_at: key.expires_at,
        }
    }

    pub(super) fn of_token(
        issuer: &str,
        sub: &str,
        tenant: &str,
        role: Role,
        scope: Scope,
        expires_at: Timestamp,
    ) -> Caller {
        // An issuer has no fragment, so what comes before the first `#` is all of it.
        let subject = format!("{OAUTH}{issuer}#{sub}");
        Caller {
            key: None,
            quota_id: format!("{tenant}/{subject}"),
            subject,
            tenant: Some(tenant.to_owned()),
            role,
            scope,
            quota: Quota::default(),
            expires_at: Some(expires_at),
        }
    }

    /// Who they are, in words for people who have to recognise them.
    pub fn for_people(&self) -> String {
        match &self.key {
            Some(key) if key.name.is_empty() => format!("the key {}", key.id),
            Some(key) => format!("the key “{}” ({})", key.name, key.id),
            None => format!("the user “{}”, by a token", self.subject.trim_start_matches(OAUTH)),
        }
    }

    /// Whether they belong to this tenant. An operator belongs to all.
    pub fn of_tenant(&self, tenant: &str) -> bool {
        match &self.tenant {
            Some(own) => own == tenant,
            None => self.role == Role::Operator,
        }
    }

    /// Whether the scope has this server in it. One that lists tools only has the servers of those tools: a key for one
    /// tool of one server must not open the resources of all the others.
    pub fn may_use_server(&self, server: &str) -> bool {
        let listed = self.scope.servers.as_ref().is_none_or(|servers| servers.iter().any(|s| s == server));
        let has_tools =
            self.scope.tools.as_ref().is_none_or(|tools| tools.iter().any(|t| of_server(t, server).is_some()));
        listed && has_tools
    }

    /// Whether resources, prompts and completions of a server are open as well. A scope that lists tools is for those tools.
    pub fn may_use_rest(&self, server: &str) -> bool {
        self.scope.tools.is_none() && self.may_use_server(server)
    }

    pub fn may_use_tool(&self, server: &str, tool: &str) -> bool {
        if !self.may_use_server(server) {
            return false;
        }
        let matches = |pattern: &str| match pattern.strip_suffix('*') {
            Some(prefix) => tool.starts_with(prefix),
            None => tool == pattern,
        };
        let Some(tools) = &self.scope.tools else { return true };
        tools.iter().filter_map(|t| of_server(t, server)).any(matches)
    }
}

/// The tool's part of `server/tool`, if that is the server. A pattern without a slash is for no server.
fn of_server<'a>(pattern: &'a str, server: &str) -> Option<&'a str> {
    pattern.split_once('/').and_then(|(name, tool)| (name == server).then_some(tool))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scoped(servers: Option<&[&str]>, tools: Option<&[&str]>) -> Caller {
        let owned = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect();
        let scope = Scope { servers: servers.map(owned), tools: tools.map(owned) };
        Caller::of_token("https://id.example", "ann", "acme", Role::Call, scope, 2000)
    }

    #[test]
    fn without_a_scope_everything_of_the_tenant() {
        let caller = scoped(None, None);
        assert!(caller.may_use_server("prices") && caller.may_use_tool("prices", "double"));
        assert!(caller.of_tenant("acme") && !caller.of_tenant("evil"));
    }

    #[test]
    fn a_list_of_servers_is_complete() {
        let caller = scoped(Some(&["prices"]), None);
        assert!(caller.may_use_tool("prices", "double"));
        assert!(!caller.may_use_server("bills") && !caller.may_use_tool("bills", "pay"));
        assert!(!scoped(Some(&[]), None).may_use_server("prices"));
    }

    #[test]
    fn a_list_of_tools_opens_no_other_server() {
        let caller = scoped(None, Some(&["prices/double", "bills/get_*"]));
        assert!(caller.may_use_server("prices") && caller.may_use_server("bills") && !caller.may_use_server("mail"));
        assert!(caller.may_use_tool("prices", "double") && !caller.may_use_tool("prices", "double2"));
        assert!(caller.may_use_tool("bills", "get_all") && !caller.may_use_tool("bills", "pay"));
        assert!(!caller.may_use_tool("prices", "get_all"));
    }

    #[test]
    fn a_list_of_tools_opens_no_resources_or_prompts() {
        for tools in [&["prices/double"] as &[_], &["prices/*"]] {
            assert!(!scoped(None, Some(tools)).may_use_rest("prices"));
            assert!(!scoped(Some(&["prices"]), Some(tools)).may_use_rest("prices"));
        }
        assert!(scoped(Some(&["prices"]), None).may_use_rest("prices") && scoped(None, None).may_use_rest("prices"));
        assert!(!scoped(Some(&["prices"]), None).may_use_rest("bills"));
    }

    #[test]
    fn both_lists_must_agree() {
        let caller = scoped(Some(&["prices"]), Some(&["prices/double", "bills/pay"]));
        assert!(caller.may_use_tool("prices", "double"));
        assert!(!caller.may_use_server("bills") && !caller.may_use_tool("bills", "pay"));
    }

    #[test]
    fn odd_patterns_open_nothing() {
        for pattern in ["", "*", "prices", "/", "*/*", "/double", "prices*/double"] {
            assert!(!scoped(None, Some(&[pattern])).may_use_tool("prices", "double"), "{pattern}");
        }
        assert!(scoped(None, Some(&["prices/*"])).may_use_tool("prices", "double"));
        assert!(!scoped(None, Some(&["prices/d*e"])).may_use_tool("prices", "double"));
    }

    #[test]
    fn a_caller_of_no_tenant_belongs_to_all_only_as_operator() {
        let mut caller = scoped(None, None);
        caller.tenant = None;
        assert!(!caller.of_tenant("acme"));
        caller.role = Role::Operator;
        assert!(caller.of_tenant("acme"));
    }

    #[test]
    fn a_subject_is_never_the_id_of_a_key() {
        let caller = scoped(None, None);
        assert_eq!(caller.subject, "oauth:https://id.example#ann");
        assert_eq!(caller.quota_id, "acme/oauth:https://id.example#ann");
    }

    #[test]
    fn the_same_sub_of_another_issuer_is_somebody_else() {
        let of = |issuer, sub| Caller::of_token(issuer, sub, "acme", Role::Call, Scope::default(), 2000);
        let (ann, other) = (of("https://id.example", "ann"), of("https://other.example", "ann"));
        assert_ne!(ann.subject, other.subject);
        assert_ne!(ann.quota_id, other.quota_id);
    }
}
