//! Numbers of files and bytes by state.

use crate::model::state::State;
use forebay_host::messages::counted;

/// A number of files and links, and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct Number {
    /// Files and links.
    pub files: u64,
    /// Bytes. A file with several names counts once.
    pub bytes: u64,
}

/// Numbers of files in each state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Indexed by [`State`].
    pub by_state: [Number; 6],
    /// Failed transfers, failed directories, and sources that cannot be staged.
    pub other_failures: u64,
    /// Directories that are not created yet, or do not have their final mode and times.
    pub open_directories: u64,
}

impl Counts {
    /// Files and links in this state.
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

    /// Files and links in any state.
    pub fn all(&self) -> Number {
        self.sum(|_| true)
    }

    /// Files and links without a final name, failed ones included.
    pub fn missing(&self) -> Number {
        self.sum(|state| state != State::Placed)
    }

    /// Files and links that can still be copied.
    pub fn open(&self) -> Number {
        self.sum(|state| state < State::Placed)
    }

    /// Is there work left that can still be done?
    pub fn is_open(&self) -> bool {
        self.open().files > 0 || self.open_directories > 0
    }

    /// Describes the remaining work for a message.
    pub(crate) fn left(&self) -> String {
        let Number { files, bytes } = self.open();
        match (files, self.open_directories) {
            (0, directories) => format!("directories not finished: {directories}"),
            _ => format!("not arrived: {}, {bytes} bytes", counted(files, "file")),
        }
    }

    /// Is everything copied, without any failure?
    pub fn is_complete(&self) -> bool {
        self.missing().files == 0 && self.other_failures == 0 && self.open_directories == 0
    }
}
