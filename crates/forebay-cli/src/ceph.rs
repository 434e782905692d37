//! `forebay __ceph FILE`: actions on a Ceph cluster, for the steps of an engine's plan.

use std::ffi::OsStr;
use std::path::Path;

use forebay_ceph::{Actions, Error, execute};
use forebay_host::{files, process, system};
use forebay_terminal::{CliError, print_json};

/// Executes the actions in `file`. Returns the exit code.
pub fn ceph(file: &Path) -> i32 {
    let code = match act(file) {
        Ok(()) => 0,
        Err(error) => error.print(),
    };
    // The libraries' threads may still run, and a call that passed its limit does: their cleanup could
    // wait for them.
    process::exit_at_once(code)
}

fn act(file: &Path) -> Result<(), CliError> {
    let text = files::read_to_string(file)?;
    let actions: Actions = serde_json::from_str(&text).map_err(|error| {
        CliError::new(format!("{} is not a list of actions: {error}", files::printable(file)))
            .with_hint("forebay_ceph::Actions has the form")
    })?;
    let directory = actions.connection.library_directory.as_deref();
    through_own_loader(directory, &["__ceph".as_ref(), file.as_ref()])?;
    let mut written = 0;
    let result = execute(&actions, &mut |report| written |= print_json(report, 0));
    result.map_err(|error| failed(&error))?;
    if written != 0 {
        return Err(CliError::new("not all actions could be reported"));
    }
    Ok(())
}

fn failed(error: &Error) -> CliError {
    CliError { hint: error.hint(), ..CliError::new(error.to_string()) }
}

/// Starts this program again through the loader of a bundle: its libraries need their own C library.
/// Does nothing where there is no such loader, or it has loaded this program.
pub fn through_own_loader(directory: Option<&Path>, words: &[&OsStr]) -> Result<(), CliError> {
    let Some(directory) = directory else { return Ok(()) };
    let Some(loader) = forebay_ceph::loader_in(directory).map_err(|error| failed(&error))? else {
        return Ok(());
    };
    let program = system::this_program()?;
    if files::real_path(&loader)? == program {
        return Ok(());
    }
    let mut command = process::command(loader);
    command.arg("--library-path").arg(directory).arg(program).args(words);
    Err(process::replace_by(command).into())
}
