//! The record of a job's I/O: a directory `profiles/ID` in the user's state directory, described in
//! docs/profiles.md. What is in it beside `job.json` is written by `libforebay_mpi.so`, which is put in
//! front of the job's programs.
//!
//! No job fails because it cannot be recorded: what is lost is said, and the job goes on.

mod drains;
mod job_file;
mod programs;
mod retention;

use std::cell::OnceCell;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use forebay_host::{clock, files, machine, state};
use serde::Serialize;

use crate::launcher::Flavour;
use crate::series::Run;
use crate::{Error, JobScript, Order, Outcome, Watcher};
use forebay_record::{PROFILES, Recorded};

use job_file::JobFile;

pub(crate) use drains::earlier_stage_outs;
pub use job_file::complete_abandoned;
pub(crate) use job_file::complete_killed;
pub use programs::{Seen, seen};

/// What is free behind a record that was begun, so that it does not take the room of what is written about
/// the job itself.
const FREE_BYTES: usize = 16 << 10;
/// Names the record, for the library.
const PROFILE_VARIABLE: &str = "FOREBAY_PROFILE";
/// Asks the library for traces.
const TRACE_VARIABLE: &str = "FOREBAY_MPI_TRACE";
/// Read by AddressSanitizer.
const SANITIZER_VARIABLE: &str = "ASAN_OPTIONS";

/// How a job's I/O is recorded.
#[derive(Clone)]
pub struct Recording<'a> {
    /// What observes the programs.
    pub libraries: Libraries,
    /// Each call too?
    pub trace: bool,
    /// What `forebay run --json` says of the emulation by now, if there is one.
    pub emulated: Option<&'a dyn Fn() -> serde_json::Value>,
}

/// `libforebay_mpi.so` for the families of MPI whose handles differ.
#[derive(Debug, Clone, Default)]
pub struct Libraries {
    /// For Open MPI.
    pub openmpi: Option<PathBuf>,
    /// For MPICH and what shares its ABI.
    pub mpich: Option<PathBuf>,
}

impl Libraries {
    /// The one for a job: that of its launcher. A program of the other family corrects it.
    fn for_launcher(&self, flavour: impl FnOnce() -> Flavour) -> Option<&Path> {
        let found = match (&self.openmpi, &self.mpich) {
            (Some(_), Some(mpich)) if flavour() == Flavour::Hydra => Some(mpich),
            (openmpi, mpich) => openmpi.as_ref().or(mpich.as_ref()),
        };
        found.map(PathBuf::as_path)
    }

    /// The list of libraries to be loaded: ours first, so that it measures what others delay; and once,
    /// in a job within a job.
    fn preload(&self, library: &Path, before: &OsStr) -> OsString {
        let is_ours = |name: &&[u8]| {
            let path = Path::new(OsStr::from_bytes(name));
            [&self.openmpi, &self.mpich].contains(&&Some(path.to_owned()))
        };
        let others = before.as_bytes().split(|byte| b": ".contains(byte));
        let others = others.filter(|name| !name.is_empty() && !is_ours(name));
        let all = std::iter::once(library.as_os_str().as_bytes()).chain(others);
        OsStr::from_bytes(&all.collect::<Vec<_>>().join(&b':')).to_owned()
    }
}

/// A record that was begun.
pub(crate) struct Profile {
    pub(crate) directory: PathBuf,
    job: JobFile,
    library: OnceCell<PathBuf>,
}

impl Profile {
    /// That of a job which has just been written down.
    pub(crate) fn of_job(
        order: &Order,
        recorded: &Recorded,
        watcher: &dyn Watcher,
    ) -> Option<Self> {
        let directory = recorded.record.profile.clone()?;
        let job = JobFile::of_order(order, &recorded.record.id);
        let made = job.and_then(|job| Self::make(directory, job));
        begun(made, watcher)
    }

    /// That of a command, in the first state directory that takes it.
    pub(crate) fn of_command(words: &[OsString], watcher: &dyn Watcher) -> Option<Self> {
        begun(
            Self::make_anywhere(|id| JobFile::of_command(words, id)),
            watcher,
        )
    }

    /// That of a run of a series, in a directory of the requester's.
    pub(crate) fn of_run(
        directory: &Path,
        run: &Run,
        script: &JobScript,
        works_in: &Path,
        id: &str,
        recording: &Recording,
    ) -> Result<Self, Error> {
        files::make_directories(directory, 0o700)?;
        if job_file::lies_in(directory) {
            return Err(Error::RecordExists(directory.to_owned()));
        }
        let mut job = JobFile::of_run(run, script, works_in, id)?;
        job.emulated = recording.emulated.map(|emulated| emulated());
        let profile = Self {
            directory: directory.to_owned(),
            job,
            library: OnceCell::new(),
        };
        profile.job.write(directory)?;
        Ok(profile)
    }

