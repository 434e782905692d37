//! Carries out the journal of a staging and sums up what became of it.

use forebay_directive::Direction;
use forebay_host::clock;
use forebay_host::messages::Messages;
use forebay_host::process::StopRequests;
use forebay_mover::{CopyEvent, Failure, Journal, KeepChanged, Options, WriteMode, carry_out};
use forebay_record::StagingOptions;

use crate::Staged;

/// Receives messages, and hears how a staging goes.
pub trait StagingProgress: Messages {
    /// Staging begins: so many files and bytes.
    fn staging(&self, direction: Direction, files: u64, bytes: u64);
    /// So many bytes more were copied. Called by several threads.
    fn moved(&self, bytes: u64);
    /// Staging has ended.
    fn staged(&self, direction: Direction, staged: &Staged);
}

/// One staging.
pub struct Staging<'a> {
    /// In or out.
    pub direction: Direction,
    /// Id of the job.
    pub tag: &'a str,
    /// Counts how often we are asked to stop.
    pub stops: StopRequests,
    /// Hears how it goes.
    pub reporter: &'a dyn StagingProgress,
    /// Into allocations that were made for this job alone.
    pub into_new_allocation: bool,
    /// How it copies.
    pub how: StagingOptions,
    /// What it does not replace.
    pub keep_changed: Option<KeepChanged>,
}

impl Staging<'_> {
    /// Copies what the journal has, until it is done or we are asked to stop once more than `before`.
    pub fn carry_out(&self, journal: &Journal, before: usize) -> Staged {
        let started = clock::now();
        let is_out = self.direction == Direction::Out;
        let options = Options {
            // What was made for the job alone goes with it.
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
            ..Options::of(self.tag)
        };
        let moved = journal.counts().and_then(|counts| {
            let open = counts.open();
            self.reporter.staging(self.direction, open.files, open.bytes);
            let on = |did| match did {
                CopyEvent::Bytes(bytes) | CopyEvent::Skipped(bytes) => self.reporter.moved(bytes),
                CopyEvent::Reread(_) | CopyEvent::File => {}
            };
            carry_out(journal, &options, &on, &|| self.stops.count() > before)
        });
        let seconds = started.elapsed().as_secs_f64();
        let staged = match moved {
            Ok(moved) => Staged::new(&moved, journal.notes().unwrap_or_default(), seconds),
            Err(error) => {
                Staged { seconds, failures: vec![Failure::from(error)], ..Staged::default() }
            }
        };
        self.reporter.staged(self.direction, &staged);
        staged
    }
}
