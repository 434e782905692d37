//! `setup`: space and a directory for a job that is pending.

use std::path::Path;

use forebay_directive::{SizeError, parse_size};
use forebay_host::clock;
use forebay_host::users::{self, Account};

use super::place::make_directory;
use crate::call::Call;
use crate::context::Context;
use crate::directives::{SymbolsAre, check_access, plan_of, request_of};
use crate::state::{NewSession, Reserved};
use crate::token_lock::TokenLock;
use crate::{Error, Pool, Site};

pub(super) fn setup(context: &mut Context, call: &Call) -> Result<(), Error> {
    let (token, asked_unix_s) = (call.token()?, clock::unix_s());
    let _lock = TokenLock::take(&context.site, token)?;
    // First of all: scancel of a job whose set-up failed tears down with --hurry what has this token.
    context.database.set_aside_earlier(token, asked_unix_s)?;
    let (user, group) = (call.number("--user")?, call.number("--groupid")?);
    if user == 0 {
        return Err(Error::new("root cannot have an allocation")
            .with_hint("submit the job as an ordinary user"));
    }
    let (pool, bytes) = capacity(&context.site, call)?;
    let request = request_of(Path::new(call.value("--job")), SymbolsAre::Replaced)?;
    let (pool, grains) = (pool.clone(), pool.grains_of(bytes));
    let plan = plan_of(&request);
    if grains > 0 {
        check_user(&pool, &account_of(user)?)?;
        check_access(&pool, plan.access)?;
    }
    let new = NewSession { token, user, group, pool: &pool, grains, plan };
    match context.database.reserve(&new)? {
        Reserved::Existing(_) => Ok(()),
        Reserved::New(session) => {
            make_directory(context, session, &pool)?;
            let size = grains * pool.granularity_bytes;
            let name = &pool.name;
            let limits = if pool.has_quota { "limits" } else { "does not limit" };
            context.log.line(&format!(
                "{token}: {size} bytes of the pool {name} are accounted; its file system {limits} them"
            ));
            Ok(())
        }
    }
}

/// Reads `POOL:SIZE`. A job that only uses persistent allocations has the size 0.
pub(super) fn capacity<'a>(site: &'a Site, call: &Call) -> Result<(&'a Pool, u64), Error> {
    let text = call.value("--capacity");
    let wrong = |what: &str| {
        let function = call.function.name;
        Error::new(format!("{function}: --capacity {text:?} {what}"))
            .with_hint("it has the form POOL:SIZE")
    };
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
