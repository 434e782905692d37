//! What is to be moved, as the command line or a list names it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use forebay_host::files::{self, Kind};
use forebay_mover::{Transfer, What};

use super::arguments::MoveArguments;
use super::{Refused, absolute};

pub fn transfers(arguments: &MoveArguments) -> Result<Vec<Transfer>, Refused> {
    match (&arguments.list, &arguments.source, &arguments.target) {
        (Some(list), _, _) => of_list(list),
        (None, Some(source), Some(target)) => Ok(vec![transfer(source, target)?]),
        _ => Ok(Vec::new()), // the command line has both or a list
    }
}

fn transfer(source: &Path, target: &Path) -> Result<Transfer, Refused> {
    let is_directory = files::status(source).is_ok_and(|status| status.kind == Kind::Directory);
    Ok(Transfer {
        what: if is_directory {
            What::Directory
        } else {
            What::File
        },
        source: absolute(source)?,
        target: absolute(target)?,
    })
}

fn of_list(list: &Path) -> Result<Vec<Transfer>, Refused> {
    let wrong = |line: usize, message: &str| {
        let message = format!("{}: line {line}: {message}", list.display());
        Refused(
            message,
            Some("write source and target, and quote names with blanks".to_owned()),
        )
    };
    let content = files::read_bytes(list)?;
    let mut transfers = Vec::new();
    for (number, line) in content.split(|byte| *byte == b'\n').enumerate() {
        let Some(words) = shlex::bytes::split(line) else {
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
