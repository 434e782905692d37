//! Gives the library its name, so that programs find it by that and not by the path it was linked from.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libdatawarp.so");
    println!("cargo::rerun-if-changed=build.rs");
}
