//! `forebay persistent`.
//! Shows and asks; `forebay-persistent` finds, creates and destroys. Never copies data.

use forebay_terminal::{CliError, Progress, print_json, print_status, print_stdout};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use comfy_table::{Table, presets};
use forebay_host::files::lossy;
use forebay_host::{filesystem, users};
use forebay_persistent::{Destroyed, Error, NewPersistent, StoreSearch, Use, UseState, Uses};
use forebay_store::persistent::{Persistent, Unfinished};
use indicatif::HumanBytes;
use schemars::JsonSchema;
use serde::Serialize;

use crate::effective_config;
use crate::parsers::{expiry, mode, size};

#[derive(Debug, Args)]
pub struct PersistentArguments {
    #[command(subcommand)]
    pub verb: PersistentVerb,
}

#[derive(Debug, Subcommand)]
pub enum PersistentVerb {
    /// Create a persistent allocation
    #[command(
        after_help = "Example:\n  forebay persistent create proj1 --capacity 10GiB --store /nvme/me\n  \
        forebay persistent create proj1 --capacity 1TiB --group climate --mode 0770 --expires 30d"
    )]
    Create(CreateArguments),
    /// List persistent allocations
    #[command(after_help = "Example:\n  forebay persistent list --store /nvme/me")]
    List(FoundArguments),
    /// Show one persistent allocation and the jobs that use it
    #[command(after_help = "Example:\n  forebay persistent show proj1")]
    Show {
        /// Name of the allocation
        name: String,
        #[command(flatten)]
        found: FoundArguments,
    },
    /// Destroy a persistent allocation and all its files
    #[command(after_help = "Example:\n  forebay persistent destroy proj1")]
    Destroy {
        /// Name of the allocation
        name: String,
        /// Also delete files that killed jobs have not staged out
        #[arg(long)]
        hurry: bool,
        #[command(flatten)]
        found: FoundArguments,
    },
}

#[derive(Debug, Args)]
pub struct FoundArguments {
    /// Store to search [default: the setting store, local NVMe, /dev/shm, and stores that you have used]
    #[arg(long, value_name = "STORE")]
    pub store: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct CreateArguments {
    /// Name: a letter, then letters, digits, dots, _ and -
    pub name: String,
    /// Minimum size, for example 10GiB
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub capacity: u64,
    /// Fail if less capacity is available
    #[arg(long)]
    pub strict_capacity: bool,
    /// Directory for the allocation [default: the setting store, else local NVMe, else /dev/shm]
    #[arg(long, value_name = "STORE")]
    pub store: Option<PathBuf>,
    /// How the nodes of a job see the allocation
    #[arg(long, value_name = "MODE", default_value = "striped", value_parser = ["striped"])]
    pub access_mode: String,
    /// Group of the allocation
    #[arg(long, value_name = "GROUP")]
    pub group: Option<String>,
    /// Access mode in octal: 0700 for the owner, 0770 for the group as well
    #[arg(long, value_name = "MODE", default_value = "0700", value_parser = mode)]
    pub mode: u32,
    /// Refuse new jobs after this time, for example 30d; the allocation is not deleted
    #[arg(long, value_name = "TIME", value_parser = expiry)]
    pub expires: Option<u64>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// One allocation in the output of `--json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PersistentStatus {
    /// Its name.
    persistent: String,
    /// `ready`, `in-use`, `expired`, `damaged`, `closed`, `unfinished`, `missing`, `gone` or
    /// `elsewhere` (on another machine).
    state: &'static str,
    /// The user who owns it.
    owner: String,
    /// The store that has it.
    store: String,
    /// The root of its namespace, or the path of its leftovers.
    path: String,
    /// True if the data are lost when the machine restarts.
    in_memory: bool,
    /// The group of the namespace.
    group: Option<String>,
    /// Permission bits of the namespace, as `0700`.
    mode: Option<String>,
    /// Its capacity.
    capacity_bytes: Option<u64>,
    /// None if the user may not read it.
    used_bytes: Option<u64>,
    /// Time of creation, in seconds since 1970.
    created_unix_s: Option<u64>,
    /// Time after which no job may start to use it; null for no limit.
    expires_unix_s: Option<u64>,
    /// The machine that created it.
    host: Option<String>,
    /// The job that created it.
    job_id: Option<String>,
    /// The script of that job.
    script: Option<String>,
    /// The jobs that use it.
    jobs: Vec<ShownUse>,
    /// Why it cannot be used.
    problem: Option<String>,
}

/// One job that uses the allocation.
#[derive(Debug, Serialize, JsonSchema)]
struct ShownUse {
    #[serde(flatten)]
    of: Use,
    /// `running`, `killed` (with processes alive), `left` or `elsewhere`.
    state: &'static str,
    /// Its processes that are still alive.
    processes: Vec<i32>,
}

/// A persistent allocation that was destroyed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DestroyedAllocation<'a> {
    /// Its name.
    persistent: &'a str,
    /// `allocation`, `remains` (leftovers only) or `memory` (it was not there, and is forgotten).
    destroyed: &'static str,
}

