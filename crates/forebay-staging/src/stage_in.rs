//! Plans the stage-in of a job.

use std::path::{Path, PathBuf};

use forebay_directive::{Direction, Stage};
use forebay_mover::{Findings, Journal, Plan, PlanProgress};

use crate::lines::{expanded, transfer};
use crate::{Error, Roots};

/// Plans the stage-in of files whose target is wanted.
///
/// # Errors
/// If a list cannot be read, a source is missing or of the wrong kind, or `on_planned` interrupted
/// the planning. The journal lists failures below a source.
///
/// `behind` returns the real path behind a path of the script, where maps are not in effect yet.
pub fn plan_in(
    journal: &Journal,
    stages: &[Stage],
    roots: &Roots,
    script: &Path,
    behind: &dyn Fn(&Path) -> PathBuf,
    on_planned: PlanProgress,
    is_wanted: &(dyn Fn(&Path) -> bool + Sync),
) -> Result<Findings, Error> {
    let plan = Plan::begin(journal, on_planned)?;
    for asked in stages {
        let refused = |message: String| Error::Source {
            script: script.to_owned(),
            position: asked.position,
            command: asked.command(Direction::In),
            message,
        };
        for stage in expanded(asked, Direction::In, behind).map_err(refused)? {
            let target = roots.path(&stage).map_err(refused)?;
            let source = behind(Path::new(&stage.pfs_path));
            let added = plan.add_wanted(&transfer(&stage, source, target), is_wanted);
            added.map_err(|error| match error {
                error @ (forebay_mover::Error::Journal { .. }
                | forebay_mover::Error::PlanInterrupted(_)) => error.into(),
                error => refused(error.to_string()),
            })?;
        }
    }
    Ok(plan.end()?)
}
