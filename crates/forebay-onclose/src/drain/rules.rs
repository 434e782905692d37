//! The rules of a drain: which file is copied to which target, and at which rate.
//! Creates target directories, never one inside the allocation. Never copies a file; writes only the log of Spectral.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_directive::{AccessMode, Stage};
use forebay_host::close_watch::{Closed, is_closed};
use forebay_host::files;
use forebay_host::messages::Messages;
use forebay_mover::BandwidthLimit;
use forebay_store::Allocation;
use indicatif::HumanBytes;

use super::spec::{check_target, namespace, target_error};
use super::{DrainSpec, Job};
use crate::Error;
use crate::versions::Version;
use forebay_record::DrainTarget;
use forebay_staging::{
    Destination, Pattern, Patterns, destination_in, destinations_of, files_below,
    is_inside_allocation,
};

const SPECTRAL_LOG: &str = "spectral.log";

/// The rule of one [`DrainSpec`] or of Spectral.
#[derive(Clone)]
pub(super) struct Rule {
    /// The name in messages.
    name: String,
    /// The directory of the allocation that holds the files.
    directory: PathBuf,
    /// Patterns of the files; none: all files.
    patterns: Option<Patterns>,
    /// The limit in bytes per second, and its enforcement.
    pub(super) rate: Option<(u64, Arc<BandwidthLimit>)>,
    newest: bool,
    /// The target; none: the targets of the stage_out lines.
    to: Option<PathBuf>,
    /// `PERSIST_DIR` as the job sees it, if this is a rule of Spectral.
    persist: Option<PathBuf>,
}

impl Rule {
    fn new(spec: &DrainSpec, directory: PathBuf) -> Self {
        let limit = |rate| (rate, Arc::new(BandwidthLimit::new(rate)));
        Self {
            name: spec.text.clone(),
            directory,
            patterns: Some(spec.patterns.clone()),
            rate: spec.rate_bytes_per_s.map(limit),
            newest: spec.newest,
            to: spec.to.clone(),
            persist: None,
        }
    }

    fn is_for(&self, path: &Path) -> bool {
        let below = path.strip_prefix(&self.directory).ok();
        below.is_some_and(|below| self.patterns.as_ref().is_none_or(|p| p.are_for(below)))
    }

    /// All destinations of a file.
    pub(super) fn destinations(&self, path: &Path, stages: &[Stage]) -> Vec<Destination> {
        let below = path.strip_prefix(&self.directory).unwrap_or(path);
        match &self.to {
            Some(to) => vec![destination_in(to, &self.directory, below)],
            None => destinations_of(stages, &self.directory, below),
        }
    }
}

/// All rules of a job.
pub(super) struct Rules {
    rules: Vec<Rule>,
    /// Directories that may contain `PERSIST_DIR`: the path in the job and the path in the allocation.
    namespaces: Vec<(PathBuf, PathBuf)>,
    /// The script will set the directories of Spectral.
    spectral_pending: bool,
    allocation_root: PathBuf,
    /// Patterns that no closed file of their directory has matched so far.
    unmatched: Vec<(PathBuf, Pattern)>,
}

impl Rules {
    pub(super) fn new(job: &Job) -> Result<Self, Error> {
        let allocation = job.allocation;
        let root = allocation.namespace(namespace(job.request).directory());
        let private = allocation.namespace(AccessMode::Private.directory());
        let local = job.node_local.clone().map(|path| (path, private));
        let own = allocation.root().to_owned();
        let mut rules = Self {
            rules: Vec::new(),
            namespaces: local.into_iter().chain([(own.clone(), own)]).collect(),
            spectral_pending: false,
            allocation_root: allocation.root().to_owned(),
            unmatched: Vec::new(),
        };
        for spec in job.specs {
            let patterns = spec.patterns.all().iter().cloned();
            rules.unmatched.extend(patterns.map(|pattern| (root.clone(), pattern)));
            if let Some(to) = &spec.to {
                check_outside(allocation, to)?;
                make_target(to)?;
            }
            rules.rules.push(Rule::new(spec, root.clone()));
        }
        match &job.spectral.directories {
            Some((persist, pfs)) => match rules.add_spectral(persist, pfs) {
                Ok(_) => {}
                Err(error) if job.spectral.wanted => return Err(error),
                Err(error) => job.messages.note(&format!("Spectral: {error}")),
            },
            None => rules.spectral_pending = job.spectral.wanted,
        }
        Ok(rules)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rules.is_empty() && !self.spectral_pending
    }

    pub(super) fn explain(&self, messages: &dyn Messages) {
        for rule in &self.rules {
            let rate = rule.rate.as_ref().map_or("as fast as it goes".to_owned(), |(rate, _)| {
                format!("at most {}/s", HumanBytes(*rate))
            });
            let newest = if rule.newest { ", only the newest" } else { "" };
            let to = rule
                .to
                .as_ref()
                .map_or("where stage_out says".to_owned(), |to| format!("to {}", to.display()));
            let (name, directory) = (&rule.name, rule.directory.display());
            messages.explain(&format!(
                "drain {name}: files closed in {directory} go {to} while the job runs, {rate}{newest}"
            ));
        }
        if self.spectral_pending {
            messages.explain(
                "Spectral: PERSIST_DIR and PFS_DIR are not set; a launcher or spectral_wait.py in the script \
                 will tell them",
            );
        }
    }

