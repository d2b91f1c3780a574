//! The worker as an executable of its own, for a V8 that is linked in (docs/v8.md).

fn main() {
    isolate_engine::exit_now(isolate_worker::main())
}
