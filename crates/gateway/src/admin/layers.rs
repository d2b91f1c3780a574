//! The files of programs, uploaded ahead of the deployments that run them.

use super::Admin;
use super::access::Asker;
use super::body::Names;
use super::error::Error;
use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use bundle::Digest;
use futures_util::StreamExt;
use registry::Role;
use serde::Serialize;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use utoipa::ToSchema;

/// The largest layer, with its index.
const LARGEST: u64 = (1 << 30) + (17 << 20);
/// No piece of a body is waited for any longer, nor all of it.
const PATIENCE: Duration = Duration::from_secs(30);
const ALL: Duration = Duration::from_secs(900);
/// Pieces between the network and the disk.
const PIECES: usize = 16;

/// A layer that is there.
#[derive(Serialize, ToSchema)]
pub struct LayerView {
    /// SHA-256 of its index, as hex.
    digest: String,
    /// Bytes of all its files.
    size: u64,
}

/// See whether a layer is there.
///
/// Role: deploy. All of it is read and verified: one that is damaged is not there, and can be uploaded again.
#[utoipa::path(get, path = "/tenants/{tenant}/layers/{digest}", tag = "deployments", operation_id = "get_layer",
    params(("tenant" = String, Path), ("digest" = String, Path)), responses((status = OK, body = LayerView)))]
pub async fn get(
    State(admin): State<Arc<Admin>>,
    asker: Asker,
    Names((tenant, digest)): Names<(String, String)>,
) -> Result<Json<LayerView>, Error> {
    asker.tenant(&admin.app.registry().directory(), &tenant)?;
    asker.role(Role::Deploy)?;
    let wanted = parse(&digest)?;
    let _place = admin.deploying.enter(&tenant)?;
    let size = admin.registry(move |registry| registry.layer_size(&tenant, &wanted)).await?;
    Ok(Json(LayerView { digest, size: size.ok_or_else(Error::not_found)? }))
}

/// Upload the files of a program.
///
/// Role: deploy. The body is the length of the index (four bytes, the highest first), the index, and the bytes of every file
/// in the order of the index. A layer that no deployment names within an hour is forgotten.
#[utoipa::path(put, path = "/tenants/{tenant}/layers/{digest}", tag = "deployments", operation_id = "put_layer",
    params(("tenant" = String, Path), ("digest" = String, Path)),
    request_body(content = String, content_type = "application/octet-stream"),
    responses((status = OK, body = LayerView)))]
pub async fn put(
    State(admin): State<Arc<Admin>>,
    asker: Asker,
    Names((tenant, digest)): Names<(String, String)>,
    request: Request,
) -> Result<Json<LayerView>, Error> {
    asker.tenant(&admin.app.registry().directory(), &tenant)?;
    asker.role(Role::Deploy)?;
    let wanted = parse(&digest)?;
    let _place = admin.deploying.enter(&tenant)?;
    let announced = request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    if announced.and_then(|text| text.parse::<u64>().ok()).is_some_and(|length| length > LARGEST) {
        let message = format!("a layer has at most {} MiB", LARGEST >> 20);
        return Err(Error::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message));
    }
    let (pieces, arriving) = mpsc::channel(PIECES);
    let feeding = tokio::spawn(tokio::time::timeout(ALL, feed(request.into_body(), pieces)));
    let received = admin
        .registry(move |registry| registry.receive_layer(&tenant, &wanted, Arriving { arriving, piece: Bytes::new() }))
        .await;
    feeding.abort();
    Ok(Json(LayerView { digest, size: received?.size }))
}

fn parse(digest: &str) -> Result<Digest, Error> {
    digest.parse().map_err(|_| Error::not_found())
}

/// Hands a body over to a thread that writes it down. What is not said to be over is not.
async fn feed(body: Body, pieces: mpsc::Sender<io::Result<Bytes>>) {
    let mut stream = body.into_data_stream();
    loop {
        let piece = match tokio::time::timeout(PATIENCE, stream.next()).await {
            Ok(Some(Ok(piece))) if piece.is_empty() => continue,
            Ok(Some(Ok(piece))) => Ok(piece),
            Ok(Some(Err(_))) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(None) => Ok(Bytes::new()),
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        };
        let last = !matches!(&piece, Ok(piece) if !piece.is_empty());
        if pieces.send(piece).await.is_err() || last {
            return;
        }
    }
}

struct Arriving {
    arriving: mpsc::Receiver<io::Result<Bytes>>,
    piece: Bytes,
}

impl Read for Arriving {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.piece.is_empty() {
            self.piece = self.arriving.blocking_recv().unwrap_or(Err(io::ErrorKind::UnexpectedEof.into()))?;
        }
        let count = self.piece.len().min(into.len());
        into[..count].copy_from_slice(&self.piece.split_to(count));
        Ok(count)
    }
}
