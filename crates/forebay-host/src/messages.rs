//! What a step of a job reports in words, for whoever shows it to the user.

/// Receives messages for the user. Several threads may send at once.
pub trait Messages: Sync {
    /// Something unusual that does no harm.
    fn note(&self, text: &str);
    /// Something the user should know.
    fn warning(&self, text: &str);
    /// Why something was decided as it was.
    fn explain(&self, text: &str);
}
