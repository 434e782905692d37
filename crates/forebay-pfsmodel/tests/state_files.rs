//! The state file: created once, attached by others, rejected if it does not match.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use forebay_pfsmodel::{Client, Layout, Model, Op, State};
use tempfile::TempDir;

const SMALL: &str = include_str!("../../../machines/lustre-small.toml");

fn create(folder: &TempDir, roots: &[&str]) -> Result<State, String> {
    let model = Model::from_toml(SMALL, "lustre-small.toml").unwrap();
    let roots: Vec<PathBuf> = roots.iter().map(|root| folder.path().join(root)).collect();
    State::create(&folder.path().join("state"), &model, &roots).map_err(|error| error.to_string())
}

fn attach(folder: &TempDir) -> Result<State, String> {
    State::attach(&folder.path().join("state")).map_err(|error| error.to_string())
}

fn with_directories(names: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in names {
        std::fs::create_dir(folder.path().join(name)).unwrap();
    }
    folder
}

#[test]
fn attached_processes_share_one_state() {
    let folder = with_directories(&["a", "b"]);
    let creator = create(&folder, &["a", "b/../b"]).unwrap();
    let other = attach(&folder).unwrap();
    let real = folder.path().canonicalize().unwrap();
    assert_eq!(other.roots(), [real.join("a"), real.join("b")]);
    assert_eq!((other.machine().as_str(), other.targets()), ("lustre-small", 8));
    assert!(other.covers(real.join("b/c").as_os_str().as_encoded_bytes()));
    assert!(!other.covers(real.join("bc").as_os_str().as_encoded_bytes()));
    let layout = Layout { stripe_count: 1, stripe_size_bytes: 1 << 20, first_target: 2 };
    other.charge_data(1, &layout, &Client::new(), Op::Write, 0, 1000);
    assert_eq!(creator.counters(), other.counters());
    assert_eq!(creator.counters().bytes_written, 1000);
    // Both processes share the queue: the second request waits for the first.
    assert_eq!(creator.charge_data(1, &layout, &Client::new(), Op::Read, 0, 1000), 1 + 2 * 516_000);
}

#[test]
fn state_file_is_private_and_its_space_is_reserved() {
    let folder = with_directories(&["a"]);
    create(&folder, &["a"]).unwrap();
    let metadata = std::fs::metadata(folder.path().join("state")).unwrap();
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    assert!(metadata.blocks() * 512 >= metadata.len(), "a full file system is noticed at creation");
}

#[test]
fn existing_file_is_never_overwritten() {
    let folder = with_directories(&["a"]);
    std::fs::write(folder.path().join("state"), "precious").unwrap();
    let message = create(&folder, &["a"]).unwrap_err();
    assert!(message.contains("create the state file") && message.contains("exists"), "{message}");
    assert_eq!(std::fs::read(folder.path().join("state")).unwrap(), b"precious");
}

#[test]
fn unfit_directories_are_refused_and_leave_no_file() {
    let folder = with_directories(&["a"]);
    std::fs::write(folder.path().join("file"), "").unwrap();
    let many: Vec<&str> = vec!["a"; 17];
    for (roots, words) in [
        (&["missing"][..], "No such file"),
        (&["file"][..], "no directory"),
        (&["/"][..], "all files of the machine"),
        (&[][..], "1 to 16"),
        (&many[..], "1 to 16"),
    ] {
        let message = create(&folder, roots).unwrap_err();
        assert!(message.contains(words), "{message}");
        assert!(!folder.path().join("state").exists());
    }
}

#[test]
fn state_of_another_version_is_refused() {
    let folder = with_directories(&["a"]);
    let path = folder.path().join("state");
    assert!(attach(&folder).unwrap_err().contains("No such file"));
    std::fs::write(&path, [0; 100]).unwrap();
    assert!(attach(&folder).unwrap_err().contains("100 bytes instead of"));
    std::fs::remove_file(&path).unwrap();
    drop(create(&folder, &["a"]).unwrap());

    let file = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let overwritten = |offset: u64, bytes: &[u8]| {
        let mut before = vec![0; bytes.len()];
        file.read_exact_at(&mut before, offset).unwrap();
        file.write_all_at(bytes, offset).unwrap();
        let refusal = attach(&folder).unwrap_err();
        file.write_all_at(&before, offset).unwrap();
        refusal
    };
    assert!(overwritten(0, &[0; 8]).contains("not finished"));
    assert!(overwritten(0, b"ELF").contains("starts with"));
    assert!(overwritten(8, &99u32.to_le_bytes()).contains("version 99"));
    assert!(overwritten(12, &0u32.to_le_bytes()).contains("damaged"));
    assert!(overwritten(80, &u64::MAX.to_le_bytes()).contains("reboot"));
    attach(&folder).unwrap();
}

#[test]
fn link_in_place_of_the_state_file_is_refused() {
    let folder = with_directories(&["a"]);
    drop(create(&folder, &["a"]).unwrap());
    std::os::unix::fs::symlink("state", folder.path().join("link")).unwrap();
    assert!(State::attach(&folder.path().join("link")).is_err());
    assert!(State::attach(Path::new("/dev/null")).unwrap_err().to_string().contains("not a state"));
}
