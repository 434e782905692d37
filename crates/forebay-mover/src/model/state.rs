//! The state of a file, as the journal stores it.

/// The state of a file. Journals on disk and SQL statements contain these numbers, so they never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(i64)]
pub enum State {
    /// The copy has not begun.
    Planned = 0,
    /// A partial file can exist.
    Copying = 1,
    /// The partial file is complete, and synced if requested. Or planning found the destination
    /// unchanged; Forebay has not synced it.
    Copied = 2,
    /// Forebay read it back, and the content matches.
    Verified = 3,
    /// It has its final name.
    Placed = 4,
    /// The copy failed; the journal has the reason.
    Failed = 5,
}

impl State {
    /// All states, in order.
    pub const ALL: [Self; 6] =
        [Self::Planned, Self::Copying, Self::Copied, Self::Verified, Self::Placed, Self::Failed];

    /// The name in the table and in the output of `--json`.
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