pub fn persistent(verb: &PersistentVerb) -> i32 {
    let as_json = match verb {
        PersistentVerb::Create(arguments) => arguments.json,
        PersistentVerb::List(found)
        | PersistentVerb::Show { found, .. }
        | PersistentVerb::Destroy { found, .. } => found.json,
    };
    let done = match verb {
        PersistentVerb::Create(arguments) => create(arguments),
        PersistentVerb::List(found) => list(found),
        PersistentVerb::Show { name, found } => show(name, found),
        PersistentVerb::Destroy { name, hurry, found } => destroy(name, *hurry, found),
    };
    done.unwrap_or_else(|error| CliError::from(error).print_with_json(as_json, None))
}

fn create(arguments: &CreateArguments) -> Result<i32, Error> {
    let site = effective_config::store();
    let places = StoreSearch { named: arguments.store.as_deref(), site: site.as_deref() };
    let new = NewPersistent {
        name: &arguments.name,
        asked_bytes: arguments.capacity,
        strict_capacity: arguments.strict_capacity,
        mode: arguments.mode,
        group: arguments.group.as_deref(),
        expires_after_s: arguments.expires,
        job: None,
    };
    let made = places.create(&new, &Progress::default())?;
    if arguments.json {
        return Ok(print_json(&PersistentStatus::of(&made)?, 0));
    }
    Ok(0)
}

fn list(found: &FoundArguments) -> Result<i32, Error> {
    let shown = listed(found.store.as_deref())?;
    if found.json {
        return Ok(print_json(&shown, 0));
    }
    if shown.is_empty() {
        return Ok(print_stdout("no persistent allocations", 0));
    }
    Ok(print_stdout(&table(&shown), 0))
}

fn show(name: &str, found: &FoundArguments) -> Result<i32, Error> {
    let site = effective_config::store();
    let persistent = places(found, site.as_deref()).find(name)?;
    let shown = PersistentStatus::of(&persistent)?;
    if found.json {
        return Ok(print_json(&shown, 0));
    }
    Ok(print_stdout(&shown.text(), 0))
}

fn destroy(name: &str, hurry: bool, found: &FoundArguments) -> Result<i32, Error> {
    let site = effective_config::store();
    let (destroyed, said) = match places(found, site.as_deref()).destroy(name, hurry)? {
        Destroyed::Allocation => ("allocation", "destroyed"),
        Destroyed::Leftovers => ("remains", "its leftovers are removed"),
        Destroyed::RegistryEntry => ("memory", "it was not there, and is forgotten"),
    };
    print_status(&format!("persistent allocation {name}: {said}"));
    if found.json {
        let persistent = name;
        return Ok(print_json(&DestroyedAllocation { persistent, destroyed }, 0));
    }
    Ok(0)
}

fn places<'a>(found: &'a FoundArguments, site: Option<&'a std::path::Path>) -> StoreSearch<'a> {
    StoreSearch { named: found.store.as_deref(), site }
}

/// Lists all allocations, or those of the named store.
pub fn listed(named: Option<&std::path::Path>) -> Result<Vec<PersistentStatus>, Error> {
    let site = effective_config::store();
    let places = StoreSearch { named, site: site.as_deref() };
    let listing = places.list()?;
    let found: Result<Vec<_>, _> = listing.found.iter().map(PersistentStatus::of).collect();
    let mut shown = found?;
    shown.extend(listing.unfinished.iter().map(PersistentStatus::of_unfinished));
    shown.extend(listing.missing.iter().map(|missing| PersistentStatus {
        state: match missing.host {
            Some(_) => "elsewhere",
            None if missing.in_memory => "gone",
            None => "missing",
        },
        host: missing.host.clone(),
        store: lossy(missing.root.parent().unwrap_or(&missing.root)),
        path: lossy(&missing.root),
        in_memory: missing.in_memory,
        ..PersistentStatus::without_details(&missing.name, users::user_id())
    }));
    Ok(shown)
}

