//! Queries this machine and this program.
//! Reads `$PATH` and `$PWD`. Never runs a program.

use std::path::{Path, PathBuf};

use crate::{Result, files, with_context};

/// The number of processors available to this process, at least 1.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The host name.
pub fn hostname() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().into_owned()
}

/// The boot ID, which differs after each boot.
pub fn boot_id() -> Result<String> {
    let text = files::read_to_string(Path::new("/proc/sys/kernel/random/boot_id"))?;
    Ok(text.trim().to_owned())
}

/// The PID namespace of this process.
pub fn pid_namespace() -> Result<String> {
    let name = files::read_link(Path::new("/proc/self/ns/pid"))?;
    Ok(name.to_string_lossy().into_owned())
}

/// The network namespace of this process.
pub fn network_namespace() -> Result<String> {
    let name = files::read_link(Path::new("/proc/self/ns/net"))?;
    Ok(name.to_string_lossy().into_owned())
}

/// The release of the kernel.
pub fn kernel() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

/// Random bytes from the kernel.
pub fn random_bytes<const N: usize>() -> Result<[u8; N]> {
    use std::io::Read;
    let path = Path::new("/dev/urandom");
    let mut bytes = [0; N];
    with_context(files::open_to_read(path)?.read_exact(&mut bytes), "read", path)?;
    Ok(bytes)
}

/// A text that nobody can guess: random bytes from the kernel, in hexadecimal digits.
pub fn random_text<const BYTES: usize>() -> Result<String> {
    let bytes = random_bytes::<BYTES>()?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The PID of this process.
pub fn process_id() -> u32 {
    std::process::id()
}

/// The current directory as the shell shows it: `$PWD` if correct, else the real path.
pub fn current_directory() -> Result<PathBuf> {
    let real = with_context(std::env::current_dir(), "find", Path::new("the current directory"))?;
    let shown = std::env::var_os("PWD").map(PathBuf::from);
    let same = |path: &PathBuf| path.is_absolute() && path.canonicalize().is_ok_and(|p| p == real);
    Ok(shown.filter(same).unwrap_or(real))
}

/// The path of this program, or of the one that has replaced it since it was started.
pub fn this_program() -> Result<PathBuf> {
    let path = with_context(std::env::current_exe(), "find", Path::new("/proc/self/exe"))?;
    // proc(5), "/proc/pid/exe"
    let replaced =
        path.to_str().and_then(|path| path.strip_suffix(" (deleted)")).map(PathBuf::from);
    Ok(replaced.filter(|replaced| replaced.is_file()).unwrap_or(path))
}

/// The directory of this program, with symbolic links resolved.
pub fn program_directory() -> Result<PathBuf> {
    let program = this_program()?;
    let real = with_context(program.canonicalize(), "find", &program)?;
    Ok(real.parent().map_or_else(PathBuf::new, Path::to_path_buf))
}

/// A library of Forebay: in this program's directory, or in the library directory of an installation.
pub fn installed_library(name: &str) -> Option<PathBuf> {
    let directory = program_directory().ok()?;
    let places = [directory.join(name), directory.join("../lib/forebay").join(name)];
    places.iter().find_map(|place| place.canonicalize().ok())
}

/// The first executable file `name` in `$PATH` that is not this program itself under that name.
pub fn find_other_program(name: &str) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let path = std::env::var_os("PATH")?;
    let this = this_program().ok()?;
    std::env::split_paths(&path)
        .map(|directory| directory.join(name))
        .filter(|file| file.canonicalize().is_ok_and(|real| real != this))
        .find(|file| {
            file.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
        })
}
