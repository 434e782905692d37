//! The `lfs` stand-in: `setstripe` and `getstripe` on the emulated file system. Options and output
//! follow lfs-setstripe(1) and lfs-getstripe(1) of Lustre 2.x for plain (not composite) layouts.
//! Refuses all other commands with exit code 2.

use std::ffi::OsString;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ErrorKind};
use clap::{Args, Parser, Subcommand};
use forebay_pfsmodel::{Layout, LayoutError, PathStriping, STATE_ENV, State, Striping};
use forebay_terminal::{print_error, print_status, print_stdout};

const EXIT_FAILED: i32 = 1;
const EXIT_USAGE: i32 = 2;

#[derive(Debug, Parser)]
#[command(
    name = "lfs",
    about = "Striping on Forebay's emulated parallel file system",
    disable_version_flag = true
)]
struct Words {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Set the striping of a directory's new files, or create a file with a striping
    #[command(name = "setstripe")]
    Set(SetWords),
    /// Show the striping of files and directories
    #[command(name = "getstripe")]
    Get(GetWords),
    #[command(external_subcommand)]
    Other(Vec<OsString>),
}

#[derive(Debug, Args)]
struct SetWords {
    /// Number of targets; -1: all, 0: the default
    #[arg(
        short = 'c',
        long,
        alias = "count",
        value_name = "N",
        default_value_t = 0,
        allow_negative_numbers = true
    )]
    stripe_count: i32,
    /// Bytes on one target before the next, with k, m or g; a multiple of 64k; 0: the default
    #[arg(short = 'S', short_alias = 's', long, alias = "size", value_name = "SIZE", default_value = "0", value_parser = size)]
    stripe_size: u64,
    /// First target; -1: any
    #[arg(short = 'i', short_alias = 'o', long, aliases = ["index", "stripe-offset", "offset"], value_name = "N",
        default_value_t = -1, allow_negative_numbers = true)]
    stripe_index: i32,
    /// Delete a directory's striping
    #[arg(short = 'd', long, conflicts_with_all = ["stripe_count", "stripe_size", "stripe_index"])]
    delete: bool,
    /// Directories, or files that do not exist
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
}

#[derive(Debug, Args)]
struct GetWords {
    /// Only the stripe count
    #[arg(short = 'c', long, alias = "count")]
    stripe_count: bool,
    /// Only the stripe size
    #[arg(short = 'S', short_alias = 's', long, alias = "size")]
    stripe_size: bool,
    /// Only the first target
    #[arg(short = 'i', short_alias = 'o', long, aliases = ["index", "stripe-offset", "offset"])]
    stripe_index: bool,
    /// Directories themselves, not their entries
    #[arg(short = 'd', long)]
    directory: bool,
    /// Show values that the file system decides as 0 and -1
    #[arg(short = 'R', long)]
    raw: bool,
    /// Only the table of targets
    #[arg(short = 'q', long)]
    quiet: bool,
    /// Files and directories
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
}

/// Runs `lfs` with its arguments, without the program name. Returns the exit code.
pub fn main(words: &[OsString]) -> i32 {
    let named = std::iter::once(OsString::from("lfs")).chain(words.iter().cloned());
    let action = match Words::try_parse_from(named) {
        Ok(words) => words.action,
        Err(error) if error.kind() == ErrorKind::UnknownArgument => {
            let option = error.get(ContextKind::InvalidArg);
            let option = option.map_or_else(String::new, ToString::to_string);
            let message = format!("lfs: {option} is not emulated");
            return print_error(
                &message,
                Some("lfs setstripe --help and lfs getstripe --help list what is"),
                EXIT_USAGE,
            );
        }
        Err(error) => {
            // There is no other way to report an error if this cannot be printed.
            error.print().ok();
            return error.exit_code();
        }
    };
    if let Action::Other(words) = &action {
        return refuse(words);
    }
    let state = match attach() {
        Ok(state) => state,
        Err((message, hint)) => return print_error(&message, hint, EXIT_FAILED),
    };
    let (machine, targets) = (state.machine(), state.targets());
    print_status(&format!("lfs is emulated (machine {machine}, {targets} targets)"));
    match action {
        Action::Set(words) => set(&state, &words),
        Action::Get(words) => get(&state, &words),
        Action::Other(words) => refuse(&words),
    }
}

fn refuse(words: &[OsString]) -> i32 {
    let name = words.first().map(|name| name.to_string_lossy()).unwrap_or_default();
    print_error(
        &format!("lfs {name} is not emulated"),
        Some("emulated are: lfs setstripe, lfs getstripe"),
        EXIT_USAGE,
    )
}

fn attach() -> Result<State, (String, Option<&'static str>)> {
    let Some(path) = std::env::var_os(STATE_ENV).filter(|path| !path.is_empty()) else {
        let message = format!("no parallel file system is emulated here: {STATE_ENV} is not set");
        return Err((message, Some("start the job with forebay run --pfs-model MACHINE.toml")));
    };
    State::attach(Path::new(&path)).map_err(|error| (error.to_string(), None))
}

/// Parses a size of `lfs`: `65536`, `64k`, `4M`, `1g`.
fn size(text: &str) -> Result<u64, String> {
    let (number, factor) = match text.char_indices().next_back() {
        Some((at, 'k' | 'K')) => (&text[..at], 1 << 10),
        Some((at, 'm' | 'M')) => (&text[..at], 1 << 20),
        Some((at, 'g' | 'G')) => (&text[..at], 1 << 30),
        _ => (text, 1),
    };
    let number: u64 =
        number.parse().map_err(|_| "expected a number, with k, m or g, such as 1m".to_owned())?;
    number.checked_mul(factor).ok_or_else(|| "too large".to_owned())
}

