//! Bulkhead itself, on a data directory of its own, driven as an operator would: by its command line.

use crate::call::{Form, Target};
use crate::server::{self, Server};
use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tokio::process::Command;

pub struct Host {
    pub server: Server,
    program: PathBuf,
    data: PathBuf,
    operator_key: String,
}

#[derive(Deserialize)]
pub struct Tenant {
    pub tenant: String,
    deploy_key: String,
    call_key: String,
}

impl Host {
    pub async fn start(root: &Path) -> Result<Host> {
        let data = root.join(format!("target/bench/host-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&data);
        std::fs::create_dir_all(&data)?;
        Host::start_on(root, data).await
    }

    /// Ends it and starts it again on what it kept.
    pub async fn restart(self, root: &Path) -> Result<Host> {
        self.server.stop().await;
        Host::start_on(root, self.data).await
    }

    async fn start_on(root: &Path, data: PathBuf) -> Result<Host> {
        let program = root.join("target/release/bulkhead");
        let port = server::free_port()?;
        let mut command = Command::new(&program);
        command.args(["serve", "--listen", &format!("127.0.0.1:{port}"), "--data"]).arg(&data);
        // What it says goes to a file: nobody reads a pipe here, and a full one would stop it.
        let log = std::fs::File::create(root.join("target/bench/host.log"))?;
        command.stderr(log);
        let server = match Server::start_on(command, port, "/readyz").await {
            Ok(server) => server,
            Err(error) => {
                let _ = std::fs::remove_dir_all(&data);
                return Err(error.context("`bulkhead serve` did not start (target/bench/host.log)"));
            }
        };
        let operator_key =
            std::fs::read_to_string(data.join("operator.key")).context("no operator.key")?.trim().to_owned();
        Ok(Host { server, program, data, operator_key })
    }

    pub async fn stop(self) {
        self.server.stop().await;
        let _ = std::fs::remove_dir_all(&self.data);
    }

    /// A tenant with the quota given.
    pub async fn tenant(&self, name: &str, quota: &Value) -> Result<Tenant> {
        let created = self.run(&self.operator_key, &["tenant", "create", name, "--json"]).await?;
        let tenant: Tenant = serde_json::from_str(&created).context("`tenant create` printed something else")?;
        let (path, body) = (format!("/admin/v1/tenants/{name}"), json!({ "quota": quota }).to_string());
        let reply = server::request(self.server.address, "PATCH", &path, Some(&self.operator_key), &body).await?;
        let text = String::from_utf8_lossy(&reply.body);
        ensure!(matches!(reply.status, 200 | 204), "the quota was refused: status {}, {text}", reply.status);
        Ok(tenant)
    }

    pub async fn deploy(&self, tenant: &Tenant, file: &Path, name: &str, boundary: &str) -> Result<()> {
        let server = format!("{}/{name}", tenant.tenant);
        let file = file.to_str().context("a path that is not UTF-8")?;
        let args = ["deploy", file, "--server", &server, "--boundary", boundary, "--json"];
        self.run(&tenant.deploy_key, &args).await.map(drop)
    }

    pub async fn deploy_project(&self, tenant: &Tenant, folder: &Path) -> Result<()> {
        let folder = folder.to_str().context("a path that is not UTF-8")?;
        self.run(&tenant.deploy_key, &["deploy", folder, "--json"]).await.map(drop)
    }

    pub fn target(&self, tenant: &Tenant, server: &str, form: Form) -> Target {
        Target {
            address: self.server.address,
            path: format!("/{}/{server}/mcp", tenant.tenant),
            key: Some(tenant.call_key.clone()),
            form,
        }
    }

    async fn run(&self, key: &str, args: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.program);
        command.args(args).env("BULKHEAD_URL", format!("http://{}", self.server.address)).env("BULKHEAD_KEY", key);
        let output = command.output().await?;
        if !output.status.success() {
            let said = [output.stdout, output.stderr].concat();
            bail!("`bulkhead {}` failed: {}", args.join(" "), String::from_utf8_lossy(&said).trim());
        }
        String::from_utf8(output.stdout).context("it printed something else than text")
    }
}
