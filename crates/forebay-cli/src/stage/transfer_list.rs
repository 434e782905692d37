//! The transfers that the command line or a list names.
//! Refuses the whole list if one line is wrong. A missing source is no error here: planning reports it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use forebay_host::files::{self, Kind};
use forebay_mover::{Transfer, TransferKind};
use forebay_terminal::CliError;

use super::arguments::MoveArguments;

pub fn transfers(arguments: &MoveArguments) -> Result<Vec<Transfer>, CliError> {
    match (&arguments.list, &arguments.source, &arguments.target) {
        (Some(list), _, _) => of_list(list),
        (None, Some(source), Some(target)) => Ok(vec![transfer(source, target)?]),
        _ => Ok(Vec::new()), // clap requires both or a list
    }
}

fn transfer(source: &Path, target: &Path) -> Result<Transfer, CliError> {
    let what = match files::status(source) {
        Ok(status) if status.kind == Kind::Directory => TransferKind::Directory,
        Ok(status) if status.kind == Kind::Other => {
            return Err(CliError::new(format!("the source {} is not a file", source.display()))
                .with_hint(
                    "pipes, sockets and devices are not staged: name a file or a directory",
                ));
        }
        Err(error) if files::is_loop(&error.source) => {
            let hint = "correct the symbolic links: they form a loop";
            return Err(CliError::new(error.to_string()).with_hint(hint));
        }
        _ => TransferKind::File, // planning reports a missing source
    };
    Ok(Transfer { what, source: absolute(source)?, target: absolute(target)? })
}

fn of_list(list: &Path) -> Result<Vec<Transfer>, CliError> {
    let wrong = |line: usize, message: &str| {
        let message = format!("{}: line {line}: {message}", list.display());
        CliError::new(message).with_hint(
            "write source and target, and quote names with blanks; there are no comments",
        )
    };
    let content = files::read_bytes(list)?;
    let mut transfers = Vec::new();
    for (number, line) in content.split(|byte| *byte == b'\n').enumerate() {
        if line.contains(&0) {
            return Err(wrong(number + 1, "a zero byte, which no name holds"));
        }
        let Some(words) = split_words(line.strip_suffix(b"\r").unwrap_or(line)) else {
            return Err(wrong(number + 1, "a quote is not closed"));
        };
        let path = |word: &Vec<u8>| Path::new(OsStr::from_bytes(word)).to_owned();
        match &words[..] {
            [] => {}
            [source, target] => transfers.push(transfer(&path(source), &path(target))?),
            [_] => return Err(wrong(number + 1, "a source without a target")),
            _ => return Err(wrong(number + 1, "more than a source and a target")),
        }
    }
    if transfers.is_empty() {
        return Err(wrong(1, "it names nothing"));
    }
    Ok(transfers)
}

/// Splits a line without zero bytes into words like a shell. `#` does not begin a comment, since
/// that would silently drop files of such names.
fn split_words(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let exchanged = |bytes: &[u8], from: u8, to: u8| -> Vec<u8> {
        let exchange = |byte: &u8| if *byte == from { to } else { *byte };
        bytes.iter().map(exchange).collect()
    };
    let words = shlex::bytes::split(&exchanged(line, b'#', 0))?;
    Some(words.iter().map(|word| exchanged(word, 0, b'#')).collect())
}

/// The absolute path; keeps a slash at the end.
fn absolute(path: &Path) -> Result<PathBuf, CliError> {
    std::path::absolute(path).map_err(|error| CliError::new(format!("{}: {error}", path.display())))
}
