//! Allocations of jobs and persistent allocations, each a session in the words of DataWarp.
//! Changes the state alone: `forget` assumes that the directory is gone.
//! Unless hurried, never begins a removal while a job uses the allocation or its results are undelivered.

use forebay_directive::{AccessMode, Stage};
use forebay_host::{clock, users};
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use rusqlite::{OptionalExtension, Row, Transaction, params};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Database;
use super::room::{Room, room, too_much};
use forebay_site::messages::PoolAllocation;
use forebay_site::{Error, Pool};

/// How far an allocation is in its life.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Other allocations of the user have what `user_max` of the pool allows, so it has no space yet.
    Waiting,
    /// Its directory is being made.
    Creating,
    /// Its directory exists.
    Ready,
    /// Input is copied in.
    StagingIn,
    /// All input is there.
    StagedIn,
    /// The job may have started.
    Running,
    /// The job has ended.
    Ended,
    /// Results are copied out.
    StagingOut,
    /// All results are at their destinations.
    StagedOut,
    /// Its directory is being removed.
    Removing,
}

/// What a job asked for, besides space.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Whether all nodes share its namespace, or each has its own.
    #[serde(default)]
    pub access: AccessMode,
    /// Stages before the job.
    pub stage_in: Vec<Stage>,
    /// Stages after the job.
    pub stage_out: Vec<Stage>,
    /// Variables of the job's own namespaces.
    pub variables: Vec<String>,
    /// Names of persistent allocations with the variables of their namespaces.
    pub persistent: Vec<(String, Vec<String>)>,
    /// The group whose members may use this persistent allocation, too.
    #[serde(default)]
    pub group: Option<u32>,
    /// The engine that gives the nodes of the job one namespace.
    #[serde(default)]
    pub engine: Option<String>,
    /// Copies of the data that it keeps; 0 without an engine.
    #[serde(default)]
    pub redundancy: u32,
    /// What its nodes show each other, another one for each allocation.
    #[serde(default)]
    pub key: Option<String>,
}

/// An allocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Its number, which is never used again.
    pub id: u64,
    /// The job's ID, or the name of a persistent allocation.
    pub token: String,
    /// The owner.
    pub user: u32,
    /// The owner's group.
    pub group: u32,
    /// The pool.
    pub pool: String,
    /// The directory of the pool.
    pub path: String,
    /// Its granules; 0 if the job only uses persistent allocations.
    pub granules: u64,
    /// The size of a granule when it was made.
    pub granularity_bytes: u64,
    /// The node that stages and removes its data, as the configuration names it.
    pub node: String,
    /// How far it is.
    pub phase: Phase,
    /// When it was made, in seconds since 1970.
    pub created_unix_s: u64,
    /// The number of nodes of the job; 0 before it starts.
    pub hosts: u64,
    /// What the job asked for.
    pub plan: Plan,
    /// What last went wrong.
    pub problem: Option<String>,
}

impl Session {
    /// Its size.
    pub fn capacity_bytes(&self) -> u64 {
        self.granules * self.granularity_bytes
    }

    /// Its directory, and the owner.
    pub fn place(&self) -> PoolAllocation {
        PoolAllocation {
            pool: self.pool.clone(),
            path: self.path.clone(),
            name: self.name(),
            user: self.user,
            group: self.plan.group.unwrap_or(self.group),
            is_shared: self.plan.group.is_some(),
            access: self.plan.access,
            engine: self.plan.engine.clone(),
        }
    }

    /// The path of its directory.
    pub fn directory(&self) -> String {
        format!("{}/{}", self.path, self.name())
    }

    /// The name of its directory. The token of an allocation that was set aside is the same.
    fn name(&self) -> String {
        let end = format!(".{}", self.id);
        if self.token.ends_with(&end) { self.token.clone() } else { format!("{}{end}", self.token) }
    }

    /// Whether another job has its job ID now.
    pub fn is_set_aside(&self) -> bool {
        is_set_aside(&self.token)
    }

    /// The path of its namespace, with the slash at the end that scripts rely on.
    pub fn namespace(&self) -> String {
        format!("{}/", self.place().namespace().display())
    }

    /// Whether its space is in the nodes of the job, each of which has a directory of its own.
    pub fn is_on_nodes(&self) -> bool {
        self.is_private() || self.has_engine()
    }

    /// Whether each node of the job has its own files.
    pub fn is_private(&self) -> bool {
        self.plan.access == AccessMode::Private
    }

    /// Whether an engine gives the nodes one namespace.
    pub fn has_engine(&self) -> bool {
        self.plan.engine.is_some()
    }

    /// Whether it needs one directory that all nodes see: for its files, or for the journals of staging in persistent
    /// allocations.
    pub fn has_directory(&self) -> bool {
        if self.is_on_nodes() {
            return false;
        }
        self.granules > 0 || !self.plan.stage_in.is_empty() || !self.plan.stage_out.is_empty()
    }

