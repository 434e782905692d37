//! Facts of a node: what an engine finds there. Collected on the node itself.
//! Reserves nothing: the port and the memory may be in use when the engine starts.
//! Each program that it runs has a time limit.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use forebay_ceph::{ClientFunctions, Programs};
use forebay_host::process::{command, run_captured};
use forebay_host::{clock, files, filesystem, memory, network, probe, system, users};
use forebay_store::{SHARED_MEMORY, Store};
use serde::{Deserialize, Serialize};

/// The name in the program of the function whose wait the library ends: `Client::get_caps`.
const GET_CAPS: &[u8] = b"_ZN6Client8get_capsE";
/// The library that lets a client of Ceph go on when it was not woken.
const CEPH_PRELOAD: &str = "libforebay_ceph_preload.so";
/// The time for a program to print its version.
const VERSION_MAX: Duration = Duration::from_secs(10);
/// The time for the capacity command; its own limit is shorter.
const CAPACITY_MAX: Duration = Duration::from_secs(56);
/// Where daemons are that an ordinary user's PATH leaves out.
const DAEMON_DIRECTORIES: [&str; 3] = ["/usr/sbin", "/sbin", "/usr/local/sbin"];

/// What the agent is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactsRequest {
    /// The node's name, as the user or the scheduler wrote it.
    pub name: String,
    /// Another node of the job; none if there is no other.
    pub peer: Option<String>,
    /// Programs to look for.
    pub programs: Vec<String>,
    /// Whether to look for Ceph.
    pub ceph: bool,
    /// The directory of an engine that is carried along; none: that of the system.
    pub engine_root: Option<PathBuf>,
    /// The store of the user or the site; none: the default.
    pub store: Option<PathBuf>,
    /// A command that prints the available bytes of the engine.
    pub capacity: Option<Vec<String>>,
}

/// A program on a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramFacts {
    /// The words that start it.
    pub words: Vec<String>,
    /// The first line of its `--version`.
    pub version: String,
}

/// What was found of Ceph on a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CephFacts {
    /// Its programs.
    Found(Box<Programs>),
    /// Programs and libraries that are missing, with their packages.
    Missing(Vec<(String, String)>),
}

impl CephFacts {
    fn find(engine_root: Option<&Path>) -> Self {
        match Programs::find(engine_root) {
            Ok(programs) => Self::Found(Box::new(programs)),
            Err(missing) => Self::Missing(missing.missing),
        }
    }
}

/// The store of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreFacts {
    /// Its name, as the user writes it.
    pub name: String,
    /// The directory for data; of shared memory if the store is memory.
    pub directory: PathBuf,
    /// Whether it is in memory.
    pub in_memory: bool,
    /// The most that an allocation can have there, in bytes.
    pub usable_bytes: u64,
}

/// The facts of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFacts {
    /// The node's name, as the user or the scheduler wrote it.
    pub name: String,
    /// Its host name.
    pub hostname: String,
    /// What tells it from other machines: the boot ID and the network namespace.
    pub identity: String,
    /// The address that other nodes use.
    pub address: IpAddr,
    /// A port of it that was free.
    pub free_port: u16,
    /// The user.
    pub user_id: u32,
    /// The release of the kernel.
    pub kernel: String,
    /// The number of processors.
    pub processors: usize,
    /// Whether `/dev/fuse` can be opened.
    pub has_fuse: bool,
    /// Whether this user can mount with FUSE: root, or there is `fusermount`.
    pub can_mount_fuse: bool,
    /// Available memory in bytes.
    pub memory_available_bytes: u64,
    /// The programs that were found.
    pub programs: BTreeMap<String, ProgramFacts>,
    /// Ceph; none if it was not looked for.
    pub ceph: Option<CephFacts>,
    /// The program of Forebay.
    pub forebay: PathBuf,
    /// Its library for clients of Ceph; none: not installed, or its path cannot be preloaded.
    #[serde(default)]
    pub ceph_preload: Option<PathBuf>,
    /// Whether the library can find out what a thread of `ceph-fuse` waits for.
    #[serde(default)]
    pub ceph_fuse_shows_waits: bool,
    /// Why Forebay's own client of CephFS cannot run; none: it can, or Ceph was not looked for.
    #[serde(default)]
    pub lacks_for_mount: Option<String>,
    /// The store.
    pub store: StoreFacts,
    /// The available bytes of the engine, which its own command printed.
    pub engine_bytes: Option<u64>,
    /// The clock, in milliseconds since 1970.
    pub unix_ms: u64,
}

impl HostFacts {
    /// The words that start a program; its name if it was not found.
    pub fn words(&self, program: &str) -> Vec<String> {
        let found = self.programs.get(program).map(|found| found.words.clone());
        found.unwrap_or_else(|| vec![program.to_owned()])
    }

