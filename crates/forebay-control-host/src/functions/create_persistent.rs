//! `create_persistent`: an allocation that outlives jobs. Slurm calls it before the job that asks for it runs.
//! Unlike `setup`, never leaves an allocation waiting for `user_max`: too little room is an error.

use forebay_directive::{AccessMode, parse_for_site};
use forebay_host::users::{self, Account};

use super::place::make_directory;
use super::setup::{account_of, capacity, check_user};
use crate::call::Call;
use crate::context::Context;
use crate::directives::check_access;
use crate::state::{NewSession, Plan, Reserved, is_job};
use crate::token_lock::TokenLock;
use forebay_site::Error;

/// What Slurm looks for in the output.
const CREATED: &str = "created";

pub(super) fn create_persistent(context: &mut Context, call: &Call) -> Result<String, Error> {
    let token = call.token()?;
    if is_job(token) {
        return Err(Error::new(format!("{token} is no name: names begin with a letter")));
    }
    let group = group_of(call)?;
    let user = call.u32_value("--user")?;
    if user == 0 {
        return Err(Error::new("root cannot have an allocation")
            .with_hint("submit the job as an ordinary user"));
    }
    let (pool, bytes) = capacity(&context.site, call)?;
    if bytes == 0 {
        return Err(Error::new(format!("{token}: capacity= is zero"))
            .with_hint("write for example capacity=10GiB"));
    }
    let account = account_of(user)?;
    check_user(pool, &account)?;
    check_access(pool, AccessMode::Striped)?;
    if pool.engine.is_some() {
        let message = format!("the pool {} has no nodes between jobs", pool.name);
        return Err(Error::new(message).with_hint("name another pool with pool="));
    }
    let group = group.map(|name| group_of_member(&account, &name)).transpose()?;
    let pool = pool.clone();
    let new = NewSession {
        token,
        user,
        group: account.group,
        groups: &account.groups,
        pool: &pool,
        granules: pool.granules_of(bytes),
        plan: Plan { group, ..Plan::default() },
    };
    let _lock = TokenLock::take(&context.site, token)?;
    if let Reserved::New(session) = context.database.reserve(&new)? {
        make_directory(context, session, &pool)?;
    }
    Ok(CREATED.to_owned())
}

/// The group that the line names. Slurm hands over parts of the line, so it is put together again and checked as a whole.
fn group_of(call: &Call) -> Result<Option<String>, Error> {
    let token = call.token()?;
    let mut line = format!("#BB create_persistent name={token} capacity=1");
    for (option, key) in [("--access", "access_mode"), ("--type", "type")] {
        let value = call.optional(option).into_iter();
        value.for_each(|value| line.push_str(&format!(" {key}={value}")));
    }
    let mut request = parse_for_site(&line, None).map_err(|problems| {
        let texts =
            problems.iter().map(|problem| format!("{} ({})", problem.message, problem.hint));
        Error::new(format!("{token}: {}", texts.collect::<Vec<_>>().join("; ")))
    })?;
    Ok(request.create.pop().and_then(|create| create.group))
}

/// The number of a group. Its members get what the owner's processes can share, so the owner must be one.
fn group_of_member(account: &Account, name: &str) -> Result<u32, Error> {
    let found = users::group_id(name)?.filter(|group| *group != 0);
    found.filter(|group| account.groups.contains(group)).ok_or_else(|| {
        let groups: Vec<_> =
            account.groups.iter().map(|group| users::group_named(*group)).collect();
        let message = format!("{} is not in the group {name} of (group={name})", account.name);
        Error::new(message).with_hint(format!("name one of your groups: {}", groups.join(", ")))
    })
}