    /// Whether it outlives jobs.
    pub fn is_persistent(&self) -> bool {
        !is_job(&self.token)
    }

    /// Whether it holds results that are not at their destinations.
    pub fn has_undelivered_results(&self) -> bool {
        let may_have_run = matches!(self.phase, Phase::Running | Phase::Ended | Phase::StagingOut);
        may_have_run && !self.plan.stage_out.is_empty()
    }
}

/// Whether a token is that of a job: Slurm's are numbers, and names begin with a letter.
pub fn is_job(token: &str) -> bool {
    token.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a token is that of an allocation that was set aside: the former token, a dot, the number.
pub fn is_set_aside(token: &str) -> bool {
    token
        .split_once('.')
        .is_some_and(|(job, id)| !job.is_empty() && !id.is_empty() && is_job(job) && is_job(id))
}

/// An allocation to make.
#[derive(Debug, Clone)]
pub struct NewSession<'a> {
    /// The token.
    pub token: &'a str,
    /// The owner.
    pub user: u32,
    /// The owner's group.
    pub group: u32,
    /// All groups of the owner.
    pub groups: &'a [u32],
    /// The pool.
    pub pool: &'a Pool,
    /// Its granules.
    pub granules: u64,
    /// What the job asked for.
    pub plan: Plan,
}

/// Whether an allocation is new.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reserved {
    /// It is new, or was not made to the end before.
    New(Session),
    /// It exists.
    Existing(Session),
}

pub(super) const COLUMNS: &str = "id, token, user_id, group_id, pool, path, grains, granularity_bytes, node, state, \
                       created_unix_s, hosts, plan, problem";

