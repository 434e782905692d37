//! Staging between the file system and an allocation.

use std::path::{Path, PathBuf};

use forebay_directive::{self as directive, AccessMode, Stage, StageKind};
use forebay_host::process::Stops;
use forebay_host::{clock, files};
use forebay_mover::{Failure, Options, Plan, Transfer, What, carry_out};
use forebay_store::Allocation;

use crate::drain::{DrainTo, add_to_plan};
use crate::placement::{Map, namespace_directory};
use crate::{Direction, Error, Staged, Watcher};

/// Threads that copy. Staging runs while the job does not, so it may use the machine.
const WORKERS: usize = 4;
/// A file larger than this is copied by several threads.
const PIECE_BYTES: u64 = 64 << 20;

/// One staging.
pub(crate) struct Staging<'a> {
    pub(crate) direction: Direction,
    /// Id of the job.
    pub(crate) tag: &'a str,
    pub(crate) stops: Stops,
    pub(crate) watcher: &'a dyn Watcher,
}

impl Staging<'_> {
    /// Copies what is planned, until it is done or we are asked to stop once more than `before`.
    pub(crate) fn carry_out(&self, plan: &Plan, before: usize) -> Staged {
        let started = clock::now();
        let options = Options {
            workers: WORKERS,
            piece_bytes: PIECE_BYTES,
            durable: self.direction == Direction::Out,
            tag: self.tag.to_owned(),
        };
        self.watcher
            .staging(self.direction, plan.files(), plan.bytes());
        let on_bytes = |bytes| self.watcher.moved(bytes);
        let moved = carry_out(plan, &options, &on_bytes, &|| self.stops.count() > before);
        let staged = Staged::new(&moved, started.elapsed().as_secs_f64());
        self.watcher.staged(self.direction, &staged);
        staged
    }
}

/// What stages into a namespace.
///
/// # Errors
/// If a list cannot be read, or a source is missing or of the wrong kind. What is wrong further down
/// is among the plan's failures.
///
/// `maps` are those that are not in effect yet.
pub(crate) fn plan_in(
    stages: &[Stage],
    root: &Path,
    script: &Path,
    maps: &[Map],
) -> Result<Plan, Error> {
    let mut plan = Plan::default();
    for asked in stages {
        let refused = |message: String| Error::StageInSource {
            script: script.to_owned(),
            place: asked.place,
            message,
        };
        for stage in expanded(asked, directive::Direction::In, maps).map_err(refused)? {
            let target = root.join(&stage.inner_path);
            let source = Map::behind(maps, Path::new(&stage.pfs_path));
            let added = plan.add(&transfer(&stage, source, target));
            added.map_err(|error| refused(error.to_string()))?;
        }
    }
    Ok(plan)
}

/// What stages out of a namespace of the allocation, and what goes `elsewhere`. What cannot be staged is
/// among the plan's failures.
pub(crate) fn plan_out(stages: &[Stage], elsewhere: &[DrainTo], allocation: &Allocation) -> Plan {
    let root = allocation.namespace(namespace_directory(AccessMode::Striped));
    let mut plan = Plan::default();
    for asked in stages {
        let expanded = match expanded(asked, directive::Direction::Out, &[]) {
            Ok(expanded) => expanded,
            Err(reason) => {
                let path = PathBuf::from(&asked.pfs_path);
                plan.failures.push(Failure { path, reason });
                continue;
            }
        };
        for stage in expanded {
            let source = root.join(&stage.inner_path);
            let target = PathBuf::from(&stage.pfs_path);
            let added = match lies_in(allocation, &target) {
                true => Err(Failure {
                    path: target,
                    reason: INSIDE.to_owned(),
                }),
                false => plan
                    .add(&transfer(&stage, source, target))
                    .map_err(Failure::from),
            };
            plan.failures.extend(added.err());
        }
    }
    add_to_plan(&mut plan, elsewhere, stages, allocation);
    plan
}

const INSIDE: &str = "it lies in the allocation itself";

/// Would a stage-out to this path end in what is removed next?
pub(crate) fn lies_in(allocation: &Allocation, target: &Path) -> bool {
    let root = files::real_path(allocation.root());
    let target = files::nearest_real_path(target);
    matches!((root, target), (Ok(root), Ok(target)) if target.starts_with(&root))
}

/// The stage itself, or those that its list names.
///
/// # Errors
/// What is wrong with the list.
pub fn expanded_out(stage: &Stage) -> Result<Vec<Stage>, String> {
    expanded(stage, directive::Direction::Out, &[])
}

fn expanded(
    stage: &Stage,
    direction: directive::Direction,
    maps: &[Map],
) -> Result<Vec<Stage>, String> {
    if stage.kind != StageKind::List {
        return Ok(vec![stage.clone()]);
    }
    let path = &stage.pfs_path;
    let text = files::read_to_string(&Map::behind(maps, Path::new(path)))
        .map_err(|error| error.to_string())?;
    directive::stages_of_list(&text, direction).map_err(|problems| {
        let lines = problems.iter().map(|p| format!("{path}: {p} ({})", p.hint));
        lines.collect::<Vec<_>>().join("\n  ")
    })
}

fn transfer(stage: &Stage, source: PathBuf, target: PathBuf) -> Transfer {
    let what = match stage.kind {
        StageKind::File | StageKind::List => What::File,
        StageKind::Directory => What::Directory,
    };
    Transfer {
        what,
        source,
        target,
    }
}
