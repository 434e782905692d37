//! Staging between the file system and an allocation.

mod destination;
mod elsewhere;
mod patterns;
mod requests;
mod roots;
mod summary;

use std::path::{Path, PathBuf};

use forebay_directive::{self as directive, Direction, Stage, StageKind};
use forebay_host::clock;
use forebay_host::files::{self, Kind};
use forebay_host::messages::Messages;
use forebay_host::process::Stops;
use forebay_mover::{Did, Failure, Journal, Options, Placing, Planned, Transfer, What, carry_out};
use forebay_store::Allocation;

use crate::Error;
use crate::placement::Map;
use elsewhere::plan_elsewhere;
use forebay_record::{DrainTo, Recorded, STAGE_OUT, StagingWish, are_open_in};
use requests::plan_requests;

pub(crate) use destination::{Way, way_to, ways_of_stages};
pub(crate) use elsewhere::files_below;
pub use patterns::{Pattern, Patterns};
pub(crate) use requests::remove_parts;
pub(crate) use roots::Roots;
pub use summary::Staged;

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
pub(crate) struct Staging<'a> {
    pub(crate) direction: Direction,
    /// Id of the job.
    pub(crate) tag: &'a str,
    pub(crate) stops: Stops,
    pub(crate) watcher: &'a dyn StagingProgress,
    /// Into allocations that were made for this job alone.
    pub(crate) into_fresh: bool,
    pub(crate) how: StagingWish,
}

impl Staging<'_> {
    /// Copies what the journal has, until it is done or we are asked to stop once more than `before`.
    pub(crate) fn carry_out(&self, journal: &Journal, before: usize) -> Staged {
        let started = clock::now();
        let is_out = self.direction == Direction::Out;
        let options = Options {
            // What was made for the job alone goes with it.
            durable: !self.into_fresh,
            past_page_cache: is_out,
            placing: if self.into_fresh {
                Placing::Direct
            } else {
                Placing::Renamed
            },
            verify: self.how.verify,
            bytes_per_s_max: self.how.bytes_per_s_max,
            ..Options::of(self.tag)
        };
        let moved = journal.counts().and_then(|counts| {
            let open = counts.open();
            self.watcher.staging(self.direction, open.files, open.bytes);
            let on = |did| match did {
                Did::Bytes(bytes) | Did::Passed(bytes) => self.watcher.moved(bytes),
                Did::Again(_) | Did::File => {}
            };
            carry_out(journal, &options, &on, &|| self.stops.count() > before)
        });
        let seconds = started.elapsed().as_secs_f64();
        let staged = match moved {
            Ok(moved) => Staged::new(&moved, journal.notes().unwrap_or_default(), seconds),
            Err(error) => Staged {
                seconds,
                failures: vec![Failure::from(error)],
                ..Staged::default()
            },
        };
        self.watcher.staged(self.direction, &staged);
        staged
    }
}

/// Plans what stages into a namespace and has a wanted target.
///
/// # Errors
/// If a list cannot be read, or a source is missing or of the wrong kind, or it was told to stop. What is wrong
/// further down is among the journal's failures.
///
/// `maps` are those that are not in effect yet.
pub(crate) fn plan_in(
    journal: &Journal,
    stages: &[Stage],
    roots: &Roots,
    script: &Path,
    maps: &[Map],
    on_planned: Planned,
    is_wanted: &(dyn Fn(&Path) -> bool + Sync),
) -> Result<(), Error> {
    journal.begin_plan()?;
    for asked in stages {
        let refused = |message: String| Error::StageInSource {
            script: script.to_owned(),
            place: asked.place,
            command: asked.command(Direction::In),
            message,
        };
        for stage in expanded(asked, Direction::In, maps).map_err(refused)? {
            let target = roots.path(&stage).map_err(refused)?;
            let source = Map::behind(maps, Path::new(&stage.pfs_path));
            let added = journal.add_only(&transfer(&stage, source, target), on_planned, is_wanted);
            added.map_err(|error| match error {
                error @ (forebay_mover::Error::Journal { .. }
                | forebay_mover::Error::NoThread { .. }
                | forebay_mover::Error::PlanInterrupted(_)) => error.into(),
                error => refused(error.to_string()),
            })?;
        }
    }
    Ok(journal.end_plan()?)
}

/// What stages out of namespaces.
#[derive(Clone)]
pub(crate) struct StageOut<'a> {
    pub(crate) stages: &'a [Stage],
    /// What goes to directories that no stage_out line names.
    pub(crate) elsewhere: Vec<DrainTo>,
    pub(crate) roots: Roots,
    /// The job's own, which is removed afterwards.
    pub(crate) allocation: Option<&'a Allocation>,
}

