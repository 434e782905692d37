//! The libraries that the loader would map for a program, and the packages that files are from.
//! Assumes trusted programs, since `ldd` may run them. Without dpkg the lists of packages are empty.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use forebay_host::{files, process};

/// How long `ldd` or `dpkg` may take.
const TIME_MAX: Duration = Duration::from_secs(60);

/// The names of libraries, and where the loader finds each.
pub(crate) type Libraries = BTreeMap<String, PathBuf>;

/// The libraries of a program or library, direct and indirect, with the loader itself; an error text if one is missing.
pub(crate) fn libraries_of(path: &Path) -> Result<Libraries, String> {
    let output = output("ldd", [path])?;
    parse(&output).map_err(|library| {
        format!("the loader does not find {library}, which {} needs", path.display())
    })
}

/// Reads what `ldd` prints.
fn parse(output: &str) -> Result<Libraries, String> {
    let mut found = Libraries::new();
    for line in output.lines() {
        let line = line.trim();
        let (name, path) = match line.split_once(" => ") {
            Some((name, "not found")) => return Err(name.to_owned()),
            Some((name, path)) => (name, path),
            // The loader, with its path alone; the kernel's library has no path.
            None if line.starts_with('/') => (line, line),
            None => continue,
        };
        let path = Path::new(path.rsplit_once(" (").map_or(path, |(path, _)| path));
        let name = Path::new(name.rsplit_once(" (").map_or(name, |(name, _)| name));
        if let Some(name) = name.file_name() {
            found.insert(name.to_string_lossy().into_owned(), path.to_owned());
        }
    }
    Ok(found)
}

/// The Debian packages of files, sorted; those of files that no package owns are left out.
pub(crate) fn packages_of(paths: &[PathBuf]) -> Vec<String> {
    // A package may list /lib/x for what is now /usr/lib/x, and the other way round.
    let real: Vec<PathBuf> = paths.iter().filter_map(|path| files::real_path(path).ok()).collect();
    let old =
        real.iter().filter_map(|path| Some(Path::new("/").join(path.strip_prefix("/usr").ok()?)));
    let both: Vec<PathBuf> = old.chain(real.iter().cloned()).collect();
    let mut command = process::command("dpkg-query");
    command.arg("--search").args(&both);
    // It fails if no package has one of the files, and still prints the others.
    let captured = process::run_captured(command, TIME_MAX, &|| true).ok().flatten();
    packages_in(&captured.map(|captured| captured.output).unwrap_or_default())
}

/// The source packages of Debian packages, each with its version.
pub(crate) fn sources_of(packages: &[String]) -> Vec<String> {
    let mut command = process::command("dpkg-query");
    command.args(["--show", "--showformat", "${source:Package} ${source:Version}\n"]);
    command.args(packages);
    let captured = process::run_captured(command, TIME_MAX, &|| true).ok().flatten();
    let output = captured.map(|captured| captured.output).unwrap_or_default();
    let sources: BTreeSet<String> = output.lines().map(str::to_owned).collect();
    sources.into_iter().collect()
}

fn packages_in(output: &str) -> Vec<String> {
    let owners = output.lines().filter_map(|line| line.split_once(": ")).map(|(owners, _)| owners);
    let owners = owners.flat_map(|owners| owners.split(", "));
    let names =
        owners.map(|owner| owner.split_once(':').map_or(owner, |(name, _)| name).to_owned());
    let mut names: Vec<String> = names.filter(|name| !name.contains(' ')).collect();
    names.sort();
    names.dedup();
    names
}

fn output<'a>(program: &str, words: impl IntoIterator<Item = &'a Path>) -> Result<String, String> {
    let mut command = process::command(program);
    command.args(words);
    match process::run_captured(command, TIME_MAX, &|| true) {
        Ok(Some(captured)) if captured.success => Ok(captured.output),
        Ok(_) => Err(format!("{program} failed")),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_reads_what_ldd_prints() {
        let output = "\tlinux-vdso.so.1 (0x00007ffb)\n\
            \tlibz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x00007ffb)\n\
            \t/lib64/ld-linux-x86-64.so.2 (0x00007ffb)\n";
        let found: Vec<_> = parse(output).unwrap().into_iter().collect();
        assert_eq!(found[0], ("ld-linux-x86-64.so.2".into(), "/lib64/ld-linux-x86-64.so.2".into()));
        assert_eq!(found[1], ("libz.so.1".into(), "/lib/x86_64-linux-gnu/libz.so.1".into()));
        assert_eq!(found.len(), 2);
        assert_eq!(parse("\tlibx.so.1 => not found\n"), Err("libx.so.1".to_owned()));
    }

    #[test]
    fn packages_are_the_owners_of_files() {
        let output = "libc6:amd64, other: /lib/libc.so.6\ndiversion by x from: /y\nceph-mon: /usr/bin/ceph-mon\n";
        assert_eq!(packages_in(output), ["ceph-mon", "libc6", "other"]);
    }
}