    fn make_anywhere(job: impl Fn(&str) -> Result<JobFile, Error>) -> Result<Self, Error> {
        let mut refused = None;
        for directory in state::create_directories() {
            let made = directory.map_err(Error::from);
            match made.and_then(|made| Self::make_in(&made.join(PROFILES), &job)) {
                Ok(profile) => return Ok(profile),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        Err(refused.unwrap_or(forebay_record::Error::NoState(None).into()))
    }

    /// The id is the time in milliseconds, or the next number that is free.
    fn make_in(
        profiles: &Path,
        job: &impl Fn(&str) -> Result<JobFile, Error>,
    ) -> Result<Self, Error> {
        const TRIES: u128 = 100;
        let first = clock::unix_milliseconds();
        let mut id = first;
        loop {
            let text = id.to_string();
            match Self::make(profiles.join(&text), job(&text)?) {
                Err(Error::Host(error)) if error.already_exists() && id < first + TRIES => id += 1,
                made => return made,
            }
        }
    }

    fn make(directory: PathBuf, job: JobFile) -> Result<Self, Error> {
        if let Some(profiles) = directory.parent() {
            files::make_directories(profiles, 0o700)?;
        }
        files::make_directory(&directory, 0o700)?;
        let profile = Self {
            directory,
            job,
            library: OnceCell::new(),
        };
        let written = profile.job.write(&profile.directory);
        if let Err(error) = written.and_then(|()| profile.leaves_room()) {
            files::remove_tree(&profile.directory)?;
            return Err(error);
        }
        Ok(profile)
    }

    fn leaves_room(&self) -> Result<(), Error> {
        let (room, fresh) = (
            self.directory.join("room"),
            self.directory.join("room.fresh"),
        );
        files::write_whole(&room, &fresh, &[0; FREE_BYTES])?;
        Ok(files::remove_file(&room)?)
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// What puts the library in front of the job's programs; nothing where there is no library. We are
    /// where the job will be: in its view.
    pub(crate) fn environment(
        &self,
        recording: &Recording,
        launcher: Option<&OsStr>,
        watcher: &dyn Watcher,
    ) -> Vec<(&'static str, OsString)> {
        let libraries = &recording.libraries;
        let flavour = || launcher.map_or_else(Flavour::in_path, Flavour::of_launcher);
        let library = match libraries.for_launcher(flavour).map(usable) {
            Some(Ok(library)) => library,
            Some(Err(why)) => {
                watcher.note(&format!("the job's I/O is not recorded: {why}"));
                return Vec::new();
            }
            None => {
                watcher.note(
                    "the job's I/O is not recorded: there is no libforebay_mpi.so in \
                     ../lib/forebay beside this program",
                );
                return Vec::new();
            }
        };
        let before = std::env::var_os("LD_PRELOAD").unwrap_or_default();
        let mut variables = vec![
            ("LD_PRELOAD", libraries.preload(library, &before)),
            (PROFILE_VARIABLE, self.directory.clone().into()),
        ];
        if let Some(options) = sanitizer_options() {
            variables.push((SANITIZER_VARIABLE, options));
        }
        if recording.trace {
            variables.push((TRACE_VARIABLE, "1".into()));
        }
        self.library.set(library.to_owned()).ok(); // it is set once
        variables
    }

    /// Writes down how it ended.
    pub(crate) fn end(
        mut self,
        recording: &Recording,
        done: Result<&impl Serialize, &Error>,
        watcher: &dyn Watcher,
    ) {
        self.job.library = self.library.take().map(job_file::text);
        self.job.emulated = recording.emulated.map(|emulated| emulated());
        let written = self.job.end(done);
        if let Err(error) = written.and_then(|()| self.job.write(&self.directory)) {
            watcher.warning(&format!("how the job ended is not recorded: {error}"));
        }
    }
}

/// Makes room for later records beside this one, which has ended. Not when a job begins, nor before the last that is
/// to be done for it: to look through all records takes time with their files.
pub(crate) fn make_room(beside: &Path, watcher: &dyn Watcher) {
    if let Err(error) = retention::retain(beside) {
        watcher.warning(&format!("old records of I/O are not removed: {error}"));
    }
}

/// What lets programs built with AddressSanitizer run: they end at once where another library is loaded
/// before theirs, unless they are told not to look. None if they are told already.
fn sanitizer_options() -> Option<OsString> {
    let mut options = std::env::var_os(SANITIZER_VARIABLE).unwrap_or_default();
    if options.to_string_lossy().contains("verify_asan_link_order") {
        return None;
    }
    if !options.is_empty() {
        options.push(":");
    }
    options.push("verify_asan_link_order=0");
    Some(options)
}

/// Says where the record is, or that there is none.
fn begun(made: Result<Profile, Error>, watcher: &dyn Watcher) -> Option<Profile> {
    match made {
        Ok(profile) => {
            watcher.recorded(&profile.directory);
            Some(profile)
        }
        Err(error) => {
            watcher.warning(&format!("the job's I/O is not recorded: {error}"));
            None
        }
    }
}

/// Writes down a job that came to nothing before it had an id of its own.
pub(crate) fn record_refusal(order: &Order, error: &Error, watcher: &dyn Watcher) {
    let Some(recording) = &order.recording else {
        return;
    };
    let made = Profile::make_anywhere(|id| JobFile::of_order(order, id));
    if let Some(profile) = begun(made, watcher) {
        let directory = profile.directory.clone();
        profile.end(recording, Err::<&Outcome, _>(error), watcher);
        make_room(&directory, watcher);
    }
}

/// Can this library be named in LD_PRELOAD, where blanks and colons end a name and `$` begins a
/// variable (ld.so(8))?
fn usable(library: &Path) -> Result<&Path, String> {
    if library
        .as_os_str()
        .as_bytes()
        .iter()
        .any(|byte| b" \t\n:$".contains(byte))
    {
        let library = library.display();
        return Err(format!(
            "blanks, colons and $ in {library} do not pass LD_PRELOAD"
        ));
    }
    let found = files::status(library).map_err(|error| error.to_string());
    found.map(|_| library)
}

/// The state directory whose record of I/O is the newest, else the first that a job would take.
///
/// # Errors
/// If the current directory was removed, and it is needed.
pub fn state_directory() -> Result<PathBuf, Error> {
    let directories = state::directories();
    let newest = |directory: &&PathBuf| retention::ids(&directory.join(PROFILES)).pop();
    let found = directories.iter().rev().max_by_key(newest);
    let found = found.cloned().unwrap_or_default();
    let here = || Ok::<_, Error>(machine::current_directory()?);
    Ok(if found.is_absolute() {
        found
    } else {
        here()?.join(found)
    })
}

/// What records of I/O take.
#[derive(Debug)]
pub struct Stored {
    /// Where they lie.
    pub directory: PathBuf,
    /// How many there are.
    pub records: usize,
    /// What they take, traces included.
    pub bytes: u64,
}

/// Looks at the records of I/O.
///
/// # Errors
/// As [`state_directory`].
pub fn stored() -> Result<Stored, Error> {
    let directory = state_directory()?.join(PROFILES);
    Ok(Stored {
        records: retention::ids(&directory).len(),
        bytes: files::tree_bytes(&directory),
        directory,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn libraries() -> Libraries {
        Libraries {
            openmpi: Some("/l/openmpi/x.so".into()),
            mpich: Some("/l/mpich/x.so".into()),
        }
    }

    #[test]
    fn the_library_is_that_of_the_launcher_where_there_are_two() {
        let both = libraries();
        let of = |all: &Libraries, flavour| all.for_launcher(|| flavour).map(Path::to_owned);
        assert_eq!(of(&both, Flavour::Hydra), both.mpich);
        assert_eq!(of(&both, Flavour::OpenMpi), both.openmpi);
        assert_eq!(of(&both, Flavour::Unknown), both.openmpi);
        let one = Libraries {
            openmpi: None,
            ..libraries()
        };
        assert_eq!(of(&one, Flavour::OpenMpi), both.mpich);
        assert_eq!(of(&Libraries::default(), Flavour::Hydra), None);
    }

    #[test]
    fn ours_is_loaded_first_and_once_and_the_users_own_stay_in_order() {
        let both = libraries();
        let preload = |before: &str| both.preload("/l/mpich/x.so".as_ref(), before.as_ref());
        assert_eq!(preload(""), "/l/mpich/x.so");
        assert_eq!(preload("/a.so:/b.so"), "/l/mpich/x.so:/a.so:/b.so");
        assert_eq!(
            preload("/l/openmpi/x.so:/a.so /l/mpich/x.so"),
            "/l/mpich/x.so:/a.so"
        );
    }
}
