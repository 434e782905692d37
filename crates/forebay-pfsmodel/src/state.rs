//! The shared state: created once by the command that starts a job, mapped by each process of the job.
//! Assumes that its creator removes the file, before the next reboot. Never used by two versions: `attach` refuses a
//! state of another one.
// Only the preload and its controller use these files, by the same rules as forebay-host. A preload
// cannot link forebay-host, whose calls would enter the hooks. Only `create` uses std::fs.
#![allow(clippy::disallowed_methods)]

use std::ffi::{CString, OsStr, c_int};
use std::io;
use std::mem::size_of;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use thiserror::Error;

use crate::block::{Block, MAGIC, NAME_MAX, Parameters, ROOTS_MAX, Root, TARGETS_MAX, VERSION};
use crate::layout::Layout;
use crate::machine::Model;
use crate::striping::Striping;
use crate::{kernel, paths};

/// The state of an emulated file system, mapped into this process.
#[derive(Debug)]
pub struct State {
    block: NonNull<Block>,
}

// SAFETY: the block is shared memory. Changing fields are atomics; the others are written once,
// before the magic number that every attach checks. So references to it may be used from any thread.
unsafe impl Send for State {}
// SAFETY: as above.
unsafe impl Sync for State {}

/// Why a state cannot be created or used.
#[derive(Debug, Error)]
pub enum StateError {
    /// A system call on the state file failed.
    #[error("cannot {action} the state file {path}: {source}")]
    File {
        /// The failed action.
        action: &'static str,
        /// The state file.
        path: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The file is not a complete state of this version.
    #[error("{path} is not a state of this version of the emulated file system: {reason}")]
    NotAState {
        /// The state file.
        path: String,
        /// What is wrong with the file.
        reason: String,
    },
    /// A directory cannot be emulated.
    #[error("cannot emulate the directory {path}: {reason}")]
    Root {
        /// The directory as given.
        path: String,
        /// The reason.
        reason: String,
    },
    /// The model does not fit the state (impossible for one from `Model::from_toml`).
    #[error("the machine \"{name}\" cannot be emulated: {reason}")]
    Model {
        /// Name of the machine.
        name: String,
        /// The reason.
        reason: String,
    },
}

impl State {
    /// Creates the state file `path` (mode 0600) for `model` and the existing directories `roots`.
    /// `path` must not exist; a directory in memory, such as /dev/shm, is best. The caller removes
    /// the file; it must not outlive a reboot.
    ///
    /// # Errors
    /// [`StateError`]: the file exists or cannot be created; a root is missing, no directory, `/`
    /// or too long; or there are too many roots. After an error the file is removed.
    pub fn create(path: &Path, model: &Model, roots: &[PathBuf]) -> Result<Self, StateError> {
        Self::create_showing(path, model, roots, &[])
    }

    /// As [`State::create`]. `shown` are further absolute paths of the roots, without links. They
    /// need not exist.
    ///
    /// # Errors
    /// As [`State::create`].
    pub fn create_showing(
        path: &Path,
        model: &Model,
        roots: &[PathBuf],
        shown: &[PathBuf],
    ) -> Result<Self, StateError> {
        let roots = canonical_roots(roots, shown)?;
        check_model(model)?;
        let name = c_path(path)?;
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW;
        let descriptor = kernel::open(&name, flags, 0o600)
            .map_err(|source| file_error("create", path, source))?;
        let mapped = kernel::set_length(descriptor, size_of::<Block>() as u64)
            .and_then(|()| kernel::map_shared(Some(descriptor), size_of::<Block>()));
        kernel::close(descriptor);
        let state = mapped.and_then(Self::from_mapping).map_err(|source| {
            // The first error is reported. If the removal also fails, an empty file stays.
            std::fs::remove_file(path).ok();
            file_error("size and map", path, source)
        })?;
        state.fill(model, &roots, kernel::now_ns());
        Ok(state)
    }

    /// Creates a state without a file, for computations in virtual time. Forked children share it.
    ///
    /// # Errors
    /// [`StateError`]: no memory, or a model that cannot be emulated.
    pub fn private(model: &Model) -> Result<Self, StateError> {
        check_model(model)?;
        let mapped = kernel::map_shared(None, size_of::<Block>()).and_then(Self::from_mapping);
        let state = mapped.map_err(|source| file_error("map", Path::new("(memory)"), source))?;
        state.fill(model, &[], 0);
        Ok(state)
    }

    /// Maps an existing state file.
    ///
    /// # Errors
    /// [`StateError`]: the file cannot be opened, has another size, type or version, is incomplete,
    /// or is older than the last reboot.
    pub fn attach(path: &Path) -> Result<Self, StateError> {
        let name = c_path(path)?;
        let descriptor = kernel::open(&name, libc::O_RDWR | libc::O_NOFOLLOW, 0)
            .map_err(|source| file_error("open", path, source))?;
        let mapped = map_existing(descriptor, path);
        kernel::close(descriptor);
        let state = mapped?;
        state.check(path)?;
        Ok(state)
    }

