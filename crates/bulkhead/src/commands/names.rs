//! Names on the command line, checked before anything is sent.

/// A tenant's name.
pub fn tenant(text: &str) -> Result<String, String> {
    if registry::is_name(text) {
        return Ok(text.to_owned());
    }
    Err("a name has 1 to 63 of a-z, 0-9 and -, with no - at either end".to_owned())
}

/// A server and whose it is: `acme/prices`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub tenant: String,
    pub server: String,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.tenant, self.server)
    }
}

pub fn place(text: &str) -> Result<Place, String> {
    let (tenant_name, server) = text.split_once('/').ok_or("write TENANT/SERVER, as `acme/prices`")?;
    Ok(Place { tenant: tenant(tenant_name)?, server: tenant(server)? })
}

/// A tenant, and a server of theirs unless something else names it: `acme`, or `acme/prices`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub tenant: String,
    pub server: Option<String>,
}

pub fn target(text: &str) -> Result<Target, String> {
    match text.contains('/') {
        true => place(text).map(|Place { tenant, server }| Target { tenant, server: Some(server) }),
        false => tenant(text).map(|tenant| Target { tenant, server: None }),
    }
}

/// What a secret is called.
pub fn secret(text: &str) -> Result<String, String> {
    text.parse::<bundle::SecretName>().map(|name| name.to_string()).map_err(|wrong| wrong.to_string())
}

/// A server in a policy, or all of them.
pub fn any_server(text: &str) -> Result<String, String> {
    if text == registry::SecretPolicy::EVERY_SERVER { Ok(text.to_owned()) } else { tenant(text) }
}

/// A host that gets a secret.
pub fn bound_host(text: &str) -> Result<String, String> {
    text.parse::<bundle::BoundHost>().map(|host| host.to_string()).map_err(|wrong| wrong.to_string())
}

/// A place in requests.
pub fn allowed_place(text: &str) -> Result<String, String> {
    text.parse::<registry::AllowedPlace>().map(|place| place.to_string()).map_err(|wrong| wrong.to_string())
}

/// What the host calls a key or a deployment.
pub fn id(text: &str) -> Result<String, String> {
    let fits =
        (1..=100).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-:".contains(&b));
    if fits { Ok(text.to_owned()) } else { Err("this is no id".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_two_names() {
        assert_eq!(place("acme/prices").unwrap().to_string(), "acme/prices");
        for bad in ["acme", "acme/", "/prices", "acme/prices/x", "../x", "acme/..", "Acme/prices", "acme/mcp", ""] {
            assert!(place(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_id_stays_one_part_of_a_path() {
        assert!(id("key_0123-Ab").is_ok());
        for bad in ["", ".", "..", "a/b", "a%2fb", "a b", "ä"] {
            assert!(id(bad).is_err(), "{bad}");
        }
    }
}
