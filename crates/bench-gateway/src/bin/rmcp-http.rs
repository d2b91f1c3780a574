#![forbid(unsafe_code)]
//! The peer `rmcp/http`: rmcp's own HTTP service, stateless with JSON answers, both eras; no sandbox, no key.
//! Prints the port it listens on.

use axum::Router;
use axum::serve::ListenerExt;
use rmcp::handler::server::{router::tool::ToolRouter, wrapper::Parameters};
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
};
use rmcp::{Json, ServerHandler, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::sync::Arc;
use tokio::net::TcpListener;

#[derive(Deserialize, JsonSchema)]
struct Price {
    price: f64,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Doubled {
    double_price: f64,
}

#[derive(Clone)]
struct Prices {
    tool_router: ToolRouter<Prices>,
}

#[tool_router]
impl Prices {
    #[tool(description = "Doubles a price.")]
    async fn double_price(&self, Parameters(Price { price }): Parameters<Price>) -> Json<Doubled> {
        Json(Doubled { double_price: price * 2.0 })
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Prices {}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let prices = Prices { tool_router: Prices::tool_router() };
    let config = StreamableHttpServerConfig::default().with_legacy_session_mode(false).with_json_response(true);
    let service =
        StreamableHttpService::new(move || Ok(prices.clone()), Arc::new(LocalSessionManager::default()), config);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    writeln!(std::io::stdout(), "{port}")?;
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, Router::new().route_service("/mcp", service)).await?;
    Ok(())
}
