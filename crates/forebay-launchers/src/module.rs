//! The `module` stand-in. Where the shell has the real one, a function, that goes before us.

use std::ffi::OsString;

use forebay_terminal::print_warning;

/// `module` of a job on a machine without modules: scripts that load some go on.
pub fn module(words: &[OsString]) -> i32 {
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    print_warning(&format!(
        "module {}: there are no modules here; what is in PATH is used",
        words.join(" ")
    ));
    0
}
