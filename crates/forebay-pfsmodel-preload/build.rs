//! Links the unwinder into the library, so that the programs it is loaded into need no libgcc_s.
//!
//! rustc asks the linker for `-lgcc_s` by name, and `-static-libgcc` does not change that. A linker script of
//! that name, found first, names the static unwinder instead. Where the compiler has none, nothing is changed
//! and the library needs libgcc_s, which is no error.
// A build script runs on the developer's machine, not in a job; forebay-host is no part of it.
#![allow(clippy::disallowed_methods)]

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let Ok(folder) = std::env::var("OUT_DIR") else {
        return;
    };
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let Ok(answer) = Command::new(compiler).arg("-print-file-name=libgcc_eh.a").output() else {
        return;
    };
    let archive = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
    if !Path::new(&archive).is_absolute() || !Path::new(&archive).exists() {
        return;
    }
    if std::fs::write(Path::new(&folder).join("libgcc_s.so"), format!("INPUT({archive})\n")).is_ok()
    {
        println!("cargo:rustc-link-search=native={folder}");
    }
}
