//! The directives of a script, as the functions of the protocol need them.
//! Puts all problems into one line, since Slurm shows one. Never opens a file but the script.

use std::io::Read;
use std::path::Path;

use forebay_directive::{
    AccessMode, PersistentDw, Problem, Request, Symbols, expanded_variables, parse_for_site,
};
use forebay_host::files;

use crate::Plan;
use crate::functions::heterogeneous;
use forebay_site::{Error, Pool, PoolKind};

/// Bytes of a script that are read. Slurm takes 4 MiB by default.
const SCRIPT_BYTES_MAX: u64 = 64 << 20;

/// Bytes of the directives of a script at most. Slurm holds its locks while it waits for `job_process`, and the plan must
/// fit into one message to a node.
const DIRECTIVES_BYTES_MAX: usize = 64 << 10;

/// Whether Slurm has put the values of `%` symbols into the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SymbolState {
    /// No: at submission, and for `paths` and `pre_run`.
    Written,
    /// Yes: for `setup` and the stages.
    Replaced,
}

/// Reads and checks the script of a job.
///
/// # Errors
/// If the file cannot be read, or the directives ask for something that is wrong or not done here. All problems are in
/// one line.
pub(crate) fn request_of(script: &Path, symbols: SymbolState) -> Result<Request, Error> {
    let file = files::open_to_read(script)
        .map_err(|error| Error::new(format!("the job script: {error}")))?;
    let mut bytes = Vec::new();
    let read = file.take(SCRIPT_BYTES_MAX).read_to_end(&mut bytes);
    read.map_err(|error| Error::new(format!("the job script cannot be read: {error}")))?;
    let text = String::from_utf8_lossy(&bytes);
    check_size(&text)?;
    check_components(&text)?;
    let parsed = match symbols {
        SymbolState::Written => parse_for_site(&text, Some(&stand_ins())),
        SymbolState::Replaced => parse_for_site(&text, None),
    };
    let request = parsed.map_err(|problems| joined(&problems))?;
    check(&request, &text)?;
    Ok(request)
}

fn check_size(text: &str) -> Result<(), Error> {
    let is_directive = |line: &&str| line.starts_with("#DW") || line.starts_with("#BB");
    let bytes: usize = text.lines().filter(is_directive).map(str::len).sum();
    if bytes <= DIRECTIVES_BYTES_MAX {
        return Ok(());
    }
    let message = format!(
        "the #DW and #BB lines have {bytes} bytes; at most {DIRECTIVES_BYTES_MAX} are possible"
    );
    Err(Error::new(message).with_hint("stage directories or a list instead of many single files"))
}

/// The lines by which Slurm divides a script, and those that it makes of the directives of other components.
fn check_components(text: &str) -> Result<(), Error> {
    let divides = |line: &str| {
        let mut words = line.strip_prefix("#SBATCH").unwrap_or_default().split_whitespace();
        words.next().is_some_and(|word| matches!(word, "hetjob" | "packjob"))
    };
    let header = text.lines().take_while(|line| line.is_empty() || line.starts_with('#'));
    let found = header.zip(1..).find(|(line, _)| line.starts_with("#EXCLUDED") || divides(line));
    match found {
        Some((_, line)) => Err(heterogeneous(&format!("line {line}: the job"))),
        None => Ok(()),
    }
}

/// Values that have the form of the real ones, which only Slurm knows.
fn stand_ins() -> Symbols {
    Symbols {
        job_id: "0".to_owned(),
        array_job_id: "0".to_owned(),
        array_task: "0".to_owned(),
        job_name: "name".to_owned(),
        user: "user".to_owned(),
        directory: "/directory".to_owned(),
    }
}

fn joined(problems: &[Problem]) -> Error {
    let text = |problem: &Problem| {
        format!("{}: {} ({})", problem.position.on_line(), problem.message, problem.hint)
    };
    let texts: Vec<_> = problems.iter().map(text).collect();
    Error::new(texts.join("; "))
}

fn check(request: &Request, text: &str) -> Result<(), Error> {
    if let Some(job) = &request.job {
        let line = job.position.on_line();
        if job.access.len() > 1 {
            let message =
                format!("{line}: no pool of this site has access_mode=striped,private together");
            return Err(Error::new(message).with_hint("name one of the two modes"));
        }
        for (key, is_given) in [
            ("profile", job.profile.is_some()),
            ("redundancy", job.redundancy.is_some()),
            ("placement", job.is_local),
            ("stripe_bytes", job.stripe_bytes.is_some()),
        ] {
            if is_given {
                let message = format!("{line}: {key}= is not possible in the pools of a site");
                return Err(Error::new(message).with_hint(format!("drop {key}=")));
            }
        }
    }
    let plan = plan_of(request);
    let mut stages = plan.stage_in.iter().chain(&plan.stage_out);
    let of_another = stages.find(|stage| stage.persistent.is_some());
    if let (AccessMode::Private, Some(stage)) = (plan.access, of_another) {
        let message = format!(
            "{}: a job with access_mode=private stages no persistent allocation",
            stage.position.on_line()
        );
        return Err(Error::new(message).with_hint("stage it in a job with access_mode=striped"));
    }
    let given: Vec<_> = plan
        .variables
        .iter()
        .chain(plan.persistent.iter().flat_map(|(_, variables)| variables))
        .collect();
    match expanded_variables(text).into_iter().find(|used| !given.contains(&&used.name)) {
        Some(used) => {
            let name = used.name;
            let message = format!(
                "{}: the script expands ${name}, which this job does not get",
                used.position.on_line()
            );
            let hint = format!(
                "an unset variable is empty, so rm -rf ${name}/* would empty /; add its #DW line, or write ${{{name}:-DIR}}"
            );
            Err(Error::new(message).with_hint(hint))
        }
        None => Ok(()),
    }
}

/// Whether a pool has the namespaces that a job asks for.
///
/// # Errors
/// Says why not, and what it has.
pub(crate) fn check_access(pool: &Pool, access: AccessMode) -> Result<(), Error> {
    let has = pool.access();
    if has == access {
        return Ok(());
    }
    let (name, wanted) = (&pool.name, access.directory());
    let why = match pool.kind {
        PoolKind::Directory => "it is one directory for all nodes",
        PoolKind::OnNode if pool.engine.is_some() => "an engine makes one namespace of its nodes",
        PoolKind::OnNode => "each node has a directory of its own",
    };
    let message = format!("access_mode={wanted} is not possible in the pool {name}: {why}");
    let hint = format!("name another pool with pool=, or write access_mode={}", has.directory());
    Err(Error::new(message).with_hint(hint))
}

/// What a request asks for, besides space.
pub(crate) fn plan_of(request: &Request) -> Plan {
    let access = request.job.as_ref().and_then(|job| job.access.first().copied());
    let job = request.job.iter();
    let named = |one: &PersistentDw| (one.name.clone(), one.variables());
    Plan {
        access: access.unwrap_or_default(),
        stage_in: request.stage_in.clone(),
        stage_out: request.stage_out.clone(),
        variables: job.flat_map(|job| job.access.iter().map(|mode| job.variable(*mode))).collect(),
        persistent: request.persistent.iter().map(named).collect(),
        group: None,
        engine: None,
        redundancy: 0,
        key: None,
    }
}