impl Database {
    /// The allocation of a token.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn session(&self, token: &str) -> Result<Option<Session>, Error> {
        self.read(|connection| {
            let query = format!("SELECT {COLUMNS} FROM session WHERE token = ?");
            connection.query_row(&query, [token], session_of).optional()
        })
    }

    /// All allocations, in the order in which they were made.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn sessions(&self) -> Result<Vec<Session>, Error> {
        self.read(|connection| {
            let query = format!("SELECT {COLUMNS} FROM session ORDER BY id");
            let mut statement = connection.prepare(&query)?;
            statement.query_map([], session_of)?.collect()
        })
    }

    /// The persistent allocations that a job uses.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn used_by(&self, id: u64) -> Result<Vec<Session>, Error> {
        self.read(|connection| {
            let query = format!(
                "SELECT {COLUMNS} FROM session WHERE id IN (SELECT persistent FROM use WHERE session = ?) ORDER BY id"
            );
            let mut statement = connection.prepare(&query)?;
            statement.query_map([id], session_of)?.collect()
        })
    }

    /// Gives the allocation of an earlier job with this token another token, so that no call for the new job reaches its
    /// results. Slurm sets a job up before it starts it, and counts jobs from the first ID again after a loss of its
    /// state. A set-up that began at `asked_unix_s`, before the allocation was made, is an old copy of the call that
    /// made it.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn set_aside_earlier(&mut self, token: &str, asked_unix_s: u64) -> Result<(), Error> {
        self.change(|transaction| {
            let query = format!("SELECT {COLUMNS} FROM session WHERE token = ?");
            let found = transaction.query_row(&query, [token], session_of).optional()?;
            let has_run = |found: &Session| {
                let phases = [Phase::Running, Phase::Ended, Phase::StagingOut, Phase::StagedOut];
                phases.contains(&found.phase) && found.created_unix_s < asked_unix_s
            };
            match found.filter(has_run) {
                Some(found) => set_aside(transaction, &found).map(Ok),
                None => Ok(Ok(())),
            }
        })
    }

    /// Reserves space in a pool for a token. An allocation of the same owner, pool, size and plan is returned as it is.
    ///
    /// # Errors
    /// If the token belongs to somebody else, the pool is used up, `user_max` is less than the request, or a persistent
    /// allocation is missing or another user's. A new persistent allocation does not wait for `user_max`.
    pub fn reserve(&mut self, new: &NewSession) -> Result<Reserved, Error> {
        self.change(|transaction| {
            let query = format!("SELECT {COLUMNS} FROM session WHERE token = ?");
            let found = transaction.query_row(&query, [new.token], session_of).optional()?;
            if let Some(found) = found {
                return Ok(existing(found, new));
            }
            let phase = match room(transaction, new.user, new.pool, new.granules)? {
                Err(error) => return Ok(Err(error)),
                Ok(Room::Free) => Phase::Creating,
                Ok(Room::UserLimitReached) if is_job(new.token) => Phase::Waiting,
                Ok(Room::UserLimitReached) => return Ok(Err(too_much(new))),
            };
            let plan = serde_json::to_string(&new.plan).map_err(to_sql_error)?;
            let insert = "INSERT INTO session (token, user_id, group_id, pool, path, grains, granularity_bytes, node, \
                          state, created_unix_s, plan) VALUES (?, ?, ?, ?, ?, ?, ?, '', ?, ?, ?)";
            let path = new.pool.path.to_string_lossy();
            transaction.execute(insert, params![
                new.token, new.user, new.group, new.pool.name, path, new.granules, new.pool.granularity_bytes,
                phase, clock::unix_s(), plan
            ])?;
            let id = transaction.last_insert_rowid();
            for (name, _) in &new.plan.persistent {
                if let Err(error) = use_persistent(transaction, id, name, new)? {
                    return Ok(Err(error));
                }
            }
            let made = transaction.query_row(&query, [new.token], session_of)?;
            Ok(Ok(Reserved::New(made)))
        })
    }

    /// Changes the phase if it is one of `from`. Returns whether it was.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn advance(&mut self, id: u64, from: &[Phase], to: Phase) -> Result<bool, Error> {
        self.change(|transaction| {
            let query = "SELECT state FROM session WHERE id = ?";
            let now: Option<Phase> =
                transaction.query_row(query, [id], |row| row.get(0)).optional()?;
            let is_allowed = now.is_some_and(|now| from.contains(&now));
            if is_allowed && now != Some(to) {
                transaction
                    .execute("UPDATE session SET state = ? WHERE id = ?", params![to, id])?;
            }
            Ok(Ok(is_allowed))
        })
    }

    /// Stores what went wrong with an allocation, or that nothing is wrong any more.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn set_problem(&mut self, id: u64, problem: Option<&str>) -> Result<(), Error> {
        self.set(id, "problem", &problem)
    }

    /// Stores what went wrong with the start of a job, unless another call has started it.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn set_problem_of_start(&mut self, id: u64, problem: Option<&str>) -> Result<(), Error> {
        self.change(|transaction| {
            let update = "UPDATE session SET problem = ? WHERE id = ? AND state IN (?, ?)";
            transaction.execute(update, params![problem, id, Phase::Ready, Phase::StagedIn])?;
            Ok(Ok(()))
        })
    }

    /// Stores which node stages and removes the data.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn set_node(&mut self, id: u64, node: &str) -> Result<(), Error> {
        self.set(id, "node", &node)
    }

    /// Stores how many nodes the job has.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn set_hosts(&mut self, id: u64, hosts: u64) -> Result<(), Error> {
        self.set(id, "hosts", &hosts)
    }

    fn set(&mut self, id: u64, column: &str, value: &dyn ToSql) -> Result<(), Error> {
        self.change(|transaction| {
            let update = format!("UPDATE session SET {column} = ? WHERE id = ?");
            transaction.execute(&update, params![value, id])?;
            Ok(Ok(()))
        })
    }

    /// Marks an allocation for removal, from which nothing brings it back.
    ///
    /// # Errors
    /// If `hurry` is false and jobs use it or it has undelivered results, or the file cannot be written.
    pub fn begin_removal(&mut self, session: &Session, hurry: bool) -> Result<(), Error> {
        let (id, token) = (session.id, &session.token);
        self.change(|transaction| {
            let query = format!("SELECT {COLUMNS} FROM session WHERE id = ?");
            let now = transaction.query_row(&query, [id], session_of).optional()?;
            // The job may have started since the caller looked.
            if !hurry && now.is_some_and(|now| now.has_undelivered_results()) {
                let message = format!("the results of {token} are not delivered");
                let hint = "the next teardown delivers them first";
                return Ok(Err(Error::new(message).with_hint(hint)));
            }
            let query = "SELECT token FROM session WHERE id IN (SELECT session FROM use WHERE persistent = ?)";
            let mut statement = transaction.prepare(query)?;
            let users: Vec<String> = statement.query_map([id], |row| row.get(0))?.collect::<Result<_, _>>()?;
            if let (Some(first), false) = (users.first(), hurry) {
                let message = format!("{token} is in use by job {first}");
                let hint = "wait for the job to end, or write hurry to destroy it under the job";
                return Ok(Err(Error::new(message).with_hint(hint)));
            }
            transaction.execute("DELETE FROM use WHERE persistent = ?", [id])?;
            let update = "UPDATE session SET state = ? WHERE id = ?";
            transaction.execute(update, params![Phase::Removing, id])?;
            Ok(Ok(()))
        })
    }

    /// Forgets an allocation, whose directory is gone.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn forget(&mut self, id: u64) -> Result<(), Error> {
        self.change(|transaction| {
            transaction.execute("DELETE FROM session WHERE id = ?", [id])?;
            Ok(Ok(()))
        })
    }
}

