//! Numbers of files and bytes by state.

use crate::model::state::State;

/// So many files and links, and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Number {
    /// Files and links.
    pub files: u64,
    /// Bytes; a file with several names counts once.
    pub bytes: u64,
}

/// How many files are how far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// By [`State`], in its order.
    pub by_state: [Number; 6],
    /// Transfers, directories and things that cannot be staged at all.
    pub other_failures: u64,
    /// Directories that are not made yet, or have not got their modes and times.
    pub open_directories: u64,
}

impl Counts {
    /// Those in this state.
    pub fn of(&self, state: State) -> Number {
        self.by_state[state as usize]
    }

    pub(crate) fn sum(&self, states: impl Fn(State) -> bool) -> Number {
        let wanted = State::ALL.into_iter().filter(|state| states(*state));
        wanted.fold(Number::default(), |sum, state| Number {
            files: sum.files + self.of(state).files,
            bytes: sum.bytes + self.of(state).bytes,
        })
    }

    /// All of them.
    pub fn all(&self) -> Number {
        self.sum(|_| true)
    }

    /// Those that are not where they belong yet, failed ones included.
    pub fn missing(&self) -> Number {
        self.sum(|state| state != State::Placed)
    }

    /// Those that can be moved yet.
    pub fn open(&self) -> Number {
        self.sum(|state| state < State::Placed)
    }

    /// Is there anything left that can be done yet?
    pub fn is_open(&self) -> bool {
        self.open().files > 0 || self.open_directories > 0
    }

    /// What can be done yet, in words.
    pub(crate) fn left(&self) -> String {
        let Number { files, bytes } = self.open();
        match (files, self.open_directories) {
            (0, directories) => format!("{directories} directories are not finished"),
            _ => format!("{files} files of {bytes} bytes have not arrived"),
        }
    }

    /// Has everything arrived that was asked for?
    pub fn is_complete(&self) -> bool {
        self.missing().files == 0 && self.other_failures == 0 && self.open_directories == 0
    }
}
