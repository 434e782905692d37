//! Programs that wait for the end of copies. Their connections are kept until then.
//! Never occupies a thread: who ends a copy or a request answers those whose wait is over.

use std::path::PathBuf;

use forebay_host::socket::Channel;
use forebay_record::Selection;
use forebay_requests::Answer;

use crate::state::{Shared, State};

/// Connections that wait at most: copies need descriptors, too, and a process may have 1024 of them. Who is refused asks
/// again.
const WAITING_MAX: usize = 512;

/// What a program waits for.
pub(crate) enum Awaited {
    /// No copy of these paths is in progress. True if they are directories.
    End(Vec<PathBuf>, bool),
    /// These requests have ended and are forgotten.
    Terminate(Vec<Selection>),
}

impl Awaited {
    /// The answer, once it is known.
    fn answer(&self, state: &mut State) -> Option<Answer> {
        let result = match self {
            Self::End(inner, is_tree) => {
                if inner.iter().any(|path| state.table.is_busy(path, *is_tree)) {
                    return None;
                }
                Ok(())
            }
            Self::Terminate(all) => {
                // Terminates all each time, so that all end at the same time.
                let ended = all.iter().filter(|meant| state.table.terminate(meant)).count();
                if ended < all.len() {
                    return None;
                }
                all.iter().try_for_each(|meant| state.exclude(meant))
            }
        };
        Some(result.map_or_else(Answer::Refused, |()| Answer::Done))
    }
}

impl Shared {
    /// Answers when the wait is over.
    pub(crate) fn answer_later(&self, mut channel: Channel, awaited: Awaited) {
        self.forget_closed();
        let mut state = self.state.lock();
        match awaited {
            Awaited::End(..) if state.waiting.len() >= WAITING_MAX => {
                drop(state);
                let answer = Answer::Refused(libc::EAGAIN);
                return drop(forebay_requests::answer(&mut channel, &answer));
            }
            Awaited::End(..) => state.waiting.push((channel, awaited)),
            // It can end the wait of others.
            Awaited::Terminate(_) => state.waiting.insert(0, (channel, awaited)),
        }
        drop(state);
        self.answer_waiting();
    }

    /// Closes the connections of programs that ended. A request that is being terminated still ends.
    pub(crate) fn forget_closed(&self) {
        let mut state = self.state.lock();
        state.waiting.retain(|(channel, awaited)| {
            matches!(awaited, Awaited::Terminate(_)) || !channel.is_closed()
        });
    }

    /// Answers the programs whose wait is over.
    pub(crate) fn answer_waiting(&self) {
        let mut answered = Vec::new();
        let mut state = self.state.lock();
        for (channel, awaited) in std::mem::take(&mut state.waiting) {
            match awaited.answer(&mut state) {
                Some(answer) => answered.push((channel, answer)),
                None => state.waiting.push((channel, awaited)),
            }
        }
        drop(state);
        for (mut channel, answer) in answered {
            // The program may have ended.
            forebay_requests::answer(&mut channel, &answer).ok();
        }
    }
}