    /// Adds a rule for the variables of Spectral. Returns it and its number, if it is new.
    pub(super) fn add_spectral(
        &mut self,
        persist: &Path,
        pfs: &Path,
    ) -> Result<Option<(usize, Rule)>, Error> {
        let places = self.namespaces.iter();
        let mut places =
            places.filter_map(|(seen, is)| Some(is.join(persist.strip_prefix(seen).ok()?)));
        let Some(directory) = places.next() else {
            return Err(not_in_burst_buffer(persist));
        };
        check_target(pfs)?;
        check_outside(&Allocation::found(self.allocation_root.clone(), false), pfs)?;
        let rule = Rule {
            name: "of Spectral".to_owned(),
            directory: directory.components().collect(),
            patterns: None,
            rate: None,
            newest: false,
            to: Some(pfs.to_owned()),
            persist: Some(persist.to_owned()),
        };
        let same = |known: &Rule| (&known.directory, &known.to) == (&rule.directory, &rule.to);
        if self.rules.iter().any(same) {
            return Ok(None);
        }
        make_target(pfs)?;
        self.rules.push(rule.clone());
        Ok(Some((self.rules.len() - 1, rule)))
    }

    /// Which rules are for the newest file only. Rules that Spectral adds later are for all files.
    pub(super) fn newest_flags(&self) -> Vec<bool> {
        self.rules.iter().map(|rule| rule.newest).collect()
    }

    pub(super) fn rule(&self, number: usize) -> Rule {
        self.rules[number].clone()
    }

    /// The versions to copy for a closed file, one for each matching rule.
    pub(super) fn versions(&mut self, closed: &Closed) -> Vec<Version> {
        let is_for = |directory: &Path, pattern: &Pattern| {
            closed.path.strip_prefix(directory).is_ok_and(|below| pattern.is_for(below))
        };
        self.unmatched.retain(|(directory, pattern)| !is_for(directory, pattern));
        let rules = self.rules.iter().enumerate();
        let fitting = rules.filter(|(_, rule)| rule.is_for(&closed.path));
        let versions = fitting.map(|(rule, _)| Version { rule, closed: closed.clone() });
        versions.collect()
    }

    /// The patterns that no closed file matched.
    pub(super) fn unmatched(&self) -> impl Iterator<Item = &str> {
        self.unmatched.iter().map(|(_, pattern)| pattern.as_str())
    }

    pub(super) fn extra_targets(&self) -> Vec<DrainTarget> {
        let extra_targets = self.rules.iter().filter_map(|rule| {
            let patterns = rule.patterns.iter().flat_map(|patterns| patterns.all());
            Some(DrainTarget {
                directory: rule.directory.clone(),
                patterns: patterns.map(|pattern| pattern.as_str().to_owned()).collect(),
                newest: rule.newest,
                to: rule.to.clone()?,
            })
        });
        extra_targets.collect()
    }

    /// Writes a line to the log of Spectral, if this is its rule.
    pub(super) fn log(&self, rule: usize, state: &str, path: &Path) -> forebay_host::Result<()> {
        let rule = &self.rules[rule];
        let (Some(persist), Some(pfs)) = (&rule.persist, &rule.to) else {
            return Ok(());
        };
        let path = persist.join(path.strip_prefix(&rule.directory).unwrap_or(path));
        let log = pfs.join(SPECTRAL_LOG);
        let mut file = files::open_to_append(&log)?;
        let line = format!("Spectral Work {state} File : {}\n", path.display());
        files::with_path(file.write_all(line.as_bytes()), "write", &log)
    }
}

impl Rule {
    /// Finds the files that were closed before the rule existed, and the paths that cannot be read.
    /// The watch reports files that are open now.
    pub(super) fn scan_closed(&self) -> (Vec<Closed>, Vec<forebay_host::Error>) {
        let (files, mut unseen) = files_below(&self.directory);
        let mut closed = Vec::new();
        for path in files {
            let version = 0;
            match is_closed(&path) {
                Ok(Some(status)) => closed.push(Closed { path, version, status }),
                Ok(None) => {}
                Err(error) => unseen.push(error),
            }
        }
        (closed, unseen)
    }

    /// Does Spectral log the files of this rule?
    pub(super) fn is_logged(&self) -> bool {
        self.persist.is_some()
    }
}

/// The error of a `PERSIST_DIR` outside the burst buffer.
#[must_use]
pub fn not_in_burst_buffer(persist: &Path) -> Error {
    Error::Request {
        message: format!("PERSIST_DIR={}: it is not in the burst buffer", persist.display()),
        hint: "set it to a directory in $DW_JOB_STRIPED or, in a job on one node, in /mnt/bb/$USER (#BSUB -alloc_flags spectral)",
    }
}

fn check_outside(allocation: &Allocation, to: &Path) -> Result<(), Error> {
    if is_inside_allocation(allocation, to) {
        return Err(Error::Request {
            message: format!("drain to {}: it is in the allocation itself", to.display()),
            hint: "choose a destination on the file system",
        });
    }
    Ok(())
}

/// Creates the target before the job starts, so that a failure is reported early.
fn make_target(to: &Path) -> Result<(), Error> {
    let made = files::make_directories(to, 0o777);
    made.map(drop).map_err(|error| target_error(to, &error))
}
