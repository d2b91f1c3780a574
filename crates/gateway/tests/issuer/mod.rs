//! A small authorisation server on loopback, with real keys.

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::pkcs8::EncodePrivateKey as _;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use rand::rngs::OsRng;
use rsa::pkcs1::EncodeRsaPrivateKey as _;
use serde_json::{Value, json};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A key pair with an id.
pub struct SigningKey {
    pub id: &'static str,
    pub algorithm: Algorithm,
    pub secret: EncodingKey,
}

impl SigningKey {
    pub fn ec(id: &'static str) -> SigningKey {
        let der = p256::SecretKey::random(&mut OsRng).to_pkcs8_der().unwrap();
        SigningKey { id, algorithm: Algorithm::ES256, secret: EncodingKey::from_ec_der(der.as_bytes()) }
    }

    pub fn ed(id: &'static str) -> SigningKey {
        let secret_key = ed25519_dalek::SigningKey::generate(&mut OsRng).to_bytes();
        let der = ed25519_dalek::pkcs8::KeypairBytes { secret_key, public_key: None }.to_pkcs8_der().unwrap();
        SigningKey { id, algorithm: Algorithm::EdDSA, secret: EncodingKey::from_ed_der(der.as_bytes()) }
    }

    /// Made once: it takes seconds.
    pub fn rsa(id: &'static str) -> SigningKey {
        static DER: LazyLock<Vec<u8>> = LazyLock::new(|| {
            rsa::RsaPrivateKey::new(&mut OsRng, 2048).unwrap().to_pkcs1_der().unwrap().as_bytes().to_vec()
        });
        SigningKey { id, algorithm: Algorithm::RS256, secret: EncodingKey::from_rsa_der(&DER) }
    }

    pub fn public(&self) -> Value {
        let mut key = serde_json::to_value(Jwk::from_encoding_key(&self.secret, self.algorithm).unwrap()).unwrap();
        key["kid"] = json!(self.id);
        key
    }

    pub fn header(&self) -> Value {
        json!({"alg": serde_json::to_value(self.algorithm).unwrap(), "typ": "JWT", "kid": self.id})
    }

    pub fn token(&self, claims: &Value) -> String {
        let mut header = Header::new(self.algorithm);
        header.kid = Some(self.id.to_owned());
        jsonwebtoken::encode(&header, claims, &self.secret).unwrap()
    }

    /// With a header that no library would write.
    pub fn token_with(&self, header: &Value, claims: &Value) -> String {
        let message = format!("{}.{}", part(header), part(claims));
        let signature = jsonwebtoken::crypto::sign(message.as_bytes(), &self.secret, self.algorithm).unwrap();
        format!("{message}.{signature}")
    }
}

pub fn part(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(value).unwrap())
}

pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// What the issuer does when it is asked for something.
#[derive(Clone)]
pub enum Answer {
    Json(Value),
    Text(String),
    /// Without saying how long it is.
    Endless,
    Redirect(String),
    Status(u16),
    Never,
}

#[derive(Default)]
struct Site {
    pages: Mutex<Vec<(String, Answer)>>,
    asked: Mutex<Vec<String>>,
}

pub struct Issuer {
    pub url: String,
    site: Arc<Site>,
    task: JoinHandle<()>,
}

impl Issuer {
    pub async fn start() -> Issuer {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let site = Arc::new(Site::default());
        let router = Router::new().fallback(answer).with_state(site.clone());
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Issuer { url, site, task }
    }

    /// With metadata where RFC 8414 wants it, and these keys.
    pub async fn with_keys(keys: &[&SigningKey]) -> Issuer {
        let issuer = Issuer::start().await;
        let metadata = json!({"issuer": issuer.url, "jwks_uri": format!("{}/keys", issuer.url)});
        issuer.serve("/.well-known/oauth-authorization-server", Answer::Json(metadata));
        issuer.publish(keys);
        issuer
    }

    pub fn publish(&self, keys: &[&SigningKey]) {
        self.serve("/keys", Answer::Json(json!({"keys": keys.iter().map(|key| key.public()).collect::<Vec<_>>()})));
    }

    pub fn serve(&self, path: &str, answer: Answer) {
        let mut pages = self.site.pages.lock().unwrap();
        pages.retain(|(known, _)| known != path);
        pages.push((path.to_owned(), answer));
    }

    /// How often somebody asked for this.
    pub fn asked(&self, path: &str) -> usize {
        self.site.asked.lock().unwrap().iter().filter(|asked| *asked == path).count()
    }

    pub async fn stop(&mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
    }
}

impl Drop for Issuer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(State(site): State<Arc<Site>>, uri: Uri) -> Response {
    site.asked.lock().unwrap().push(uri.path().to_owned());
    let page = site.pages.lock().unwrap().iter().find(|(path, _)| path == uri.path()).map(|(_, answer)| answer.clone());
    match page {
        None => StatusCode::NOT_FOUND.into_response(),
        Some(Answer::Json(value)) => axum::Json(value).into_response(),
        Some(Answer::Text(text)) => text.into_response(),
        Some(Answer::Endless) => {
            let chunks =
                futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>(bytes::Bytes::from_static(&[b' '; 8192])));
            axum::body::Body::from_stream(chunks).into_response()
        }
        Some(Answer::Redirect(to)) => axum::response::Redirect::temporary(&to).into_response(),
        Some(Answer::Status(code)) => StatusCode::from_u16(code).unwrap().into_response(),
        Some(Answer::Never) => std::future::pending().await,
    }
}
