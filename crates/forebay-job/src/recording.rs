//! Describes a job, a command or a run of a series in its I/O profile.
//! A profile that cannot be begun is a warning for a job or a command, and an error for a run of a series.

use std::ffi::OsString;
use std::path::Path;

use forebay_host::files::lossy;
use forebay_host::system;
use forebay_profile::{JobDescription, Kind, Profile, Recording, complete_abandoned, prune};
use forebay_record::{RecordFile, Records};

use crate::series::{Run, RunTarget};
use crate::{Error, JobSpec, Outcome, Reporter};
use forebay_scheduler::JobScript;

/// Begins the profile of a job whose record was just created.
pub(crate) fn begin_of_job(
    spec: &JobSpec,
    recorded: &RecordFile,
    reporter: &dyn Reporter,
) -> Option<Profile> {
    let directory = recorded.record.profile.clone()?;
    let id = &recorded.record.id;
    let begun = description_of_job(spec).and_then(|job| Ok(Profile::begin(directory, &job, id)?));
    report_begun(begun, reporter)
}

/// Begins the profile of a command, in the first state directory that accepts it.
pub(crate) fn begin_of_command(words: &[OsString], reporter: &dyn Reporter) -> Option<Profile> {
    let begun = description_of_command(words).and_then(|job| Ok(Profile::begin_anywhere(&job)?));
    report_begun(begun, reporter)
}

/// Begins the profile of a run of a series, in the requester's directory.
pub(crate) fn begin_of_run(
    directory: &Path,
    run: &Run,
    script: &JobScript,
    working_directory: &Path,
    id: &str,
    recording: &Recording,
) -> Result<Profile, Error> {
    let mut job = description_of_script(script)?;
    job.command = match &run.what {
        RunTarget::Script(path) => vec![lossy(path)],
        RunTarget::Command(words) => words.clone(),
    };
    job.directory = lossy(working_directory);
    job.environment.clone_from(&run.environment);
    job.emulated = recording.emulated.map(|emulated| emulated());
    Ok(Profile::begin_in(directory, &job, id)?)
}

/// Ends a profile with the outcome, or with the error and its hint.
pub(crate) fn end(
    profile: Profile,
    recording: &Recording,
    done: Result<&impl serde::Serialize, &Error>,
    reporter: &dyn Reporter,
) {
    let done = done.map_err(|error| (error.to_string(), error.hint()));
    profile.end(recording, done, reporter);
}

/// Records a job that failed before it had an id.
pub(crate) fn record_refusal(spec: &JobSpec, error: &Error, reporter: &dyn Reporter) {
    let Some(recording) = &spec.recording else {
        return;
    };
    let begun = description_of_job(spec).and_then(|job| Ok(Profile::begin_anywhere(&job)?));
    if let Some(profile) = report_begun(begun, reporter) {
        let directory = profile.directory().to_owned();
        end(profile, recording, Err::<&Outcome, _>(error), reporter);
        prune(&directory, reporter);
    }
}

/// Completes profiles of killed commands, and of jobs killed after their record was removed. A
/// clean completes the profiles of jobs in `records`.
///
/// # Errors
/// If a profile cannot be written, or /proc cannot be read.
pub fn complete_profiles(records: &Records) -> Result<(), Error> {
    let is_recorded = |id: &str| records.found.iter().any(|job| job.record.id == id);
    Ok(complete_abandoned(&is_recorded)?)
}

/// Reports the directory of the profile, or warns that there is none.
fn report_begun(begun: Result<Profile, Error>, reporter: &dyn Reporter) -> Option<Profile> {
    match begun {
        Ok(profile) => {
            reporter.recorded(profile.directory());
            Some(profile)
        }
        Err(error) => {
            reporter.warning(&format!("the job's I/O is not recorded: {error}"));
            None
        }
    }
}

fn description_of_job(spec: &JobSpec) -> Result<JobDescription, Error> {
    let path = spec.script.path.as_os_str();
    let words = std::iter::once(path).chain(spec.arguments.iter().map(AsRef::as_ref));
    let mut job = description_of_script(spec.script)?;
    job.command = words.map(lossy).collect();
    let recording = spec.recording.as_ref();
    let emulated = recording.and_then(|recording| recording.emulated);
    job.emulated = emulated.map(|emulated| emulated());
    Ok(job)
}

fn description_of_script(script: &JobScript) -> Result<JobDescription, Error> {
    let mut job = description(Kind::Run, script.job_name())?;
    job.script = Some(lossy(Path::new(&job.directory).join(&script.path)));
    job.nodes = script.header.nodes;
    job.tasks = Some(script.header.task_count());
    Ok(job)
}

fn description_of_command(words: &[OsString]) -> Result<JobDescription, Error> {
    let program = words.first().map(Path::new).and_then(Path::file_name);
    let mut job = description(Kind::Profile, program.map(lossy).unwrap_or_default())?;
    job.command = words.iter().map(lossy).collect();
    Ok(job)
}

fn description(kind: Kind, name: String) -> Result<JobDescription, Error> {
    let scheduler_job = forebay_scheduler::scheduler_job_id("");
    Ok(JobDescription {
        kind,
        name,
        script: None,
        command: Vec::new(),
        directory: lossy(system::current_directory()?),
        nodes: None,
        tasks: None,
        environment: std::collections::BTreeMap::new(),
        scheduler_job: scheduler_job.filter(|id| !id.is_empty()),
        emulated: None,
    })
}
