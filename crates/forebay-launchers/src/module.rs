//! The `module` stand-in. A shell function `module` takes precedence over it.

use std::ffi::OsString;

use forebay_terminal::print_warning;

/// Prints a warning and succeeds, so that scripts that load modules continue.
pub fn module(words: &[OsString]) -> i32 {
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    print_warning(&format!(
        "module {}: there are no modules here; what is in PATH is used",
        words.join(" ")
    ));
    0
}