impl StageOut<'_> {
    /// May something be staged out, as far as is known now?
    pub(crate) fn is_asked_for(&self) -> bool {
        let is_requested = || self.allocation.is_some_and(|own| are_open_in(own.root()));
        !self.stages.is_empty() || !self.elsewhere.is_empty() || is_requested()
    }

    /// Plans it in the job's journal or a new one. What has arrived and did not change since is not staged out
    /// again; what cannot be staged is among the journal's failures. Where the state directory takes no journal
    /// any more, it lies in the allocation.
    ///
    /// # Errors
    /// If neither takes one, or the one that is there is damaged or in hand; or it was told to stop.
    pub(crate) fn plan(
        &self,
        recorded: &Recorded,
        on_planned: Planned,
    ) -> Result<Journal, forebay_mover::Error> {
        use forebay_mover::Error::{Host, Journal as Unusable};
        let beside = recorded.journal();
        let planned =
            |path: &Path| Journal::open(path).and_then(|journal| self.plan_in(journal, on_planned));
        let inside = self.allocation.map(|own| own.root().join(STAGE_OUT));
        let Some(inside) = inside else {
            return planned(&beside);
        };
        if files::status(&inside).is_err() {
            match planned(&beside) {
                Err(Host(_) | Unusable { .. }) => Journal::remove(&beside)?,
                planned => return planned,
            }
        }
        planned(&inside)
    }

    /// The same in this journal.
    ///
    /// # Errors
    /// If it cannot be written, or it was told to stop.
    pub(crate) fn plan_in(
        &self,
        journal: Journal,
        on_planned: Planned,
    ) -> Result<Journal, forebay_mover::Error> {
        journal.begin_plan()?;
        // What programs revoked is left out of their requests, not of a stage_out line with the same two ends.
        journal.leave_nothing_out()?;
        journal.go_on()?; // whoever cancelled the last try did not mean this one
        for asked in self.stages {
            let stages = match expanded(asked, Direction::Out, &[]) {
                Ok(stages) => stages,
                Err(reason) => {
                    journal.refuse(&Failure::new(PathBuf::from(&asked.pfs_path), reason))?;
                    continue;
                }
            };
            for stage in stages {
                let target = PathBuf::from(&stage.pfs_path);
                let inside = self.allocation.is_some_and(|own| lies_in(own, &target));
                match self.roots.path(&stage) {
                    Ok(source) if !inside => {
                        journal.add_or_note(&transfer(&stage, source, target), on_planned)?;
                    }
                    Ok(_) => journal.refuse_for_good(&Failure::new(target, INSIDE.to_owned()))?,
                    Err(reason) => journal.refuse(&Failure::new(target, reason))?,
                }
            }
        }
        if let Some(allocation) = self.allocation {
            plan_elsewhere(
                &journal,
                &self.elsewhere,
                self.stages,
                allocation,
                on_planned,
            )?;
            plan_requests(&journal, allocation.root(), &self.roots, on_planned)?;
        }
        if let Some(allocation) = self.allocation {
            journal.refuse_places(INSIDE, on_planned, &|place| lies_in(allocation, place))?;
        }
        journal.end_plan()?;
        Ok(journal)
    }
}

const INSIDE: &str = "it lies in the allocation itself";

/// Would a stage-out to this path end in what is removed next? Directories are told by their numbers, since an
/// allocation may be mounted under other names, too.
pub(crate) fn lies_in(allocation: &Allocation, target: &Path) -> bool {
    let number = |path: &Path| {
        let status = files::status(path).ok()?;
        Some((status.device, status.inode))
    };
    let root = allocation.root();
    let names = files::names_in(root).unwrap_or_default();
    let below = names.iter().map(|name| root.join(name));
    let ours: Vec<_> = below
        .chain([root.to_owned()])
        .filter_map(|path| number(&path))
        .collect();
    let Ok(target) = files::nearest_real_path(target) else {
        return false;
    };
    let mut ancestors = target.ancestors();
    ancestors.any(|path| number(path).is_some_and(|number| ours.contains(&number)))
}

/// The stage itself, or those that its list names.
///
/// # Errors
/// What is wrong with the list.
pub fn expanded_out(stage: &Stage) -> Result<Vec<Stage>, String> {
    expanded(stage, Direction::Out, &[])
}

fn expanded(stage: &Stage, direction: Direction, maps: &[Map]) -> Result<Vec<Stage>, String> {
    if stage.kind != StageKind::List {
        return Ok(vec![stage.clone()]);
    }
    let path = &stage.pfs_path;
    let text = files::read_to_string(&Map::behind(maps, Path::new(path)))
        .map_err(|error| error.to_string())?;
    directive::stages_of_list(&text, direction, &stage.naming).map_err(|problems| {
        let lines = problems.iter().map(|p| format!("{path}: {p} ({})", p.hint));
        lines.collect::<Vec<_>>().join("\n  ")
    })
}

fn transfer(stage: &Stage, source: PathBuf, target: PathBuf) -> Transfer {
    let what = match stage.kind {
        StageKind::File | StageKind::List => What::File,
        StageKind::Directory => What::Directory,
        StageKind::Path => return transfer_of_path(source, target),
    };
    Transfer {
        what,
        source,
        target,
    }
}

/// The source tells what it is: a directory goes into the target under its own name, whether the target is there
/// or not. So what is staged again goes to the same place.
fn transfer_of_path(source: PathBuf, target: PathBuf) -> Transfer {
    let is_directory = files::status(&source).is_ok_and(|status| status.kind == Kind::Directory);
    let (what, target) = match source.file_name() {
        Some(name) if is_directory => (What::Directory, target.join(name)),
        _ => (What::File, target),
    };
    Transfer {
        what,
        source,
        target,
    }
}
