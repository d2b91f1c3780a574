//! What a request is for, as far as that decides which tokens are meant for it.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Names are checked elsewhere; here they may still be anything that fits in a path, so they are escaped.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

const METADATA: &str = "/.well-known/oauth-protected-resource";

/// What is asked for: the tenant and server of the URL's path. Whether they exist does not matter here, so nothing that
/// is answered from this tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource<'a> {
    /// `/{tenant}/{server}/mcp`
    Server { tenant: &'a str, server: &'a str },
    /// `/{tenant}/mcp`, which offers all servers of the tenant.
    Tenant { tenant: &'a str },
    /// `/admin/v1` and everything else of the host itself.
    Host,
}

impl Resource<'_> {
    pub fn path(&self) -> String {
        match self {
            Resource::Server { tenant, server } => format!("/{}/{}/mcp", segment(tenant), segment(server)),
            Resource::Tenant { tenant } => format!("/{}/mcp", segment(tenant)),
            Resource::Host => "/admin/v1".to_owned(),
        }
    }

    /// Where RFC 9728 puts the metadata: between the host and the path. The host's own API has none, for it is no
    /// endpoint that clients discover.
    pub fn metadata_path(&self) -> Option<String> {
        match self {
            Resource::Host => None,
            _ => Some(format!("{METADATA}{}", self.path())),
        }
    }

    /// What a person calls it.
    pub(super) fn name(&self) -> String {
        match self {
            Resource::Server { tenant, server } => format!("{tenant}/{server}"),
            Resource::Tenant { tenant } => (*tenant).to_owned(),
            Resource::Host => "admin".to_owned(),
        }
    }

    /// Whether a token made out to `audience` is meant for this: for this very endpoint, or for the one of the whole
    /// tenant.
    pub(super) fn is_audience(&self, public_url: &str, audience: &str) -> bool {
        let Some(path) = audience.strip_prefix(public_url) else { return false };
        if path == self.path() {
            return true;
        }
        match self {
            Resource::Server { tenant, .. } => path == Resource::Tenant { tenant }.path(),
            _ => false,
        }
    }
}

fn segment(text: &str) -> impl std::fmt::Display + '_ {
    utf8_percent_encode(text, SEGMENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: &str = "https://mcp.example.com";
    const PRICES: Resource<'_> = Resource::Server { tenant: "acme", server: "prices" };
    const ACME: Resource<'_> = Resource::Tenant { tenant: "acme" };

    #[test]
    fn a_token_for_the_tenant_is_good_for_its_servers_and_not_the_other_way_round() {
        assert!(PRICES.is_audience(HOST, "https://mcp.example.com/acme/prices/mcp"));
        assert!(PRICES.is_audience(HOST, "https://mcp.example.com/acme/mcp"));
        assert!(ACME.is_audience(HOST, "https://mcp.example.com/acme/mcp"));
        assert!(!ACME.is_audience(HOST, "https://mcp.example.com/acme/prices/mcp"));
        assert!(Resource::Host.is_audience(HOST, "https://mcp.example.com/admin/v1"));
    }

    #[test]
    fn what_only_looks_alike_is_no_audience() {
        for audience in [
            "",
            HOST,
            "https://mcp.example.com/",
            "https://mcp.example.com/acme",
            "https://mcp.example.com/acme/prices/mcp/",
            "https://mcp.example.com/acme/prices/mcp?x",
            "https://mcp.example.com/acme/prices2/mcp",
            "https://mcp.example.com/evil/prices/mcp",
            "https://mcp.example.com/evil/mcp",
            "https://mcp.example.com.evil/acme/prices/mcp",
            "http://mcp.example.com/acme/prices/mcp",
            "https://mcp.example.com/admin/v1",
        ] {
            assert!(!PRICES.is_audience(HOST, audience), "{audience}");
        }
    }

    #[test]
    fn odd_names_cannot_make_another_path() {
        let odd = Resource::Server { tenant: "a/b", server: "\" ,x=\"\r\n%2F?#" };
        assert_eq!(odd.path(), "/a%2Fb/%22%20%2Cx%3D%22%0D%0A%252F%3F%23/mcp");
    }

    #[test]
    fn metadata_lies_between_host_and_path() {
        assert_eq!(PRICES.metadata_path().unwrap(), "/.well-known/oauth-protected-resource/acme/prices/mcp");
        assert_eq!(ACME.metadata_path().unwrap(), "/.well-known/oauth-protected-resource/acme/mcp");
        assert_eq!(Resource::Host.metadata_path(), None);
    }
}
