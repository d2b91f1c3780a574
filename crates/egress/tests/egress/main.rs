//! The door from both sides: rules, addresses, requests on real sockets, secrets, the proxy.

mod bindings;
mod classify;
mod credentials;
mod docs;
mod effort;
mod flow;
mod hostile;
mod network;
mod oracle;
mod overrides;
mod proxy;
mod redirects;
mod rig;
mod rules;
mod ssrf;
mod tls;
mod tunnels;
mod urls;
mod wire;
