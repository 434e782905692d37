//! Links the unwinder statically, so that programs with this preload need no libgcc_s.
//!
//! rustc asks the linker for `-lgcc_s` by name, and `-static-libgcc` does not change that. A linker
//! script with that name comes first in the search and selects the static unwinder. If the compiler
//! has none, the library needs libgcc_s, which is no error.
// A build script runs on the developer's machine, not in a job, and cannot use forebay-host.
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
