//! Which file goes where, and how fast.

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
    Destination, Patterns, destination_in, destinations_of, files_below, is_inside_allocation,
};

const SPECTRAL_LOG: &str = "spectral.log";

/// One [`DrainSpec`], or what Spectral asks for.
#[derive(Clone)]
pub(super) struct Rule {
    /// As the user knows it.
    name: String,
    /// Files below this directory of the allocation,
    directory: PathBuf,
    /// which these mean; all without.
    patterns: Option<Patterns>,
    /// Bytes per second at most, and what keeps to it.
    pub(super) rate: Option<(u64, Arc<BandwidthLimit>)>,
    newest: bool,
    /// None: where the stage_out lines say.
    to: Option<PathBuf>,
    /// `PERSIST_DIR` as the job knows it, of a rule that is Spectral's.
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

    /// All places where it goes.
    pub(super) fn ways(&self, path: &Path, stages: &[Stage]) -> Vec<Destination> {
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
    /// Where `PERSIST_DIR` may lie: paths of the job, and where they are in the allocation.
    namespaces: Vec<(PathBuf, PathBuf)>,
    /// The script will say where Spectral's files go.
    spectral_pending: bool,
    allocation_root: PathBuf,
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
        };
        for spec in job.specs {
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

    /// Takes what Spectral's variables say. Returns the rule and its number, if it is a new one.
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

    /// Which want the newest file only. What Spectral adds later wants all.
    pub(super) fn newest_flags(&self) -> Vec<bool> {
        self.rules.iter().map(|rule| rule.newest).collect()
    }

    pub(super) fn rule(&self, number: usize) -> Rule {
        self.rules[number].clone()
    }

    /// What is to be done with a version.
    pub(super) fn versions(&self, closed: &Closed) -> Vec<Version> {
        let rules = self.rules.iter().enumerate();
        let fitting = rules.filter(|(_, rule)| rule.is_for(&closed.path));
        let versions = fitting.map(|(rule, _)| Version { rule, closed: closed.clone() });
        versions.collect()
    }

    pub(super) fn elsewhere(&self) -> Vec<DrainTarget> {
        let elsewhere = self.rules.iter().filter_map(|rule| {
            let patterns = rule.patterns.iter().flat_map(|patterns| patterns.all());
            Some(DrainTarget {
                directory: rule.directory.clone(),
                patterns: patterns.map(|pattern| pattern.as_str().to_owned()).collect(),
                newest: rule.newest,
                to: rule.to.clone()?,
            })
        });
        elsewhere.collect()
    }

    /// A line in the log of a rule that is Spectral's.
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
    /// What was closed in it before there was the rule, and what cannot be looked at. A file that is open now is
    /// told of later.
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

    /// Does somebody read in a log what becomes of its files?
    pub(super) fn is_logged(&self) -> bool {
        self.persist.is_some()
    }
}

/// The error of a `PERSIST_DIR` outside the burst buffer.
#[must_use]
pub fn not_in_burst_buffer(persist: &Path) -> Error {
    Error::Request {
        message: format!("PERSIST_DIR={}: it is not in the burst buffer", persist.display()),
        hint: "set it to a directory in /mnt/bb/$USER (#BSUB -alloc_flags spectral) or $DW_JOB_STRIPED",
    }
}

fn check_outside(allocation: &Allocation, to: &Path) -> Result<(), Error> {
    if is_inside_allocation(allocation, to) {
        return Err(Error::Request {
            message: format!("drain to {}: it lies in the allocation itself", to.display()),
            hint: "choose a destination on the file system",
        });
    }
    Ok(())
}

/// So that what cannot be is said before the job begins.
fn make_target(to: &Path) -> Result<(), Error> {
    let made = files::make_directories(to, 0o777);
    made.map(drop).map_err(|error| target_error(to, &error))
}
