//! The interface for the data that a job still has to stage out.

/// Data not at their destination yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outstanding {
    /// The number of files.
    pub files: u64,
    /// The bytes of these files.
    pub bytes: u64,
    /// Why some of the files could not be checked.
    pub error: Option<String>,
}

/// The work that remains at the end of a job.
pub trait OpenWork: Sync {
    /// Whether there may be data to stage out, as far as is known.
    fn is_asked_for(&self) -> bool;
    /// The data to stage out now. Reads only file status. Stops if `should_continue` returns false.
    fn outstanding(&self, should_continue: &dyn Fn() -> bool) -> Outstanding;
    /// The rate of the job's own drain in bytes per second, if known.
    fn bytes_per_s(&self) -> Option<f64>;
}
