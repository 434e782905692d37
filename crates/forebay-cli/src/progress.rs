//! Progress of a job on the terminal.

use std::sync::Mutex;

use forebay_control::{Direction, Staged, StoreUsed, Watcher};
use indicatif::{HumanBytes, ProgressBar, ProgressStyle};

use crate::messages::{say, warn};

/// Shows bars where standard error is a terminal, and plain lines everywhere.
#[derive(Default)]
pub struct Progress {
    bar: Mutex<Option<ProgressBar>>,
}

fn name(direction: Direction) -> &'static str {
    match direction {
        Direction::In => "stage in",
        Direction::Out => "stage out",
    }
}

impl Progress {
    fn with_bar(&self, act: impl FnOnce(&mut Option<ProgressBar>)) {
        // A poisoned lock holds a bar as good as any.
        act(&mut self
            .bar
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner));
    }
}

impl Watcher for Progress {
    fn allocated(&self, used: &StoreUsed) {
        let kind = if used.in_memory {
            ", in memory: lost if this machine goes down"
        } else {
            ""
        };
        let capacity = HumanBytes(used.capacity_bytes);
        say(&format!(
            "allocated {capacity} in {}{kind}",
            used.directory.display()
        ));
        if used.capacity_bytes < used.asked_bytes {
            let asked = HumanBytes(used.asked_bytes);
            warn(&format!(
                "the script asks for {asked}; the store has {capacity}"
            ));
        }
    }

    fn staging(&self, direction: Direction, files: u64, bytes: u64) {
        let template = "forebay: {msg} [{wide_bar}] {bytes}/{total_bytes} {bytes_per_sec} {eta}";
        self.with_bar(|bar| {
            let style = ProgressStyle::with_template(template);
            let fresh = ProgressBar::new(bytes)
                .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
                .with_message(format!("{} {files} files", name(direction)));
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

    fn staged(&self, direction: Direction, staged: &Staged) {
        self.with_bar(|bar| {
            if let Some(bar) = bar.take() {
                bar.finish_and_clear();
            }
        });
        let files = if staged.files == 1 { "file" } else { "files" };
        let (number, bytes) = (staged.files, HumanBytes(staged.bytes));
        say(&format!(
            "{}: {number} {files}, {bytes} in {:.2} s",
            name(direction),
            staged.seconds
        ));
    }

    fn running(&self, id: &str) {
        say(&format!("job {id} starts"));
    }

    fn warning(&self, text: &str) {
        warn(text);
    }
}
