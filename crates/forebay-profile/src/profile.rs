//! Creates a record of I/O, and preloads the library into programs.
//! Assumes that the library writes what programs do. Never makes the job fail: the caller warns.

use std::cell::{Cell, OnceCell};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use forebay_host::messages::Messages;
use forebay_host::process::Transferred;
use forebay_host::{clock, files, state};
use serde::Serialize;

use crate::elsewhere;
use crate::error::Error;
use crate::ids::PROFILES;
use crate::job_file::{self, JobDescription, JobFile};
use crate::live_files;
use crate::mpi_family::MpiFamily;

/// The minimum free space after creating a record, so that the record leaves space for information
/// about the job itself.
const FREE_BYTES: usize = 16 << 10;
/// The directory of the record, for the library.
const PROFILE_VARIABLE: &str = "FOREBAY_PROFILE";
/// Requests traces from the library.
const TRACE_VARIABLE: &str = "FOREBAY_MPI_TRACE";
/// Read by AddressSanitizer.
const SANITIZER_VARIABLE: &str = "ASAN_OPTIONS";

/// How to record a job's I/O.
#[derive(Clone)]
pub struct Recording<'a> {
    /// The libraries that observe the programs.
    pub libraries: Libraries,
    /// Whether to record each call.
    pub trace: bool,
    /// The current state of the emulation, as in `forebay run --json`; none without emulation.
    pub emulated: Option<&'a dyn Fn() -> serde_json::Value>,
}

/// `libforebay_mpi.so` for each family of MPI, because their handles differ.
#[derive(Debug, Clone, Default)]
pub struct Libraries {
    /// For Open MPI.
    pub openmpi: Option<PathBuf>,
    /// For MPICH and implementations with its ABI.
    pub mpich: Option<PathBuf>,
}

impl Libraries {
    /// The library for a launcher. Programs of the other family switch the library themselves.
    fn for_launcher(&self, family: impl FnOnce() -> MpiFamily) -> Option<&Path> {
        let found = match (&self.openmpi, &self.mpich) {
            (Some(_), Some(mpich)) if family() == MpiFamily::Hydra => Some(mpich),
            (openmpi, mpich) => openmpi.as_ref().or(mpich.as_ref()),
        };
        found.map(PathBuf::as_path)
    }

    /// The value of LD_PRELOAD. This library is first, to include delays by others in its times. It
    /// occurs once, even in a nested job.
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

/// A started record.
pub struct Profile {
    directory: PathBuf,
    job: JobFile,
    library: OnceCell<PathBuf>,
    transferred: Cell<Option<Transferred>>,
}

impl Profile {
    /// Starts a record in a new directory.
    ///
    /// # Errors
    /// If the directory cannot be created, or the space is not sufficient.
    pub fn begin(directory: PathBuf, job: &JobDescription, id: &str) -> Result<Self, Error> {
        Self::make(directory, JobFile::new(job, id)?)
    }

    /// The same in a directory that may exist but holds no record.
    ///
    /// # Errors
    /// If the directory holds a record or cannot be written.
    pub fn begin_in(directory: &Path, job: &JobDescription, id: &str) -> Result<Self, Error> {
        files::make_directories(directory, 0o700)?;
        if job_file::exists_in(directory) {
            return Err(Error::RecordExists(directory.to_owned()));
        }
        let profile = Self {
            directory: directory.to_owned(),
            job: JobFile::new(job, id)?,
            library: OnceCell::new(),
            transferred: Cell::new(None),
        };
        profile.job.write(directory)?;
        Ok(profile)
    }

    /// The same in the first usable state directory, with a new ID.
    ///
    /// # Errors
    /// The error of the first state directory, if none is usable.
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

    /// The ID is the time in milliseconds, or the next unused number.
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
        let (library, transferred) = (OnceCell::new(), Cell::new(None));
        let profile = Self { directory, job, library, transferred };
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

    /// The directory of the record.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The variables that preload the library; none without a library. This process must be in the
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
                     ../lib/forebay (seen from this program)",
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
        if let Err(error) = elsewhere::make(&self.directory) {
            messages.warning(&format!("which share of the I/O is recorded is not known: {error}"));
        }
        self.library.set(library.to_owned()).ok(); // set only once
        variables
    }

    /// Notes what the programs of the job moved, as the kernel counts it.
    pub fn note_transferred(&self, transferred: Option<Transferred>) {
        self.transferred.set(transferred);
    }

    /// Records the end: the outcome, or an error and its hint.
    pub fn end(
        mut self,
        recording: &Recording,
        done: Result<&impl Serialize, (String, Option<String>)>,
        messages: &dyn Messages,
    ) {
        if let Err(error) = live_files::collect(&self.directory) {
            messages.warning(&format!("what killed programs did is not in the record: {error}"));
        }
        self.job.transferred = self.transferred.take();
        self.job.library = self.library.take().map(files::lossy);
        self.job.emulated = recording.emulated.map(|emulated| emulated());
        let written = self.job.end(done);
        if let Err(error) = written.and_then(|()| self.job.write(&self.directory)) {
            messages.warning(&format!("how the job ended is not recorded: {error}"));
        }
    }
}

/// Options for programs built with AddressSanitizer. Otherwise they abort if another library is
/// loaded first. None if the check is already set.
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

/// Checks that LD_PRELOAD can hold this path: blanks and colons end a name, and `$` starts a
/// variable (ld.so(8)).
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
    fn library_is_that_of_the_launcher_where_two_exist() {
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
    fn own_preload_is_first_and_user_preloads_keep_their_order() {
        let both = libraries();
        let preload = |before: &str| both.preload("/l/mpich/x.so".as_ref(), before.as_ref());
        assert_eq!(preload(""), "/l/mpich/x.so");
        assert_eq!(preload("/a.so:/b.so"), "/l/mpich/x.so:/a.so:/b.so");
        assert_eq!(preload("/l/openmpi/x.so:/a.so /l/mpich/x.so"), "/l/mpich/x.so:/a.so");
    }
}
