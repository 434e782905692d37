//! Sets the soname, so that programs find the library by its name and not by the path at link time.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libdatawarp.so");
    println!("cargo::rerun-if-changed=build.rs");
}
