#![forbid(unsafe_code)]
//! The row `http/floor`: what HTTP alone costs here. Takes the id out of the body and answers what the call is answered
//! with; no protocol, no tool. Prints the port it listens on.

use anyhow::Result;
use axum::Router;
use axum::body::Bytes;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::serve::ListenerExt;
use serde::Deserialize;
use std::io::Write;
use tokio::net::TcpListener;

#[derive(Deserialize)]
struct Request {
    id: u32,
}

async fn answer(body: Bytes) -> Response {
    let Ok(Request { id }) = serde_json::from_slice(&body) else { return StatusCode::BAD_REQUEST.into_response() };
    let text =
        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[],"structuredContent":{{"doublePrice":90}}}}}}"#);
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}

#[tokio::main]
async fn main() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    writeln!(std::io::stdout(), "{}", listener.local_addr()?.port())?;
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, Router::new().route("/mcp", post(answer))).await?;
    Ok(())
}