    fn from_mapping(address: *mut std::ffi::c_void) -> io::Result<Self> {
        let block = NonNull::new(address.cast::<Block>())
            .ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        Ok(Self { block })
    }

    pub(crate) fn block(&self) -> &Block {
        // SAFETY: the mapping has the size of a Block and lives as long as self. All bit patterns are valid
        // for its fields. Changing fields are atomics, and the others are written before anyone reads them.
        unsafe { self.block.as_ref() }
    }

    /// Writes all fields, the magic number last.
    fn fill(&self, model: &Model, roots: &[PathBuf], created_ns: u64) {
        let mut name = [0; NAME_MAX];
        let length = model.name.len().min(NAME_MAX);
        name[..length].copy_from_slice(&model.name.as_bytes()[..length]);
        let parameters = Parameters {
            magic: AtomicU64::new(0),
            version: VERSION.into(),
            targets: model.targets.count.value,
            // canonical_roots has limited the number to ROOTS_MAX.
            roots: roots.len() as u32,
            default_stripe_count: model.layout.stripe_count.value,
            default_stripe_size_bytes: model.layout.stripe_size_bytes.value,
            target_latency_ns: model.targets.latency_ns.value,
            target_bytes_per_s: model.targets.bandwidth_bytes_per_s.value,
            switch_penalty_ns: model.targets.switch_penalty_ns.value,
            client_bytes_per_s: model.client.bandwidth_bytes_per_s.value,
            metadata_operation_ns: model.metadata.operation_ns.value,
            metadata_per_stripe_ns: model.metadata.per_stripe_ns.value,
            created_ns,
            name,
        };
        let block = self.block.as_ptr();
        // SAFETY: the memory is new and zeroed. Others use it only after the magic number is set
        // (attach rejects it before). No reference to it exists during these plain writes.
        unsafe {
            (&raw mut (*block).parameters).write(parameters);
            for (index, root) in roots.iter().enumerate() {
                (&raw mut (*block).root[index]).write(root_entry(root));
            }
        }
        self.block().totals.first_start_ns.store(u64::MAX, Ordering::Relaxed);
        self.block().parameters.magic.store(MAGIC, Ordering::Release);
    }

    fn check(&self, path: &Path) -> Result<(), StateError> {
        let refuse = |reason: String| {
            Err(StateError::NotAState { path: path.display().to_string(), reason })
        };
        let parameters = &self.block().parameters;
        match parameters.magic.load(Ordering::Acquire) {
            MAGIC => {}
            0 => return refuse("it is not finished; its creator was killed".to_owned()),
            other => {
                return refuse(format!("it starts with {other:#018x} instead of {MAGIC:#018x}"));
            }
        }
        let version = parameters.version.load(Ordering::Relaxed);
        if version != VERSION {
            return refuse(format!(
                "it has version {version}, this program needs {VERSION}; use one build of Forebay"
            ));
        }
        if parameters.targets == 0
            || parameters.targets as usize > TARGETS_MAX
            || parameters.roots as usize > ROOTS_MAX
            || parameters.default_stripe_size_bytes == 0
            || parameters.default_stripe_count == 0
        {
            return refuse("its parameters are damaged".to_owned());
        }
        if parameters.created_ns > kernel::now_ns() {
            return refuse("it is older than the last reboot; remove it".to_owned());
        }
        Ok(())
    }

    /// Name of the emulated machine (cut at 64 bytes).
    pub fn machine(&self) -> String {
        let name = &self.block().parameters.name;
        let length = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        String::from_utf8_lossy(&name[..length]).into_owned()
    }

    /// Number of targets.
    pub fn targets(&self) -> u32 {
        self.block().parameters.targets
    }

    /// The canonical paths of the emulated directories.
    pub fn roots(&self) -> Vec<PathBuf> {
        self.root_paths().map(|root| PathBuf::from(OsStr::from_bytes(root))).collect()
    }

    fn root_paths(&self) -> impl Iterator<Item = &[u8]> {
        let block = self.block();
        block.root[..block.parameters.roots as usize].iter().map(Root::path)
    }

    /// True if the absolute, normalised path is an emulated directory or below one.
    pub fn covers(&self, path: &[u8]) -> bool {
        self.root_paths().any(|root| paths::is_below(path, root))
    }

    /// The default striping for a file without attribute. The first target follows from the inode
    /// number, so all processes agree without communication.
    pub fn unbound_layout(&self, inode: u64) -> Layout {
        let first = (inode % u64::from(self.targets())) as i32;
        self.complete(Striping { first_target: first, ..Striping::DEFAULT })
    }

