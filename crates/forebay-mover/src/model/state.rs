//! How far a file is, as the journal stores it.

/// How far a file is. Journals on disk and the SQL statements hold these numbers, so they never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(i64)]
pub enum State {
    /// Nothing was done.
    Planned = 0,
    /// There may be a temporary file.
    Copying = 1,
    /// The temporary file is whole, and synced where that was asked for. Or there is none: it was found at its
    /// place, unchanged, when it was planned, and was not synced.
    Copied = 2,
    /// It was read again, and is what was written.
    Verified = 3,
    /// It has its final name.
    Placed = 4,
    /// It failed, for a reason.
    Failed = 5,
}

impl State {
    /// All, in order.
    pub const ALL: [Self; 6] =
        [Self::Planned, Self::Copying, Self::Copied, Self::Verified, Self::Placed, Self::Failed];

    /// As `--json` and the table call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::Copying => "copying",
            Self::Copied => "copied",
            Self::Verified => "verified",
            Self::Placed => "placed",
            Self::Failed => "failed",
        }
    }
}
