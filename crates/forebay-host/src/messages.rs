//! Messages from a step of a job to the user.

/// The number of failures that messages name; `--json` has all.
pub const FAILURES_SHOWN: usize = 10;

/// Receives messages for the user. Several threads may call it at the same time.
pub trait Messages: Sync {
    /// Reports something unusual but harmless.
    fn note(&self, text: &str);
    /// Reports a problem that the user should know about.
    fn warning(&self, text: &str);
    /// Explains a decision.
    fn explain(&self, text: &str);
}

/// The line of a byte in a text, from 1.
pub fn line_of(text: &str, byte: usize) -> usize {
    text.bytes().take(byte).filter(|byte| *byte == b'\n').count() + 1
}

/// A number with its noun: `1 file`, `2 files`.
pub fn counted(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}
