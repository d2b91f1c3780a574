//! A certificate authority for one jail: it vouches for names to that jail alone.

use crate::denied::Denied;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use time::{Duration, OffsetDateTime};

/// How long a jail may live.
const AGE: Duration = Duration::days(365);
const LEAF_AGE: Duration = Duration::days(7);
/// Then a new one is made.
const LEAF_USE: Duration = Duration::days(1);
/// Clocks differ.
const BEFORE: Duration = Duration::hours(1);
const MOST_KEPT: usize = 256;

/// Its key is nowhere but in memory, and whoever trusts its certificate trusts this host with all of its TLS.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    leaf_key: KeyPair,
    made: Mutex<HashMap<String, (OffsetDateTime, Arc<ServerConfig>)>>,
}

fn failed(error: rcgen::Error) -> Denied {
    Denied::tls(format!("a certificate could not be made: {error}"))
}

impl Authority {
    pub fn new() -> Result<Authority, Denied> {
        let mut params = params(Vec::new(), "Bulkhead egress", AGE)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().map_err(failed)?).map_err(failed)?;
        Ok(Authority { issuer, leaf_key: KeyPair::generate().map_err(failed)?, made: Mutex::default() })
    }

    /// What the jail is to trust, beside or instead of the machine's own.
    pub fn certificate_pem(&self) -> String {
        self.issuer.pem()
    }

    /// Speaks for a name, in HTTP/1.1 only.
    pub(super) fn speak_for(&self, name: &str) -> Result<Arc<ServerConfig>, Denied> {
        let now = OffsetDateTime::now_utc();
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((since, config)) = made.get(name)
            && now - *since < LEAF_USE
        {
            return Ok(config.clone());
        }
        if made.len() >= MOST_KEPT {
            made.clear();
        }
        let config = Arc::new(self.config(name)?);
        made.insert(name.to_owned(), (now, config.clone()));
        Ok(config)
    }

    fn config(&self, name: &str) -> Result<ServerConfig, Denied> {
        let mut params = params(vec![name.to_owned()], name, LEAF_AGE)?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let leaf = params.signed_by(&self.leaf_key, &self.issuer).map_err(failed)?;
        let wrong = |error: &dyn std::fmt::Display| Denied::tls(format!("TLS cannot be set up: {error}"));
        let key = PrivateKeyDer::try_from(self.leaf_key.serialize_der()).map_err(|error| wrong(&error))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.map_err(|error| wrong(&error))?.with_no_client_auth();
        let mut config = builder.with_single_cert(vec![leaf.der().clone()], key).map_err(|error| wrong(&error))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}

fn params(names: Vec<String>, common: &str, age: Duration) -> Result<CertificateParams, Denied> {
    let mut params = CertificateParams::new(names).map_err(failed)?;
    params.distinguished_name = DistinguishedName::new();
    // Longer ones do not fit; the name that counts is another field.
    params.distinguished_name.push(DnType::CommonName, common.chars().take(64).collect::<String>());
    let now = OffsetDateTime::now_utc();
    (params.not_before, params.not_after) = (now - BEFORE, now + age);
    Ok(params)
}
