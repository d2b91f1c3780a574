//! A call needs a connection that its caller does not have: the caller is sent to a browser, and asked for that browser's code.

use super::line::{Asked, Asking, CallHost, refusal};
use crate::connect::ConnectError;
use sandbox::HostRefusal;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use std::time::Duration;

/// How often it is looked whether the browser is back.
const LOOK: Duration = Duration::from_millis(300);

/// Names of the host's own questions begin with this. The code's own never do.
pub const HOSTS_OWN: &str = "bulkhead/";

impl CallHost {
    /// Returns when the caller is connected. How long that may take, the limits of the call say.
    pub async fn connect(&self, provider: &str) -> Result<(), HostRefusal> {
        let connect = &self.app.connect;
        let (tenant, caller) = (&self.offer.record.tenant, &self.caller);
        if connect.is_shared(tenant, provider).map_err(failed)? {
            // Only an admin makes that one.
            return Err(refusal("egress_secret", &format!("the tenant is not connected to `{provider}`")));
        }
        if connect.unconfirmed(tenant, provider, caller).is_none() {
            self.open_browser(provider).await?;
        }
        while let Some(question) = connect.unconfirmed(tenant, provider, caller) {
            let code = self.ask_for_code(provider, &question).await?;
            match connect.confirm(tenant, provider, caller, &code).await {
                Ok(()) => return Ok(()),
                Err(ConnectError::WrongCode { .. }) => {}
                Err(error) => {
                    self.advise(error.to_string());
                    return Err(missing(provider));
                }
            }
        }
        // It was confirmed by another way, or it is over.
        connect.token(tenant, provider, &caller.subject).await.map(drop).map_err(failed)
    }

    /// Returns when a browser is back that has agreed.
    async fn open_browser(&self, provider: &str) -> Result<(), HostRefusal> {
        let connect = &self.app.connect;
        let (tenant, server, caller) = (&self.offer.record.tenant, &self.offer.record.server, &self.caller);
        let ticket = connect.ticket(tenant, provider, &caller.subject, caller, Some(server)).map_err(failed)?;
        let url = self.app.connect_url(&ticket);
        if !self.line.client.elicits("url") || matches!(self.line.asking, Asking::Nobody) {
            self.advise(format!(
                "`{provider}` needs to be connected first: open {url} in your own browser, agree, and confirm with the code that it \
                 shows: `bulkhead connect {tenant}/{provider} --code CODE`"
            ));
            return Err(missing(provider));
        }
        let params = json!({
            "mode": "url",
            "message": format!(
                "[bulkhead] Server `{tenant}/{server}` uses your account at `{provider}`, which is not connected yet. Open this link in \
                 your own browser. It shows you a code in the end, which you are asked for here."
            ),
            "url": url,
            "elicitationId": ticket,
        });
        self.ask_host(provider, format!("{HOSTS_OWN}connect/{provider}"), &params).await?;
        loop {
            if connect.unconfirmed(tenant, provider, caller).is_some() {
                return Ok(());
            }
            match connect.token(tenant, provider, &caller.subject).await {
                Ok(_) => return Ok(()),
                Err(ConnectError::NotConnected(_)) => tokio::time::sleep(LOOK).await,
                Err(error) => return Err(failed(error)),
            }
        }
    }

    /// The code that somebody has read in the browser.
    async fn ask_for_code(&self, provider: &str, question: &str) -> Result<String, HostRefusal> {
        let tenant = &self.offer.record.tenant;
        if !self.line.client.elicits("form") || matches!(self.line.asking, Asking::Nobody) {
            self.advise(format!(
                "your browser shows a code for `{provider}`: confirm with `bulkhead connect {tenant}/{provider} --code CODE`, then make this call \
                 again"
            ));
            return Err(missing(provider));
        }
        let params = json!({
            "mode": "form",
            "message": format!(
                "[bulkhead] Type the code that your browser shows after you agreed at `{provider}`. If you did not open a browser \
                 yourself just now, decline."
            ),
            "requestedSchema": {
                "type": "object",
                "properties": { "code": { "type": "string", "title": "Code from your browser", "minLength": 8, "maxLength": 16 } },
                "required": ["code"],
            },
        });
        let key = format!("{HOSTS_OWN}connect/{provider}/code/{question}");
        let answer = self.ask_host(provider, key, &params).await?;
        Ok(answer["content"]["code"].as_str().unwrap_or_default().to_owned())
    }

    /// Asks one question of the host's own. What is not accepted is an error.
    async fn ask_host(&self, provider: &str, key: String, params: &Value) -> Result<Value, HostRefusal> {
        let unwritable = |error: serde_json::Error| refusal("internal", &error.to_string());
        let params = to_raw_value(params).map_err(unwritable)?;
        let ask = Asked { key: key.clone(), method: "elicitation/create".to_owned(), params };
        let answers = self.put(vec![ask]).await?;
        let answer: Value = answers.get(&key).and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        if answer["action"] == "accept" { Ok(answer) } else { Err(missing(provider)) }
    }

    /// For the client alone: the code inside sees neither a link nor what is to be done with a code.
    fn advise(&self, text: String) {
        // Whoever comes second has the same to say.
        let _ = self.advice.set(text);
    }
}

fn missing(provider: &str) -> HostRefusal {
    refusal("egress_secret", &format!("the caller is not connected to `{provider}`"))
}

fn failed(error: ConnectError) -> HostRefusal {
    refusal("egress_secret", &error.to_string())
}
