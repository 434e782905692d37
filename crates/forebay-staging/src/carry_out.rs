//! Carries out a staging journal and sums up the result.
//! Assumes that the journal is planned. Never returns an error: what stops the staging is a failure in the result.

use forebay_directive::Direction;
use forebay_host::clock;
use forebay_host::messages::Messages;
use forebay_host::process::StopRequests;
use forebay_mover::{
    CopyEvent, Failure, Findings, Journal, KeepChanged, Options, RemoteCopiers, WriteMode,
    carry_out,
};
use forebay_record::StagingOptions;

use crate::StagingSummary;

/// Receives messages and the progress of a staging.
pub trait StagingProgress: Messages {
    /// Staging begins, with the number of pending files and bytes.
    fn staging(&self, direction: Direction, files: u64, bytes: u64);
    /// Some bytes were copied or skipped. Several threads call it.
    fn moved(&self, bytes: u64);
    /// Staging has ended.
    fn staged(&self, direction: Direction, staged: &StagingSummary);
}

/// One staging of a job.
pub struct Staging<'a> {
    /// Into or out of allocations.
    pub direction: Direction,
    /// The job's id, used in names of partial files.
    pub tag: &'a str,
    /// Counts requests to stop.
    pub stops: StopRequests,
    /// Receives the progress.
    pub reporter: &'a dyn StagingProgress,
    /// True if the destination is an allocation created for this job alone.
    pub into_new_allocation: bool,
    /// The user's staging options.
    pub how: StagingOptions,
    /// What it does not replace.
    pub keep_changed: Option<KeepChanged>,
    /// Other nodes that help to copy.
    pub remotes: RemoteCopiers,
}

impl Staging<'_> {
    /// Copies the pending files of the journal. Stops when the number of stop requests exceeds `before`.
    pub fn carry_out(
        &self,
        journal: &Journal,
        findings: Findings,
        before: usize,
    ) -> StagingSummary {
        let started = clock::now();
        let is_out = self.direction == Direction::Out;
        let options = Options {
            // An allocation of this job alone is not needed after a crash.
            durable: !self.into_new_allocation,
            past_page_cache: is_out,
            placing: if self.into_new_allocation {
                WriteMode::InPlace
            } else {
                WriteMode::AtomicRename
            },
            verify: self.how.verify,
            bytes_per_s_max: self.how.bytes_per_s_max,
            keep_changed: self.keep_changed,
            remotes: self.remotes.clone(),
            ..Options::of(self.tag)
        };
        let moved = journal.counts().and_then(|counts| {
            let open = counts.open();
            self.reporter.staging(self.direction, open.files, open.bytes);
            let on = |did| match did {
                CopyEvent::Bytes(bytes) | CopyEvent::Skipped(bytes) => self.reporter.moved(bytes),
                CopyEvent::Reread(_) | CopyEvent::File => {}
            };
            carry_out(journal, findings, &options, &on, &|| self.stops.count() > before)
        });
        let seconds = started.elapsed().as_secs_f64();
        let staged = match moved {
            Ok(moved) => StagingSummary::new(&moved, journal, seconds),
            Err(error) => StagingSummary {
                seconds,
                failures: vec![Failure::from(error)],
                ..StagingSummary::default()
            },
        };
        self.reporter.staged(self.direction, &staged);
        staged
    }
}
