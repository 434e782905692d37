//! What a job still has to stage out, as the guard asks for it.

/// What is not at its destination yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outstanding {
    /// Files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Why not all could be looked at.
    pub error: Option<String>,
}

/// Work that is open when the job ends.
pub trait OpenWork: Sync {
    /// May something be staged out, as far as is known now?
    fn is_asked_for(&self) -> bool;
    /// What would have to be staged out now, as long as it is to go on. Only names, sizes and times are looked at.
    fn outstanding(&self, go_on: &dyn Fn() -> bool) -> Outstanding;
    /// Bytes per second that the job's own drain copies, if known.
    fn bytes_per_s(&self) -> Option<f64>;
}
