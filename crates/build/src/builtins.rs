//! The modules of Node, none of which is here, and what to use instead.

/// The name without `node:` and what follows a slash, and what to use; `None` for what is no module of Node.
pub(crate) fn instead(module: &str) -> Option<&'static str> {
    let only_node = module.strip_prefix("node:");
    let name = only_node.unwrap_or(module);
    let first = name.split_once('/').map_or(name, |(first, _)| first);
    let known = match first {
        "crypto" => "use `crypto.subtle`, `crypto.randomUUID()` and `crypto.getRandomValues()`",
        "buffer" => "use `Uint8Array`, `TextEncoder`, `TextDecoder`, `atob()` and `btoa()`",
        "fs" => "there is no file system; import the file as JSON or text, or offer it as a resource",
        "http" | "https" | "http2" => "use `fetch()`, for hosts that the server may reach",
        "net" | "tls" | "dgram" | "dns" => "there are no sockets; use `fetch()`, for hosts that the server may reach",
        "inspector" | "repl" | "readline" | "tty" => "there is no terminal; a server is called, and answers",
        "process" => "there is no process and no environment; use secrets for what should not be in the code",
        "path" => "there are no files; use `URL` for addresses, and plain strings",
        "url" => "use `URL` and `URLSearchParams`, which are there without an import",
        "querystring" => "use `URLSearchParams`",
        "child_process" | "cluster" | "worker_threads" => "there are no other processes and threads",
        "os" | "sys" => "there is no operating system to ask",
        "events" => "use `EventTarget`",
        "stream" => "use `ReadableStream`, `WritableStream` and `TransformStream`",
        "string_decoder" => "use `TextDecoder`",
        "timers" => "use `setTimeout()`, which is there without an import",
        "perf_hooks" => "use `performance.now()`",
        "util" => "use `structuredClone()`, `TextEncoder` and promises",
        "zlib" => "use `CompressionStream` and `DecompressionStream`",
        "assert" => "throw an `Error`",
        "async_hooks" => "pass what belongs to a call as an argument: the handler's `ctx`",
        "console" => "use `console`, which is there without an import",
        "constants" | "punycode" => "install a package that has it",
        "diagnostics_channel" | "trace_events" | "v8" | "vm" => "there is no way into the engine",
        "domain" => "use `try` and `catch`",
        "module" => "import what the server needs by name; it becomes one module",
        "wasi" => "there is no system interface",
        // Those that have no name without `node:`, too.
        "sqlite" if only_node.is_some() => "there is no file system; keep data where `fetch()` reaches it",
        "test" if only_node.is_some() => "leave tests out of what the entry imports",
        _ if only_node.is_some() => "there are no modules of Node; use the APIs of the web",
        _ => return None,
    };
    Some(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `require("node:module").builtinModules` of Node 26, without those that begin with an underscore.
    const ALL: &str = "assert assert/strict async_hooks buffer child_process cluster console constants crypto dgram \
        diagnostics_channel dns dns/promises domain events fs fs/promises http http2 https inspector inspector/promises \
        module net os path path/posix path/win32 perf_hooks process punycode querystring readline readline/promises repl \
        stream stream/consumers stream/promises stream/web string_decoder sys timers timers/promises tls trace_events tty \
        url util util/types v8 vm wasi worker_threads zlib";

    #[test]
    fn every_module_of_node_has_a_word() {
        for module in ALL.split_whitespace() {
            let word = instead(module).unwrap_or_else(|| panic!("{module}"));
            assert_eq!(instead(&format!("node:{module}")), Some(word));
            assert_ne!(instead("node:unheard-of"), Some(word), "{module}");
        }
        for module in ["zod", "fs-extra", "@scope/fs", "sqlite", "test", "./fs", ""] {
            assert_eq!(instead(module), None, "{module}");
        }
        assert!(instead("node:sqlite").is_some());
    }
}