/// What a repeated request gets.
fn existing(found: Session, new: &NewSession) -> Result<Reserved, Error> {
    let token = &found.token;
    if found.phase == Phase::Removing {
        let error = Error::new(format!("the earlier allocation of {token} is still being removed"));
        return Err(error.with_hint("try again in a minute"));
    }
    // The first request made the key.
    let plan = Plan { key: found.plan.key.clone(), ..new.plan.clone() };
    let wanted = (new.user, new.pool.name.as_str(), new.granules, &plan);
    if (found.user, found.pool.as_str(), found.granules, &found.plan) != wanted {
        let owner = users::user_named(found.user);
        let what = format!(
            "{token} exists already: {} granules of the pool {}, for {owner}",
            found.granules, found.pool
        );
        let hint = if is_job(token) {
            "it is that of an earlier job; scancel this job, and submit it again"
        } else {
            "choose another name, or destroy it first"
        };
        return Err(Error::new(what).with_hint(hint));
    }
    Ok(match found.phase {
        Phase::Creating => Reserved::New(found),
        _ => Reserved::Existing(found),
    })
}

/// Gives an allocation a token that no job has.
fn set_aside(transaction: &Transaction, session: &Session) -> rusqlite::Result<()> {
    let token = session.name();
    let problem = format!(
        "another job has the ID {}; forebay control deliver {token} delivers the results that are kept in {}",
        session.token,
        session.namespace()
    );
    let update = "UPDATE session SET token = ?, problem = ? WHERE id = ?";
    transaction.execute(update, params![token, problem, session.id]).map(drop)
}

fn use_persistent(
    transaction: &Transaction,
    id: i64,
    name: &str,
    new: &NewSession,
) -> rusqlite::Result<Result<(), Error>> {
    let query = format!("SELECT {COLUMNS} FROM session WHERE token = ?");
    let found = transaction.query_row(&query, [name], session_of).optional()?;
    let usable = found.filter(|found| !matches!(found.phase, Phase::Creating | Phase::Removing));
    let Some(persistent) = usable else {
        let error = Error::new(format!("there is no persistent allocation {name}"));
        return Ok(Err(error.with_hint(format!(
            "make it first: #BB create_persistent name={name} capacity=SIZE"
        ))));
    };
    if let Err(error) = check_member(&persistent, new) {
        return Ok(Err(error));
    }
    transaction.execute(
        "INSERT INTO use (session, persistent) VALUES (?, ?)",
        params![id, persistent.id],
    )?;
    Ok(Ok(()))
}

/// Whether the owner of a new allocation may use this persistent one.
fn check_member(persistent: &Session, new: &NewSession) -> Result<(), Error> {
    let group = persistent.plan.group;
    if persistent.user == new.user || group.is_some_and(|group| new.groups.contains(&group)) {
        return Ok(());
    }
    let (name, owner) = (&persistent.token, users::user_named(persistent.user));
    let Some(group) = group.map(users::group_named) else {
        let message = format!("the persistent allocation {name} is {owner}'s, and closed to you");
        return Err(Error::new(message).with_hint(format!(
            "use one of your own, or ask {owner} for one with access_mode=striped(group=NAME)"
        )));
    };
    let message = format!(
        "the persistent allocation {name} is {owner}'s, for members of the group {group}, and you are none"
    );
    Err(Error::new(message).with_hint(format!("ask the site to add you to {group}; see: id -nG")))
}

pub(super) fn session_of(row: &Row) -> rusqlite::Result<Session> {
    let plan: String = row.get(12)?;
    let plan = serde_json::from_str(&plan).map_err(to_sql_error)?;
    Ok(Session {
        id: row.get(0)?,
        token: row.get(1)?,
        user: row.get(2)?,
        group: row.get(3)?,
        pool: row.get(4)?,
        path: row.get(5)?,
        granules: row.get(6)?,
        granularity_bytes: row.get(7)?,
        node: row.get(8)?,
        phase: row.get(9)?,
        created_unix_s: row.get(10)?,
        hosts: row.get(11)?,
        plan,
        problem: row.get(13)?,
    })
}

fn to_sql_error(error: serde_json::Error) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(Box::new(error))
}

impl ToSql for Phase {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match serde_json::to_value(self) {
            Ok(serde_json::Value::String(word)) => Ok(word.into()),
            other => Err(rusqlite::Error::ToSqlConversionFailure(format!("{other:?}").into())),
        }
    }
}

impl FromSql for Phase {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let word = value.as_str()?;
        serde_json::from_value(word.into()).map_err(|error| FromSqlError::Other(Box::new(error)))
    }
}

impl std::fmt::Display for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        self.serialize(f)
    }
}
