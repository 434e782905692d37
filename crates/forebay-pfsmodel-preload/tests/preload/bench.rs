//! One emulated file system for one test.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, OnceLock};

use forebay_pfsmodel::{Counters, Model, STATE_ENV, State};
use tempfile::TempDir;

/// Eight fast targets, so that tests do not wait; a stripe unit is 64 KiB.
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

/// An emulated directory `pfs`, beside it a directory `pfsx` and others that are not emulated, and the state.
pub struct Bench {
    folder: TempDir,
    state: State,
}

impl Bench {
    pub fn new() -> Self {
        Self::of(&Model::from_toml(MACHINE, "test").unwrap())
    }

    /// With other numbers than the fast ones.
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

    /// A file of ours, made without the library.
    pub fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        std::fs::write(self.path(name), bytes).unwrap();
        self.path(name)
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    /// A command in the test's folder, under the library.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env("LD_PRELOAD", library())
            .env(STATE_ENV, self.path("state"))
            .current_dir(self.folder.path());
        command
    }

    /// Runs `program` with arguments separated by spaces; it must succeed. Returns its standard output.
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
    let Output {
        status,
        stdout,
        stderr,
    } = command.stdin(Stdio::null()).output().unwrap();
    let stderr = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{command:?}: {status}\n{stderr}");
    String::from_utf8_lossy(&stdout).into_owned()
}

/// Bytes that show when they are mixed up or lost.
pub fn pattern(length: usize) -> Vec<u8> {
    (0..length)
        .map(|index| (index / 251 + index % 251) as u8)
        .collect()
}

/// The interpreter itself: pyenv's start script is a shell program with counters of its own.
fn python() -> &'static str {
    static PYTHON: OnceLock<String> = OnceLock::new();
    PYTHON.get_or_init(|| {
        let mut ask = Command::new("python3");
        succeed(ask.args(["-c", "import sys; print(sys.executable)"]))
            .trim()
            .to_owned()
    })
}

/// The library, built if need be into the folder this test was built into.
pub fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let this = std::env::current_exe().unwrap();
        let profile = this.ancestors().nth(2).unwrap();
        let mut build = Command::new(env!("CARGO"));
        build.args([
            "build",
            "--quiet",
            "-p",
            "forebay-pfsmodel-preload",
            "--target-dir",
        ]);
        build
            .arg(profile.parent().unwrap())
            .current_dir(env!("CARGO_MANIFEST_DIR"));
        if profile.ends_with("release") {
            build.arg("--release");
        }
        succeed(&mut build);
        profile.join("libforebay_pfsmodel_preload.so")
    })
}

/// A C program of this folder, compiled once; the lock also keeps others waiting for the compiler.
pub fn program(name: &'static str) -> PathBuf {
    static COMPILED: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut compiled = COMPILED.lock().unwrap();
    if compiled.insert(name) {
        compile(name, &path);
    }
    path
}

/// `errno.c` without dynamic loader.
pub fn static_program() -> PathBuf {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("static");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/preload/errno.c");
    succeed(
        Command::new("cc")
            .args(["-static", "-Wno-unused-result", "-o"])
            .arg(&program)
            .arg(source),
    );
    program
}

/// Another preload library than ours.
pub fn other_library() -> PathBuf {
    program("other")
}

fn compile(name: &str, program: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/preload")
        .join(name)
        .with_extension("c");
    let mut compiler = Command::new("cc");
    compiler
        .args(["-O2", "-Wno-unused-result", "-o"])
        .arg(program)
        .arg(source);
    if name == "other" {
        compiler.args(["-shared", "-fPIC"]);
    }
    succeed(&mut compiler);
}
