//! A record that was begun, and what puts the library in front of the programs.

use std::cell::OnceCell;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use forebay_host::messages::Messages;
use forebay_host::{clock, files, state};
use serde::Serialize;

use crate::error::Error;
use crate::ids::PROFILES;
use crate::job_file::{self, JobDescription, JobFile};
use crate::mpi_family::MpiFamily;

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
    fn for_launcher(&self, family: impl FnOnce() -> MpiFamily) -> Option<&Path> {
        let found = match (&self.openmpi, &self.mpich) {
            (Some(_), Some(mpich)) if family() == MpiFamily::Hydra => Some(mpich),
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
pub struct Profile {
    directory: PathBuf,
    job: JobFile,
    library: OnceCell<PathBuf>,
}

impl Profile {
    /// Begins a record in a directory that is made for it.
    ///
    /// # Errors
    /// If it cannot be made, or leaves no room.
    pub fn begin(directory: PathBuf, job: &JobDescription, id: &str) -> Result<Self, Error> {
        Self::make(directory, JobFile::new(job, id)?)
    }

    /// The same in a directory that may exist but holds no record.
    ///
    /// # Errors
    /// If it holds one, or cannot be written.
    pub fn begin_in(directory: &Path, job: &JobDescription, id: &str) -> Result<Self, Error> {
        files::make_directories(directory, 0o700)?;
        if job_file::exists_in(directory) {
            return Err(Error::RecordExists(directory.to_owned()));
        }
        let profile = Self {
            directory: directory.to_owned(),
            job: JobFile::new(job, id)?,
            library: OnceCell::new(),
        };
        profile.job.write(directory)?;
        Ok(profile)
    }

    /// The same in the first state directory that takes it, with an id of its own.
    ///
    /// # Errors
    /// Why none of them takes it.
    pub fn begin_anywhere(job: &JobDescription) -> Result<Self, Error> {
        let mut refused = None;
        for directory in state::create_directories() {
            let made = directory.map_err(Error::from);
            match made.and_then(|made| Self::make_in(&made.join(PROFILES), job)) {
                Ok(profile) => return Ok(profile),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        Err(refused.unwrap_or(Error::NoState))
    }

    /// The id is the time in milliseconds, or the next number that is free.
    fn make_in(profiles: &Path, job: &JobDescription) -> Result<Self, Error> {
        const TRIES: u128 = 100;
        let first = clock::unix_milliseconds();
        let mut id = first;
        loop {
            let text = id.to_string();
            match Self::begin(profiles.join(&text), job, &text) {
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
        let profile = Self { directory, job, library: OnceCell::new() };
        let written = profile.job.write(&profile.directory);
        if let Err(error) = written.and_then(|()| profile.check_space()) {
            files::remove_tree(&profile.directory)?;
            return Err(error);
        }
        Ok(profile)
    }

    fn check_space(&self) -> Result<(), Error> {
        let (room, fresh) = (self.directory.join("room"), self.directory.join("room.fresh"));
        files::write_atomically(&room, &fresh, &[0; FREE_BYTES])?;
        Ok(files::remove_file(&room)?)
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The variables that preload the library; none where there is no library. Assumes that this process is in the
    /// job's view.
    pub fn environment(
        &self,
        recording: &Recording,
        launcher: Option<&OsStr>,
        messages: &dyn Messages,
    ) -> Vec<(&'static str, OsString)> {
        let libraries = &recording.libraries;
        let family = || launcher.map_or_else(MpiFamily::in_path, MpiFamily::of_launcher);
        let library = match libraries.for_launcher(family).map(usable) {
            Some(Ok(library)) => library,
            Some(Err(why)) => {
                messages.note(&format!("the job's I/O is not recorded: {why}"));
                return Vec::new();
            }
            None => {
                messages.note(
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

    /// Records how it ended: the outcome, or an error and its hint.
    pub fn end(
        mut self,
        recording: &Recording,
        done: Result<&impl Serialize, (String, Option<String>)>,
        messages: &dyn Messages,
    ) {
        self.job.library = self.library.take().map(job_file::text);
        self.job.emulated = recording.emulated.map(|emulated| emulated());
        let written = self.job.end(done);
        if let Err(error) = written.and_then(|()| self.job.write(&self.directory)) {
            messages.warning(&format!("how the job ended is not recorded: {error}"));
        }
    }
}

/// What lets programs built with AddressSanitizer run: they end at once where another library is loaded
/// before theirs, unless an option disables that check. None if it is set already.
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

/// Can this library be named in LD_PRELOAD, where blanks and colons end a name and `$` begins a
/// variable (ld.so(8))?
fn usable(library: &Path) -> Result<&Path, String> {
    if library.as_os_str().as_bytes().iter().any(|byte| b" \t\n:$".contains(byte)) {
        let library = library.display();
        return Err(format!("blanks, colons and $ in {library} do not pass LD_PRELOAD"));
    }
    let found = files::status(library).map_err(|error| error.to_string());
    found.map(|_| library)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn libraries() -> Libraries {
        Libraries { openmpi: Some("/l/openmpi/x.so".into()), mpich: Some("/l/mpich/x.so".into()) }
    }

    #[test]
    fn the_library_is_that_of_the_launcher_where_there_are_two() {
        let both = libraries();
        let of = |all: &Libraries, family| all.for_launcher(|| family).map(Path::to_owned);
        assert_eq!(of(&both, MpiFamily::Hydra), both.mpich);
        assert_eq!(of(&both, MpiFamily::OpenMpi), both.openmpi);
        assert_eq!(of(&both, MpiFamily::Unknown), both.openmpi);
        let one = Libraries { openmpi: None, ..libraries() };
        assert_eq!(of(&one, MpiFamily::OpenMpi), both.mpich);
        assert_eq!(of(&Libraries::default(), MpiFamily::Hydra), None);
    }

    #[test]
    fn two_records_of_one_millisecond_get_two_ids() {
        let scratch = tempfile::tempdir().expect("tempdir");
        let job = JobDescription::default();
        let begun = |_| Profile::make_in(scratch.path(), &job).expect("begun");
        let directories: std::collections::BTreeSet<_> =
            (0..5).map(begun).map(|profile| profile.directory).collect();
        assert_eq!(directories.len(), 5);
    }

    #[test]
    fn ours_is_loaded_first_and_once_and_the_users_own_stay_in_order() {
        let both = libraries();
        let preload = |before: &str| both.preload("/l/mpich/x.so".as_ref(), before.as_ref());
        assert_eq!(preload(""), "/l/mpich/x.so");
        assert_eq!(preload("/a.so:/b.so"), "/l/mpich/x.so:/a.so:/b.so");
        assert_eq!(preload("/l/openmpi/x.so:/a.so /l/mpich/x.so"), "/l/mpich/x.so:/a.so");
    }
}
