//! What a jailed program needs to find the proxy, and to trust it.

use super::Authority;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// Where Node finds what makes it use the proxy.
const NODE: &str = "/run/bulkhead/proxy.cjs";
const NODE_SOURCE: &[u8] = include_bytes!("../../js/proxy.cjs");
const OWN: &str = "/run/bulkhead/authority.pem";
const ALL: &str = "/run/bulkhead/certificates.pem";

/// Where systems have the authorities that they trust.
const SYSTEM: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// What programs look for their authorities by. Node adds to its own; the others know no more than the file.
const TRUSTED: [(&str, &str); 5] = [
    ("NODE_EXTRA_CA_CERTS", OWN),
    ("SSL_CERT_FILE", ALL),
    ("REQUESTS_CA_BUNDLE", ALL),
    ("CURL_CA_BUNDLE", ALL),
    ("GIT_SSL_CAINFO", ALL),
];

/// Its own loopback is no affair of the proxy's.
const DIRECT: &str = "localhost,127.0.0.1,::1";

/// Variables and files that make the programs of a jail use a proxy on the jail's own loopback.
#[derive(Clone, Debug)]
pub struct Outfit {
    pub port: u16,
    pub variables: BTreeMap<String, String>,
    /// Small ones, each with its path inside.
    pub files: Vec<(PathBuf, Vec<u8>)>,
}

impl Outfit {
    /// With an authority, programs trust it beside those of this machine.
    pub fn new(port: u16, authority: Option<&Authority>) -> Outfit {
        let proxy = format!("http://127.0.0.1:{port}");
        let proxies = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
        let node = format!("--require={NODE}");
        let own =
            [("NO_PROXY", DIRECT), ("no_proxy", DIRECT), ("NODE_USE_ENV_PROXY", "1"), ("NODE_OPTIONS", node.as_str())];
        let trusted = TRUSTED.into_iter().filter(|_| authority.is_some());
        let all = proxies.map(|name| (name, proxy.as_str())).into_iter().chain(own).chain(trusted);
        let variables = all.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let mut files = vec![(NODE.into(), NODE_SOURCE.to_vec())];
        if let Some(authority) = authority {
            let own = authority.certificate_pem();
            let system = SYSTEM.iter().find_map(|path| fs::read_to_string(path).ok()).unwrap_or_default();
            files.push((ALL.into(), format!("{system}\n{own}").into_bytes()));
            files.push((OWN.into(), own.into_bytes()));
        }
        Outfit { port, variables, files }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_variables_name_is_among_the_files() {
        let authority = Authority::new().unwrap();
        for authority in [None, Some(&authority)] {
            let outfit = Outfit::new(3128, authority);
            let named = outfit.variables.values().filter_map(|value| value.strip_prefix("--require=").or(Some(value)));
            for path in named.filter(|value| value.starts_with('/')) {
                assert!(outfit.files.iter().any(|(file, bytes)| file == path && !bytes.is_empty()), "{path}");
            }
            assert_eq!(outfit.variables["https_proxy"], "http://127.0.0.1:3128");
            assert_eq!(outfit.variables.contains_key("SSL_CERT_FILE"), authority.is_some());
        }
    }

    #[test]
    fn the_authority_stands_beside_those_of_the_system() {
        let authority = Authority::new().unwrap();
        let outfit = Outfit::new(1, Some(&authority));
        let file = |path: &str| {
            let found = outfit.files.iter().find(|(file, _)| file.as_os_str() == path);
            String::from_utf8(found.unwrap().1.clone()).unwrap()
        };
        assert_eq!(file(OWN), authority.certificate_pem());
        assert!(file(ALL).ends_with(&authority.certificate_pem()));
    }
}
