//! The roots of the namespaces that a job stages into and out of.
//! Assumes that the parser of directives rejected paths with `..`. Never checks whether a path exists.

use std::path::PathBuf;

use forebay_directive::{AccessMode, Stage, matches_variable};
use forebay_store::Allocation;
use forebay_store::persistent::namespace_in;

use forebay_record::Record;

/// The roots of the namespaces that a job stages into and out of.
#[derive(Debug, Clone, Default)]
pub struct Roots {
    /// The root in the job's own allocation.
    pub job: Option<PathBuf>,
    /// The roots in persistent allocations, with their names.
    pub persistent: Vec<(String, PathBuf)>,
}

impl Roots {
    /// The roots in the job's own allocation and in persistent allocations with their names.
    pub fn of(job: Option<&Allocation>, persistent: Vec<(String, PathBuf)>) -> Self {
        Self { job: job.map(striped), persistent }
    }

    /// The roots that a record names.
    pub fn of_record(record: &Record, job: Option<&Allocation>) -> Self {
        let persistent = record.persistent.iter();
        let named = persistent.map(|one| (one.name.clone(), namespace_in(&one.root)));
        Self::of(job, named.collect())
    }

    /// The path of a stage in its namespace.
    ///
    /// # Errors
    /// A description of why there is none.
    pub fn path(&self, stage: &Stage) -> Result<PathBuf, String> {
        let root = match &stage.persistent {
            None => self.job.as_ref(),
            Some(written) => {
                let mut all = self.persistent.iter();
                let found = all.find(|(name, _)| matches_variable(name, written));
                found.map(|(_, root)| root)
            }
        };
        match (root, &stage.persistent) {
            (Some(root), _) => Ok(root.join(&stage.inner_path)),
            (None, Some(name)) => {
                Err(format!("the job does not use the persistent allocation {name}"))
            }
            (None, None) => {
                Err("the job has no allocation of its own ($DW_JOB_STRIPED)".to_owned())
            }
        }
    }
}

fn striped(allocation: &Allocation) -> PathBuf {
    allocation.namespace(AccessMode::Striped.directory())
}
