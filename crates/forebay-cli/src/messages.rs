//! What the user reads on standard error.

/// Prints an error and its hint; returns the exit code given.
pub fn fail(message: &str, hint: Option<&str>, exit_code: i32) -> i32 {
    eprintln!("error: {message}");
    if let Some(hint) = hint {
        eprintln!("hint: {hint}");
    }
    exit_code
}

/// Prints a warning.
pub fn warn(message: &str) {
    eprintln!("warning: {message}");
}

/// Says what is going on.
pub fn say(message: &str) {
    eprintln!("forebay: {message}");
}
