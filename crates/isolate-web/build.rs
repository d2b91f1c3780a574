//! Finds the npm package that carries the streams classes and tells the compiler where it is.
use std::path::Path;

const STREAMS: &str = "node_modules/web-streams-polyfill/dist/ponyfill.mjs";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={STREAMS}");
    let root = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let path = Path::new(&root).join(STREAMS);
    if !path.is_file() {
        println!("cargo::error=`{}` is missing", path.display());
        println!("cargo::error=hint: run `scripts/web.sh` once; it installs the pinned npm packages");
        return;
    }
    println!("cargo::rustc-env=BULKHEAD_STREAMS_JS={}", path.display());
}