    /// Looks at this machine.
    ///
    /// # Errors
    /// If the store cannot be used, or no route leads to the other node.
    pub fn collect(request: &FactsRequest) -> Result<Self, String> {
        let text = |error: forebay_host::Error| error.to_string();
        let address = match &request.peer {
            Some(peer) => network::address_towards(peer).map_err(text)?,
            None => IpAddr::from([127, 0, 0, 1]),
        };
        let fuse = Path::new("/dev/fuse");
        let has_fusermount = ["fusermount3", "fusermount"]
            .iter()
            .any(|name| system::find_other_program(name).is_some());
        let programs = request.programs.iter().filter_map(|name| {
            let words = vec![find_program(name)?.to_string_lossy().into_owned()];
            let version = version_of(&words).unwrap_or_default();
            Some((name.clone(), ProgramFacts { words, version }))
        });
        let ceph = request.ceph.then(|| CephFacts::find(request.engine_root.as_deref()));
        Ok(Self {
            name: request.name.clone(),
            hostname: system::hostname(),
            identity: format!(
                "{} {}",
                system::boot_id().map_err(text)?,
                system::network_namespace().map_err(text)?
            ),
            address,
            free_port: network::free_port(address).map_err(text)?,
            user_id: users::user_id(),
            kernel: system::kernel(),
            processors: system::processors(),
            has_fuse: probe::check_open_rw(fuse).is_ok(),
            can_mount_fuse: users::is_root() || has_fusermount,
            memory_available_bytes: memory::memory().map_err(text)?.available_bytes,
            programs: programs.collect(),
            ceph_preload: system::installed_library(CEPH_PRELOAD).filter(|path| can_preload(path)),
            ceph_fuse_shows_waits: ceph.as_ref().is_some_and(shows_waits),
            lacks_for_mount: ceph.as_ref().and_then(lacks_for_mount),
            ceph,
            forebay: system::this_program().map_err(text)?,
            store: store_facts(request.store.as_deref())?,
            engine_bytes: request.capacity.as_deref().map(engine_bytes).transpose()?,
            unix_ms: u64::try_from(clock::unix_milliseconds()).unwrap_or_default(),
        })
    }
}

/// `LD_PRELOAD` is a list with spaces or colons between its paths.
fn can_preload(library: &Path) -> bool {
    library.to_str().is_some_and(|text| !text.contains([' ', ':']))
}

/// Whether the library can find out what a thread of `ceph-fuse` waits for.
fn shows_waits(ceph: &CephFacts) -> bool {
    let CephFacts::Found(programs) = ceph else { return false };
    let shows = |word: &String| {
        let content = files::read_bytes(Path::new(word)).unwrap_or_default();
        content.windows(GET_CAPS.len()).any(|window| window == GET_CAPS)
    };
    programs.mount.iter().any(shows)
}

/// What Forebay's own client lacks in the libcephfs of these programs.
fn lacks_for_mount(ceph: &CephFacts) -> Option<String> {
    let CephFacts::Found(programs) = ceph else { return None };
    let directory = programs.library_directory.as_deref();
    let checked = ClientFunctions::check(directory, &programs.version);
    checked.err().map(|error| error.to_string())
}

/// The user's store, else the default.
fn store_facts(named: Option<&Path>) -> Result<StoreFacts, String> {
    let described = |error: forebay_store::Error| format!("{error}; {}", error.hint());
    let (store, _) = Store::choose(named, None).map_err(described)?;
    let directory = match &store {
        Store::Directory { path, .. } => path.clone(),
        Store::Memory { .. } => PathBuf::from(SHARED_MEMORY),
    };
    probe::check_write(&directory).map_err(|error| error.to_string())?;
    let usable_bytes = store.usable_bytes().map_err(described)?;
    Ok(StoreFacts {
        name: store.to_string(),
        in_memory: filesystem::is_in_memory(&directory).map_err(|error| error.to_string())?,
        directory,
        usable_bytes,
    })
}

/// Runs the engine's command for its available bytes.
fn engine_bytes(words: &[String]) -> Result<u64, String> {
    let Some((program, arguments)) = words.split_first() else { return Ok(0) };
    let mut asked = command(program);
    asked.args(arguments);
    let printed = run_captured(asked, CAPACITY_MAX, &|| true).map_err(|error| error.to_string())?;
    let printed = printed.ok_or_else(|| {
        format!("the capacity command did not end within {} s", CAPACITY_MAX.as_secs())
    })?;
    let text = printed.output.trim();
    if !printed.success {
        return Err(format!("the capacity command failed: {text}"));
    }
    text.parse()
        .map_err(|_| format!("the capacity command printed {text:?}, not a number of bytes"))
}

fn find_program(name: &str) -> Option<PathBuf> {
    let in_daemons = || {
        let paths = DAEMON_DIRECTORIES.iter().map(|directory| Path::new(directory).join(name));
        paths.into_iter().find(|path| probe::check_exec(path, Path::new("/")).is_ok())
    };
    system::find_other_program(name).or_else(in_daemons)
}

fn version_of(words: &[String]) -> Option<String> {
    let (program, arguments) = words.split_first()?;
    let mut asked = command(program);
    asked.args(arguments).arg("--version");
    let printed = run_captured(asked, VERSION_MAX, &|| true).ok()??;
    Some(printed.output.lines().next()?.to_owned())
}
