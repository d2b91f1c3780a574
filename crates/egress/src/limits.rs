//! How much, how long, how often.

macro_rules! limits {
    ($($(#[doc = $doc:literal])+ $name:ident = $default:literal $(<< $shift:literal)?;)*) => {
        /// Every number that bounds a request. The operator may change them.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Limits {
            $($(#[doc = $doc])+ pub $name: u64,)*
        }

        impl Default for Limits {
            fn default() -> Limits {
                Limits { $($name: $default $(<< $shift)?,)* }
            }
        }

        impl Limits {
            /// The table of docs/egress.md.
            pub fn table() -> String {
                let mut out = String::from("| limit | default | meaning |\n|---|---|---|\n");
                $(out += &format!("| `{}` | {} |{} |\n", stringify!($name), Limits::default().$name, concat!($($doc),+));)*
                out
            }
        }
    };
}

limits! {
    /// Milliseconds for looking a name up, connecting and TLS, together.
    connect_ms = 10_000;
    /// Milliseconds without progress until the response's headers are there. Sending counts as progress.
    first_byte_ms = 30_000;
    /// Milliseconds that a reader of the body waits for the next byte.
    idle_ms = 30_000;
    /// Milliseconds from the request to the last byte of its response, redirects included.
    total_ms = 120_000;
    /// Milliseconds that a request waits for a place among those of its tenant and host.
    queue_ms = 10_000;
    /// Redirects that are followed.
    redirects = 10;
    /// Bytes of a request's body.
    request_bytes = 8 << 20;
    /// Bytes of a response's body as they come.
    response_bytes = 32 << 20;
    /// Bytes of a response's body when it is unpacked.
    decoded_bytes = 32 << 20;
    /// Bytes out for one byte in, when unpacking, beyond the first MiB.
    decoded_ratio = 100;
    /// Headers of a request, and of a response.
    headers = 100;
    /// Bytes of all headers of a request, and of a response.
    header_bytes = 32 << 10;
    /// Bytes of a body that one `fetch_read` gives at most.
    chunk_bytes = 128 << 10;
    /// Requests that one call has open at once.
    open_per_call = 32;
    /// Requests that one tenant has open at once.
    open_per_tenant = 64;
    /// Requests that one tenant has open at once to one host.
    open_per_host = 16;
    /// Names that one tenant has looked up at once.
    lookups_per_tenant = 8;
    /// Requests per second of one tenant, redirects included.
    rate_per_tenant = 50;
    /// Requests per second of one tenant to one host.
    rate_per_host = 20;
    /// Seconds for which rates may be saved up.
    burst_s = 5;
    /// Milliseconds that a client of the proxy has for the headers of a request, and for its part of TLS.
    header_ms = 10_000;
    /// Milliseconds without a byte in either direction after which a tunnel is closed.
    tunnel_idle_ms = 60_000;
    /// Milliseconds after which a tunnel is closed in any case.
    tunnel_ms = 600_000;
    /// Connections of the whole host, idle ones included.
    connections = 1024;
    /// Milliseconds that an idle connection is kept for the next request of the same deployment.
    keep_ms = 30_000;
    /// Milliseconds after which a connection is not used again.
    age_ms = 300_000;
}
