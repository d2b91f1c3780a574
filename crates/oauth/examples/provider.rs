//! A provider to try things with: prints its URL and runs until it is killed.
//!
//! `provider [--port N] [--life SECONDS|never] [--client-id ID] [--client-secret SECRET|none] [--redirect-uri URI]...
//! [--no-rotation] [--forms]`

#[path = "../tests/provider/mod.rs"]
mod provider;

use provider::Settings;
use std::time::Duration;

#[tokio::main]
async fn main() {
    let mut settings = Settings { client_secret: Some("example-client-secret".into()), ..Settings::default() };
    let mut port = 0;
    let mut arguments = std::env::args().skip(1);
    while let Some(flag) = arguments.next() {
        let mut value = || arguments.next().unwrap_or_else(|| panic!("{flag} needs a value"));
        match flag.as_str() {
            "--port" => port = value().parse().expect("a port"),
            "--life" => {
                let life = value();
                settings.life = (life != "never").then(|| Duration::from_secs(life.parse().expect("seconds")));
            }
            "--client-id" => settings.client_id = value(),
            "--client-secret" => settings.client_secret = Some(value()).filter(|secret| secret != "none"),
            "--redirect-uri" => settings.redirect_uris.push(value()),
            "--no-rotation" => settings.rotate = false,
            "--forms" => settings.forms = true,
            _ => panic!("{flag} is no flag of this"),
        }
    }
    let running = provider::start(port, settings).await;
    println!("{}", running.url(""));
    std::future::pending::<()>().await;
}
