//! Progress of a job on the terminal.
//! Assumes at most one I/O record for each `Progress`. Never prints to standard output, which is for results.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use forebay_directive::Direction;
use forebay_engine::{AllocationProgress, StoreUsed};
use forebay_host::messages::Messages;
use forebay_host::messages::counted;
use forebay_host::process::Orphans;
use forebay_job::Reporter;
use forebay_staging::{StagingProgress, StagingSummary};
use indicatif::{HumanBytes, ProgressBar, ProgressStyle};
use parking_lot::Mutex;

use crate::messages::{print_status, print_warning};

/// Shows progress bars if standard error is a terminal, and plain lines always.
#[derive(Default)]
pub struct Progress {
    bar: Mutex<Option<ProgressBar>>,
    /// Whether to print explanations.
    explains: bool,
    /// The number of copied files.
    files: AtomicU64,
    record: OnceLock<PathBuf>,
}

/// The number of files between two updates of the progress line.
const FILES_A_MESSAGE: u64 = 64;

fn name(direction: Direction) -> &'static str {
    match direction {
        Direction::In => "stage in",
        Direction::Out => "stage out",
    }
}

impl Progress {
    /// Prints explanations if `explains` is true.
    pub fn explaining(explains: bool) -> Self {
        Self { explains, ..Self::default() }
    }

    /// The directory of the current I/O record.
    pub fn record(&self) -> Option<&Path> {
        self.record.get().map(PathBuf::as_path)
    }

    /// Counts entries found while scanning the sources.
    pub fn found(&self, number: u64) {
        self.with_bar(|bar| {
            let bar = bar.get_or_insert_with(|| {
                let style =
                    ProgressStyle::with_template("forebay: looking through the sources: {pos}");
                let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
                ProgressBar::new_spinner().with_style(style)
            });
            bar.inc(number);
        });
    }

    /// Counts a copied file.
    pub fn arrived(&self, direction: Direction) {
        let files = self.files.fetch_add(1, Ordering::Relaxed) + 1;
        // With very many small files, only some update the line.
        if files.is_multiple_of(FILES_A_MESSAGE) || files < FILES_A_MESSAGE {
            self.with_bar(|bar| {
                if let Some(bar) = bar {
                    let number = counted(files, "file");
                    bar.set_message(format!("{} {number}", name(direction)));
                }
            });
        }
    }

    fn with_bar(&self, act: impl FnOnce(&mut Option<ProgressBar>)) {
        act(&mut self.bar.lock());
    }
}

impl Reporter for Progress {
    fn recorded(&self, directory: &Path) {
        self.record.set(directory.to_owned()).ok(); // set once for each job
    }

    fn running(&self, id: &str) {
        print_status(&format!("job {id} starts"));
    }

    fn ended(&self, id: &str, status: i32, seconds: f64) {
        print_status(&format!("job {id} ended with status {status} after {seconds:.2} s"));
    }

    fn leftovers(&self, leftovers: &Orphans) {
        let number = leftovers.found;
        print_warning(&format!("processes the job left behind, ended before stage-out: {number}"));
        if !leftovers.remaining.is_empty() {
            let pids: Vec<_> = leftovers.remaining.iter().map(ToString::to_string).collect();
            print_warning(&format!(
                "these could not be ended and may still write: {}",
                pids.join(" ")
            ));
        }
    }
}

impl AllocationProgress for Progress {
    fn allocated(&self, used: &StoreUsed) {
        let kind = used.lost_with().map_or_else(String::new, |lost| format!(": {lost}"));
        let capacity = HumanBytes(used.capacity_bytes);
        print_status(&format!("allocated {capacity} in {}{kind}", used.store));
        if used.asked_bytes.is_some_and(|asked| used.capacity_bytes < asked) {
            let asked = used.asked();
            print_warning(&format!("the script asks for {asked}; the store has {capacity}"));
        }
    }
}

impl StagingProgress for Progress {
    fn staging(&self, direction: Direction, files: u64, bytes: u64) {
        let template = "forebay: {msg} [{wide_bar}] {bytes}/{total_bytes} {bytes_per_sec} {eta}";
        self.with_bar(|bar| {
            let style = ProgressStyle::with_template(template);
            let fresh = ProgressBar::new(bytes)
                .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
                .with_message(format!("{} {}", name(direction), counted(files, "file")));
            *bar = Some(fresh);
        });
    }

    fn moved(&self, bytes: u64) {
        self.with_bar(|bar| {
            if let Some(bar) = bar {
                bar.inc(bytes);
            }
        });
    }

    fn staged(&self, direction: Direction, staged: &StagingSummary) {
        self.with_bar(|bar| {
            if let Some(bar) = bar.take() {
                bar.finish_and_clear();
            }
        });
        let (number, bytes) = (counted(staged.files, "file"), HumanBytes(staged.bytes));
        let there = match staged.unchanged_files {
            0 => String::new(),
            there => format!("; {there} of them were there already"),
        };
        let failed = match staged.failures.len() {
            0 => String::new(),
            failed => format!("; {failed} failed"),
        };
        let seconds = staged.seconds;
        print_status(&format!(
            "{}: {number}, {bytes} in {seconds:.2} s{there}{failed}",
            name(direction)
        ));
    }
}

impl Messages for Progress {
    fn note(&self, text: &str) {
        print_status(text);
    }

    fn warning(&self, text: &str) {
        print_warning(text);
    }

    fn explain(&self, text: &str) {
        if self.explains {
            print_status(&format!("because: {text}"));
        }
    }
}
