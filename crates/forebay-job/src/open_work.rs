//! The stage-out of a running job, as the deadline guard sees it.

use forebay_deadline::{OpenWork, Outstanding};
use forebay_mover::Journal;
use forebay_staging::StageOut;

use forebay_onclose::Drain;

/// The stage-out of a job and its drain.
pub(crate) struct OpenStageOut<'a> {
    /// The stage-out at the start of the job.
    pub(crate) stage_out: StageOut<'a>,
    pub(crate) drain: Option<&'a Drain<'a>>,
}

impl<'a> OpenStageOut<'a> {
    /// The present stage-out: launchers may have announced Spectral's directories.
    fn current(&self) -> StageOut<'a> {
        StageOut {
            elsewhere: self.drain.map(Drain::extra_targets).unwrap_or_default(),
            ..self.stage_out.clone()
        }
    }
}

impl OpenWork for OpenStageOut<'_> {
    fn is_asked_for(&self) -> bool {
        self.current().is_asked_for()
    }

    /// Counts unreadable work as one file, since it may hold data.
    fn outstanding(&self, should_continue: &dyn Fn() -> bool) -> Outstanding {
        let (mut files, mut bytes) = (0, 0);
        let looked = Journal::in_memory().and_then(|journal| {
            self.current().plan_in(&journal, &|_| should_continue())?;
            if let Some(drain) = self.drain {
                drain.mark_arrived(&journal, None);
            }
            forebay_mover::undelivered(&journal, should_continue, |missing| {
                if !missing.is_unrecoverable {
                    files += 1;
                    bytes += missing.bytes;
                }
            })
        });
        let error = looked.err().map(|error| error.to_string());
        files += u64::from(error.is_some());
        Outstanding { files, bytes, error }
    }

    fn bytes_per_s(&self) -> Option<f64> {
        self.drain.and_then(Drain::bytes_per_s)
    }
}