impl PersistentStatus {
    fn without_details(name: &str, owner: u32) -> Self {
        Self {
            persistent: name.to_owned(),
            state: "ready",
            owner: users::user_named(owner),
            store: String::new(),
            path: String::new(),
            in_memory: false,
            group: None,
            mode: None,
            capacity_bytes: None,
            used_bytes: None,
            created_unix_s: None,
            expires_unix_s: None,
            host: None,
            job_id: None,
            script: None,
            jobs: Vec::new(),
            problem: None,
        }
    }

    fn of(persistent: &Persistent) -> Result<Self, Error> {
        let uses = Uses::of(persistent)?;
        let mut shown = Self {
            store: lossy(persistent.store()),
            path: lossy(persistent.namespace()),
            in_memory: filesystem::is_in_memory(persistent.store())?,
            used_bytes: persistent.used_bytes(),
            jobs: uses.found.into_iter().map(ShownUse::of).collect(),
            ..Self::without_details(&persistent.name, persistent.owner)
        };
        match persistent.rights() {
            Ok((mode, group)) => {
                shown.mode = Some(format!("{:04o}", mode & 0o777));
                shown.group = Some(users::group_named(group));
            }
            Err(error) => shown.problem = Some(error.to_string()),
        }
        match &persistent.about {
            Ok(about) => {
                let about = about.clone();
                shown.capacity_bytes = Some(about.capacity_bytes);
                shown.created_unix_s = Some(about.created_unix_s);
                shown.expires_unix_s = about.expires_unix_s;
                (shown.host, shown.job_id, shown.script) =
                    (Some(about.host), about.job_id, about.script);
            }
            Err(reason) => shown.problem = Some(reason.clone()),
        }
        let in_use = shown.jobs.iter().any(|job| job.state != "left");
        shown.state = match shown.problem {
            Some(_) => "damaged",
            None if persistent.is_expired() => "expired",
            None if in_use => "in-use",
            None if !persistent.is_open() => "closed",
            None => "ready",
        };
        Ok(shown)
    }

    fn of_unfinished(left: &Unfinished) -> Self {
        Self {
            state: "unfinished",
            store: lossy(left.path.parent().unwrap_or(&left.path)),
            path: lossy(&left.path),
            ..Self::without_details(&left.name, left.owner)
        }
    }

    fn text(&self) -> String {
        let mut lines = vec![
            format!("name      {}", self.persistent),
            format!("state     {}", self.state),
            format!("owner     {}", self.owner),
        ];
        let mut add = |name: &str, value: Option<String>| {
            lines.extend(value.map(|value| format!("{name:<9} {value}")));
        };
        let rights = self.group.as_ref().zip(self.mode.as_ref());
        add("group", rights.map(|(group, mode)| format!("{group}, mode {mode}")));
        add("capacity", self.capacity_bytes.map(|bytes| HumanBytes(bytes).to_string()));
        add("used", self.used_bytes.map(|bytes| HumanBytes(bytes).to_string()));
        add("made", self.created_unix_s.map(forebay_persistent::format_utc));
        add("by job", self.job_id.clone());
        add("expires", self.expires_unix_s.map(forebay_persistent::format_utc));
        let until = if self.in_memory { ", in memory" } else { "" };
        add("where", Some(format!("{}{until}", self.path)));
        add("problem", self.problem.clone());
        lines.extend(self.jobs.iter().map(|job| format!("used by   {} {}", job.of, job.state)));
        lines.join("\n")
    }
}

impl ShownUse {
    fn of((of, state): (Use, UseState)) -> Self {
        let (state, processes) = match state {
            UseState::Running => ("running", Vec::new()),
            UseState::Processes(processes) => ("killed", processes),
            UseState::Left => ("left", Vec::new()),
            UseState::Elsewhere => ("elsewhere", Vec::new()),
        };
        Self { of, state, processes }
    }
}

/// Formats a table with one row for each allocation.
pub fn table(shown: &[PersistentStatus]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(["persistent", "owner", "state", "jobs", "used", "expires", "where"]);
    for one in shown {
        let bytes =
            |bytes: Option<u64>| bytes.map_or("-".to_owned(), |b| HumanBytes(b).to_string());
        let expires = one.expires_unix_s.map(forebay_persistent::format_utc);
        table.add_row([
            one.persistent.clone(),
            one.owner.clone(),
            one.state.to_owned(),
            one.jobs.iter().filter(|job| job.state != "left").count().to_string(),
            format!("{} of {}", bytes(one.used_bytes), bytes(one.capacity_bytes)),
            expires.unwrap_or_else(|| "never".to_owned()),
            one.path.clone(),
        ]);
    }
    table.trim_fmt()
}