    /// The layout in a file's attribute; `None` if values are open (it was copied from a directory).
    pub fn bound(&self, striping: Striping) -> Option<Layout> {
        let bound = striping.stripe_count > 0
            && striping.first_target >= 0
            && striping.stripe_size_bytes > 0;
        bound.then(|| self.complete(striping))
    }

    /// Fills in the open values of a request. An open first target is assigned in turn; the turn
    /// advances by the stripe count, so that a few wide files use all targets.
    pub fn complete(&self, striping: Striping) -> Layout {
        let (parameters, targets) = (&self.block().parameters, self.targets());
        let stripe_count = match striping.stripe_count {
            0 => parameters.default_stripe_count,
            count => u32::try_from(count).unwrap_or(targets),
        }
        .clamp(1, targets);
        let stripe_size_bytes = match striping.stripe_size_bytes {
            0 => parameters.default_stripe_size_bytes,
            size => size,
        };
        let first_target = match u64::try_from(striping.first_target) {
            Ok(first) => first,
            Err(_) => self
                .block()
                .totals
                .next_first_target
                .fetch_add(u64::from(stripe_count), Ordering::Relaxed),
        };
        // `first_target` is less than `targets`, which is a u32.
        Layout {
            stripe_count,
            stripe_size_bytes,
            first_target: (first_target % u64::from(targets)) as u32,
        }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        // SAFETY: map_shared made the mapping with this size, and all references to it borrow self.
        unsafe { kernel::unmap(self.block.as_ptr().cast(), size_of::<Block>()) };
    }
}

fn map_existing(descriptor: c_int, path: &Path) -> Result<State, StateError> {
    let status =
        kernel::status(descriptor).map_err(|source| file_error("inspect", path, source))?;
    let expected = size_of::<Block>();
    if status.st_mode & libc::S_IFMT != libc::S_IFREG
        || u64::try_from(status.st_size) != Ok(expected as u64)
    {
        let reason = format!("it has {} bytes instead of {expected}", status.st_size);
        return Err(StateError::NotAState { path: path.display().to_string(), reason });
    }
    let mapped = kernel::map_shared(Some(descriptor), expected).and_then(State::from_mapping);
    mapped.map_err(|source| file_error("map", path, source))
}

fn root_entry(root: &Path) -> Root {
    let bytes = root.as_os_str().as_bytes();
    // canonical_roots has checked the length.
    let mut entry = Root { length: bytes.len() as u32, path: [0; paths::PATH_MAX - 4] };
    entry.path[..bytes.len()].copy_from_slice(bytes);
    entry
}

fn canonical_roots(roots: &[PathBuf], shown: &[PathBuf]) -> Result<Vec<PathBuf>, StateError> {
    let refuse =
        |path: &Path, reason: String| StateError::Root { path: path.display().to_string(), reason };
    if roots.is_empty() || roots.len() + shown.len() > ROOTS_MAX {
        let reason = format!(
            "{} directories were given; 1 to {ROOTS_MAX} can be emulated",
            roots.len() + shown.len()
        );
        return Err(refuse(roots.last().map_or(Path::new(""), PathBuf::as_path), reason));
    }
    let canonical = |root: &PathBuf| {
        let path = root.canonicalize().map_err(|error| refuse(root, error.to_string()))?;
        if !path.is_dir() {
            return Err(refuse(root, "it is no directory".to_owned()));
        }
        Ok(path)
    };
    let fits = |path: PathBuf| {
        let root = path.as_path();
        if path == Path::new("/") {
            return Err(refuse(root, "all files of the machine would become slow".to_owned()));
        }
        if path.as_os_str().len() > paths::PATH_MAX - 4 {
            return Err(refuse(root, "its path is too long".to_owned()));
        }
        Ok(path)
    };
    let roots = roots.iter().map(canonical);
    let all = roots.chain(shown.iter().cloned().map(Ok));
    all.map(|path| path.and_then(fits)).collect()
}

fn check_model(model: &Model) -> Result<(), StateError> {
    let refuse = |reason: String| Err(StateError::Model { name: model.name.clone(), reason });
    let targets = model.targets.count.value;
    if targets == 0 || targets as usize > TARGETS_MAX {
        return refuse(format!("it has {targets} targets; 1 to {TARGETS_MAX} are possible"));
    }
    if !(1..=targets).contains(&model.layout.stripe_count.value)
        || model.layout.stripe_size_bytes.value == 0
    {
        return refuse("its default striping is impossible".to_owned());
    }
    Ok(())
}

fn c_path(path: &Path) -> Result<CString, StateError> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| file_error("name", path, io::Error::from_raw_os_error(libc::EINVAL)))
}

fn file_error(action: &'static str, path: &Path, source: io::Error) -> StateError {
    StateError::File { action, path: path.display().to_string(), source }
}
