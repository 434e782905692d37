//! `setup`: space and a directory for a job that is pending.
//! Never waits for `user_max`: `data_in` does that. Never fails because Slurm does not show the job.

use std::path::Path;
use std::time::Duration;

use forebay_directive::{SizeError, parse_size};
use forebay_host::process::{command, run_captured};
use forebay_host::users::{self, Account};
use forebay_host::{clock, system};

use super::place::make_directory;
use crate::call::Call;
use crate::context::Context;
use crate::directives::{SymbolState, check_access, plan_of, request_of};
use crate::state::{NewSession, Reserved};
use crate::token_lock::TokenLock;
use crate::{Phase, Session, ended_jobs};
use forebay_site::{Error, Pool, Site};

/// How long Slurm may take to say what kind of job it is, and in which state.
const ASK_SLURM: Duration = Duration::from_secs(60);

pub(super) fn setup(context: &mut Context, call: &Call) -> Result<(), Error> {
    let (token, asked_unix_s) = (call.token()?, clock::unix_s());
    let _lock = TokenLock::take(&context.site, token)?;
    // First of all: scancel of a job whose set-up failed tears down with --hurry what has this token.
    context.database.set_aside_earlier(token, asked_unix_s)?;
    check_job(context, token)?;
    let (user, group) = (call.u32_value("--user")?, call.u32_value("--groupid")?);
    if user == 0 {
        return Err(Error::new("root cannot have an allocation")
            .with_hint("submit the job as an ordinary user"));
    }
    let (pool, bytes) = capacity(&context.site, call)?;
    let request = request_of(Path::new(call.value("--job")), SymbolState::Replaced)?;
    let (pool, granules) = (pool.clone(), pool.granules_of(bytes));
    let mut plan = plan_of(&request);
    let account = account_of(user)?;
    if granules > 0 {
        check_user(&pool, &account)?;
        check_access(&pool, plan.access)?;
        plan.engine.clone_from(&pool.engine);
        if pool.engine.is_some() {
            (plan.redundancy, plan.key) = (pool.redundancy, Some(system::random_text::<32>()?));
        }
    }
    let new =
        NewSession { token, user, group, groups: &account.groups, pool: &pool, granules, plan };
    match context.database.reserve(&new)? {
        Reserved::Existing(_) => Ok(()),
        // `data_in` waits for the room: Slurm gives it a day, and holds a job whose set-up fails.
        Reserved::New(session) if session.phase == Phase::Waiting => Ok(()),
        Reserved::New(session) => make(context, session, &pool),
    }
}

/// Makes the directory of a job's allocation, which has its space.
pub(super) fn make(context: &mut Context, session: Session, pool: &Pool) -> Result<(), Error> {
    let (token, size) = (session.token.clone(), session.capacity_bytes());
    make_directory(context, session, pool)?;
    let name = &pool.name;
    let limits = match (&pool.engine, pool.quota) {
        (Some(_), _) => "engine limits",
        (None, Some(_)) => "file system limits",
        (None, None) => "file system does not limit",
    };
    context.log.line(&format!(
        "{token}: {size} bytes of the pool {name} are accounted; its {limits} them"
    ));
    Ok(())
}

/// Asks Slurm whether the job can have an allocation.
///
/// A heterogeneous one cannot: Slurm hands each component a script with other directives, and the variables to one
/// component only. The script of a component does not say so when the components come from the command line.
///
/// One that is over cannot either: Slurm cancels a job, asks for its removal, and does not ask again. A set-up that
/// begins after that would never be removed.
fn check_job(context: &Context, token: &str) -> Result<(), Error> {
    let mut ask = command("scontrol");
    ask.args(["-o", "show", "job", token]);
    let shown = match run_captured(ask, ASK_SLURM, &|| true) {
        Ok(Some(shown)) if shown.success => shown,
        _ => {
            // The other jobs must go on.
            context.log.line(&format!(
                "setup {token}: scontrol does not show the job; if it is over, forebay control reap removes its allocation"
            ));
            return Ok(());
        }
    };
    if let Some(whole) = value_in(&shown.output, "HetJobId=") {
        return Err(heterogeneous(&format!("job {whole}")));
    }
    // The ID of an array also shows its other tasks.
    let of_job = |line: &&str| value_in(line, "JobId=") == Some(token);
    match shown.output.lines().find(of_job).and_then(|line| value_in(line, "JobState=")) {
        Some(state) if ended_jobs::is_over(state) => {
            let message = format!("job {token} is over ({state}): it gets no burst buffer");
            Err(Error::new(message).with_hint("submit it again if it is still wanted"))
        }
        _ => Ok(()),
    }
}

/// The value of the first `NAME=VALUE` in what scontrol shows; the name ends with `=`.
fn value_in<'a>(shown: &'a str, name: &str) -> Option<&'a str> {
    shown.split_whitespace().find_map(|word| word.strip_prefix(name))
}

/// The error for a heterogeneous job.
pub(crate) fn heterogeneous(what: &str) -> Error {
    Error::new(format!("{what} is heterogeneous: its components cannot share a burst buffer"))
        .with_hint(
            "submit one ordinary job, or make a persistent allocation and one job for each part",
        )
}

/// Reads `POOL:SIZE`. A job that only uses persistent allocations has the size 0.
pub(super) fn capacity<'a>(site: &'a Site, call: &Call) -> Result<(&'a Pool, u64), Error> {
    let text = call.value("--capacity");
    let wrong = |what: &str| {
        let function = call.function.name;
        Error::new(format!("{function}: --capacity {text:?} {what}"))
            .with_hint("it has the form POOL:SIZE")
    };
    // Without a pool, nothing can be asked for; Slurm's plugin burst_buffer/lua names none then.
    if let ("0", Some(any)) = (text, site.pools.first()) {
        return Ok((any, 0));
    }
    let (pool, size) = text.split_once(':').ok_or_else(|| wrong("names no pool"))?;
    let bytes = match parse_size(size) {
        Err(SizeError::Zero) => 0,
        size => size.map_err(|error| wrong(&format!("has no size: {error}")))?,
    };
    Ok((site.pool(pool)?, bytes))
}

/// The account of a job's owner.
pub(super) fn account_of(user: u32) -> Result<Account, Error> {
    users::account_of(user)?.ok_or_else(|| {
        Error::new(format!("the user {user} is not known on the control host"))
            .with_hint("slurmctld's host and all nodes need the same users")
    })
}

/// Whether the pool is for this user.
pub(super) fn check_user(pool: &Pool, account: &Account) -> Result<(), Error> {
    if pool.is_open_to(account) {
        return Ok(());
    }
    let message = format!("{} may not use the pool {}", account.name, pool.name);
    Err(Error::new(message).with_hint("name another one with pool=, or ask the site"))
}
