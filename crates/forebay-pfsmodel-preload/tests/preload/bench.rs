//! One emulated file system for each test.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use forebay_pfsmodel::{Counters, Model, STATE_ENV, State};
use tempfile::TempDir;

/// Eight fast targets, so that tests wait little; a stripe is 64 KiB.
const MACHINE: &str = r#"
name = "test"
scale = "none"
[targets]
count = { value = 8, source = "test" }
latency = { value = "1 us", source = "test" }
bandwidth = { value = "100 GB/s", source = "test" }
switch_penalty = { value = "1 us", source = "test" }
[client]
bandwidth = { value = "100 GB/s", source = "test" }
[metadata]
operation = { value = "1 us", source = "test" }
per_stripe = { value = "0 us", source = "test" }
[layout]
stripe_count = { value = 1, source = "test" }
stripe_size = { value = "64 KiB", source = "test" }
"#;

/// An emulated directory `pfs`, directories that are not emulated (`pfsx` and others), and the state.
pub struct Bench {
    folder: TempDir,
    state: State,
}

impl Bench {
    pub fn new() -> Self {
        Self::of(&Model::from_toml(MACHINE, "test").unwrap())
    }

    /// Changes the numbers of the fast machine.
    pub fn with(change: impl FnOnce(&mut Model)) -> Self {
        let mut model = Model::from_toml(MACHINE, "test").unwrap();
        change(&mut model);
        Self::of(&model)
    }

    fn of(model: &Model) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("pfs")).unwrap();
        std::fs::create_dir(folder.path().join("pfsx")).unwrap();
        let roots = [folder.path().join("pfs")];
        let state = State::create(&folder.path().join("state"), model, &roots).unwrap();
        Self { folder, state }
    }

    pub fn counters(&self) -> Counters {
        self.state.counters()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Creates a file without the library.
    pub fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        std::fs::write(self.path(name), bytes).unwrap();
        self.path(name)
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    /// A command in the test's directory, with the library.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env("LD_PRELOAD", library())
            .env(STATE_ENV, self.path("state"))
            .current_dir(self.folder.path());
        command
    }

    /// Runs a program with arguments separated by spaces and checks its success. Returns its standard output.
    pub fn run(&self, line: &str) -> String {
        let words: Vec<&str> = line.split(' ').collect();
        succeed(self.command(words[0]).args(&words[1..]))
    }

    pub fn bash(&self, script: &str) -> String {
        succeed(self.command("bash").args(["--norc", "-ec", script]))
    }

    pub fn python(&self, script: &str) -> String {
        succeed(self.command(python()).args(["-S", "-c", script]))
    }
}

fn succeed(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.stdin(Stdio::null()).output().unwrap();
    let stderr = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{command:?}: {status}\n{stderr}");
    String::from_utf8_lossy(&stdout).into_owned()
}

/// Data that reveals lost or reordered bytes.
pub fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index / 251 + index % 251) as u8).collect()
}

/// The interpreter itself: pyenv's start script is a shell program, which would change the counters.
fn python() -> &'static str {
    static PYTHON: OnceLock<String> = OnceLock::new();
    PYTHON.get_or_init(|| {
        let mut ask = Command::new("python3");
        succeed(ask.args(["-c", "import sys; print(sys.executable)"])).trim().to_owned()
    })
}

/// A file of the build directory, which `make build test-programs` fills.
fn built(name: &str) -> PathBuf {
    let build = std::env::var_os("FOREBAY_BUILD").expect("FOREBAY_BUILD; `make test` sets it");
    let path = Path::new(&build).join(name);
    assert!(path.exists(), "{} is missing: make build test-programs", path.display());
    path
}

/// The library under test.
pub fn library() -> PathBuf {
    built("lib/forebay/libforebay_pfsmodel_preload.so")
}

/// A C program of this directory.
pub fn program(name: &str) -> PathBuf {
    built(&format!("tests/preload/{name}"))
}

/// `errno.c`, linked statically.
pub fn static_program() -> PathBuf {
    program("static")
}

/// Another preload library.
pub fn other_library() -> PathBuf {
    program("other")
}