fn set(state: &State, words: &SetWords) -> i32 {
    let striping = Striping {
        stripe_count: words.stripe_count,
        stripe_size_bytes: words.stripe_size,
        first_target: words.stripe_index,
    };
    each(&words.paths, |path| {
        if words.delete { state.remove_striping(path) } else { state.set_striping(path, striping) }
    })
}

fn get(state: &State, words: &GetWords) -> i32 {
    each(&words.paths, |path| show(state, words, path))
}

/// Continues after a failure, as `lfs` does. Returns the exit code of the last failure, or 0.
fn each(paths: &[PathBuf], mut act: impl FnMut(&Path) -> Result<(), LayoutError>) -> i32 {
    let mut exit_code = 0;
    for path in paths {
        if let Err(error) = act(path) {
            exit_code = print_error(&error.to_string(), error.hint().as_deref(), EXIT_FAILED);
        }
    }
    exit_code
}

fn show(state: &State, words: &GetWords, path: &Path) -> Result<(), LayoutError> {
    let shown = state.striping(path, words.raw)?;
    print(&describe(words, path, &shown, state.targets()));
    if matches!(shown, PathStriping::Directory(_)) && !words.directory {
        for entry in state.entries(path)? {
            let shown = state.striping(&entry, words.raw)?;
            print(&describe(words, &entry, &shown, state.targets()));
        }
    }
    Ok(())
}

fn print(text: &str) {
    if !text.is_empty() {
        print_stdout(text, 0);
    }
}

fn describe(words: &GetWords, path: &Path, shown: &PathStriping, targets: u32) -> String {
    let (striping, is_directory) = match shown {
        PathStriping::Directory(striping) => (*striping, true),
        PathStriping::File { layout, .. } => (Striping::from(*layout), false),
    };
    let wanted = [
        (words.stripe_count, "stripe_count: ", i64::from(striping.stripe_count)),
        // Lustre limits sizes to less than 4 GiB.
        (words.stripe_size, "stripe_size:  ", striping.stripe_size_bytes as i64),
        (words.stripe_index, "stripe_offset:", i64::from(striping.first_target)),
    ];
    let only: Vec<_> = wanted.iter().filter(|(asked, ..)| *asked).collect();
    match (&only[..], shown) {
        ([(_, _, value)], _) => value.to_string(),
        ([], PathStriping::Directory(_)) if words.quiet => String::new(),
        ([], PathStriping::Directory(_)) => format!(
            "{}\nstripe_count:  {} stripe_size:   {} pattern:       raid0 stripe_offset: {}\n",
            path.display(),
            striping.stripe_count,
            striping.stripe_size_bytes,
            striping.first_target
        ),
        ([], PathStriping::File { layout, inode }) => {
            file(words.quiet, path, layout, *inode, targets)
        }
        (several, _) => {
            let prefix = if is_directory { "" } else { "lmm_" };
            let lines: Vec<String> =
                several.iter().map(|(_, name, value)| format!("{prefix}{name} {value}")).collect();
            lines.join("\n")
        }
    }
}

/// Formats the report on a file: the fields, then one line for each target.
fn file(quiet: bool, path: &Path, layout: &Layout, inode: u64, targets: u32) -> String {
    let mut text = String::new();
    if !quiet {
        text = format!(
            "{}\nlmm_stripe_count:  {}\nlmm_stripe_size:   {}\nlmm_pattern:       raid0\nlmm_layout_gen:    0\n\
             lmm_stripe_offset: {}\n",
            path.display(),
            layout.stripe_count,
            layout.stripe_size_bytes,
            layout.first_target
        );
    }
    text.push_str("\tobdidx\t\t objid\t\t objid\t\t group\n");
    for unit in 0..u64::from(layout.stripe_count) {
        let target = layout.target_of_unit(unit, targets);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "\t{target:6}\t{inode:14}\t{inode:#14x}\t{:14}", 0);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Action, Words, size};
    use clap::Parser;

    fn set(line: &str) -> super::SetWords {
        match Words::try_parse_from(line.split(' ')).unwrap().action {
            Action::Set(words) => words,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn sizes_are_read_as_lfs_reads_them() {
        assert_eq!(size("65536"), Ok(65_536));
        assert_eq!((size("64k"), size("4M"), size("1g")), (Ok(64 << 10), Ok(4 << 20), Ok(1 << 30)));
        assert!(
            size("").is_err() && size("k").is_err() && size("1t").is_err() && size("-1").is_err()
        );
        assert!(size("99999999999999999g").is_err());
    }

    /// The options of CRAY12 and KAUST18 (-s, -o) and of current Lustre.
    #[test]
    fn old_and_new_spellings_mean_the_same() {
        for line in [
            "lfs setstripe -c 4 -s 1m -o -1 dir",
            "lfs setstripe -c 4 -S 1m -i -1 dir",
            "lfs setstripe --stripe-count 4 --stripe-size=1m --stripe-index=-1 dir",
            "lfs setstripe --count=4 --size 1048576 --index -1 dir",
        ] {
            let words = set(line);
            assert_eq!(
                (words.stripe_count, words.stripe_size, words.stripe_index),
                (4, 1 << 20, -1),
                "{line}"
            );
        }
        assert_eq!(set("lfs setstripe -c -1 a b").stripe_count, -1);
        assert!(
            Words::try_parse_from(["lfs", "setstripe", "-c", "4"]).is_err(),
            "a path is needed"
        );
        assert!(Words::try_parse_from(["lfs", "setstripe", "-d", "-c", "4", "x"]).is_err());
    }
}
