//! Checks that a job gets each variable of a namespace that its script expands. An unset one is an empty text to a
//! shell, so that `rm -rf $DW_JOB_STRIPED/*` would empty the root directory.

use std::path::Path;

use forebay_directive::{
    AccessMode, PersistentDw, Request, VariableUse, blank_line_before_directives, closest,
    expanded_variables,
};

use crate::Error;

/// Variables that carry the namespaces of the job's own allocation.
pub(crate) fn own_variables(request: &Request) -> impl Iterator<Item = String> {
    let job = request.job.iter();
    job.flat_map(|job| job.access.iter().map(|mode| job.variable(*mode)))
}

/// Checks the text of a script that a job with this request runs.
///
/// # Errors
/// If it expands a variable that the job does not get.
pub(crate) fn check_variables(script: &Path, text: &str, request: &Request) -> Result<(), Error> {
    let persistent = request.persistent.iter().flat_map(PersistentDw::variables);
    check_expanded(script, text, own_variables(request).chain(persistent).collect(), request)
}

/// The same where these variables are given.
pub(crate) fn check_expanded(
    script: &Path,
    text: &str,
    given: Vec<String>,
    request: &Request,
) -> Result<(), Error> {
    let found = expanded_variables(text).into_iter();
    let Some(VariableUse { name, position }) = { found }.find(|used| !given.contains(&used.name))
    else {
        return Ok(());
    };
    let hint = match blank_line_before_directives(text) {
        Some(line) => format!("line {line} holds only blanks and ends the header: empty it"),
        None => remedy(&name, request),
    };
    Err(Error::UnsetVariable { script: script.to_owned(), position, name, hint })
}

fn remedy(name: &str, request: &Request) -> String {
    let default = format!("or write ${{{name}:-DIR}} with a directory for jobs without it");
    let persistent = name.strip_prefix("DW_PERSISTENT_STRIPED_");
    let persistent = persistent.or_else(|| name.strip_prefix("DW_PERSISTENT_"));
    if let Some(allocation) = persistent {
        return format!("add the line #DW persistentdw name={allocation}, {default}");
    }
    let own = request.job.iter().flat_map(|job| {
        let modes = [AccessMode::Striped, AccessMode::Private].into_iter();
        modes.filter(|mode| job.access.contains(mode)).map(|mode| job.variable(mode))
    });
    let own: Vec<_> = own.collect();
    if let Some(meant) = closest(name, own.iter().map(String::as_str)) {
        return format!("did you mean ${meant}? write that, {default}");
    }
    match &request.job {
        Some(job) if name == AccessMode::Private.variable() || name == job.naming.of_job() => {
            format!("write access_mode=striped,private in the #DW jobdw line, {default}")
        }
        Some(job) => {
            format!("the job's allocation is ${}; write that, {default}", job.naming.of_job())
        }
        None => {
            format!(
                "add the line #DW jobdw type=scratch access_mode=striped capacity=1GiB, {default}"
            )
        }
    }
}
