//! `create_persistent`: an allocation that outlives jobs. Slurm calls it before the job that asks for it runs.

use forebay_directive::AccessMode;

use super::place::make_directory;
use super::setup::{account_of, capacity, check_user};
use crate::Error;
use crate::call::Call;
use crate::context::Context;
use crate::directives::check_access;
use crate::state::{NewSession, Plan, Reserved, is_job};
use crate::token_lock::TokenLock;

/// What Slurm looks for in the output.
const CREATED: &str = "created";

pub(super) fn create_persistent(context: &mut Context, call: &Call) -> Result<String, Error> {
    let token = call.token()?;
    if is_job(token) {
        return Err(Error::new(format!("{token} is no name: names begin with a letter")));
    }
    for (option, only) in [("--access", "striped"), ("--type", "scratch")] {
        let asked = call.optional(option).filter(|asked| *asked != only);
        if let Some(asked) = asked {
            let key = if option == "--access" { "access_mode" } else { "type" };
            let message =
                format!("{token}: {key}={asked} is not possible in a persistent allocation");
            return Err(Error::new(message).with_hint(format!("write {key}={only}")));
        }
    }
    let user = call.number("--user")?;
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
    let pool = pool.clone();
    let grains = pool.grains_of(bytes);
    let new = NewSession {
        token,
        user,
        group: account.group,
        pool: &pool,
        grains,
        plan: Plan::default(),
    };
    let _lock = TokenLock::take(&context.site, token)?;
    if let Reserved::New(session) = context.database.reserve(&new)? {
        make_directory(context, session, &pool)?;
    }
    Ok(CREATED.to_owned())
}
