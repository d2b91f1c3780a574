# One worker on a loopback port of the kernel's choice; it may load other workers and reach nothing else.
using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "host", worker = .host),
    (name = "internet", network = (allow = [])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "host")],
);

const host :Workerd.Worker = (
  modules = [(name = "host.js", esModule = embed "host.js")],
  bindings = [(name = "LOADER", workerLoader = ())],
  compatibilityDate = "2026-01-01",
);
