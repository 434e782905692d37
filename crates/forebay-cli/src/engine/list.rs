//! `forebay engine list`: what this machine offers of each engine and profile. Starts no engine.
//! Looks at this machine alone: other nodes of a job may lack what it has.

use std::path::PathBuf;

use clap::Args;
use forebay_ceph::TESTED_VERSION;
use forebay_engine::engines::engines;
use forebay_engine::{CephFacts, Engine, FactsRequest, HostFacts, Missing, Promise};
use forebay_host::system;
use forebay_terminal::{CliError, print_json, print_json_error, print_stdout, print_warning};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{effective_config, profiles};

#[derive(Debug, Args)]
pub struct ListArguments {
    /// Directory of an engine that forebay engine bundle wrote [default: the engine of the system]
    #[arg(long, value_name = "DIR")]
    pub engine_root: Option<PathBuf>,
    /// Store of the jobs [default: the store that a job would use]
    #[arg(long, value_name = "STORE")]
    pub store: Option<PathBuf>,
    /// Copies of the data that the promises are for
    #[arg(long, value_name = "COPIES", default_value_t = 1)]
    pub redundancy: u32,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// A program of an engine on this machine.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EngineProgram {
    /// Its name.
    name: String,
    /// What it prints as its version.
    version: String,
}

/// An engine or a profile, and what this machine has of it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ListedEngine {
    /// The name for `--engine` or, with a file, for `--profile`.
    name: String,
    /// The file of the profile; null for an engine.
    #[serde(serialize_with = "forebay_host::files::lossy_option")]
    #[schemars(with = "Option<PathBuf>")]
    profile: Option<PathBuf>,
    /// What it is.
    about: String,
    /// Whether this machine lacks nothing.
    is_offered: bool,
    /// The programs that were found.
    programs: Vec<EngineProgram>,
    /// The version that Forebay is tested with; null if none was, or none is needed.
    tested_version: Option<&'static str>,
    /// What is missing, and how to get it.
    missing: Vec<Missing>,
    /// What it would choose on this machine where it has a choice.
    choices: Vec<String>,
    /// What it promises with the requested copies and the store.
    promise: Promise,
}

pub fn list(arguments: &ListArguments) -> i32 {
    match find_engines(arguments) {
        Ok(found) if arguments.json => print_json(&found, 0),
        Ok(found) => print_stdout(&text(&found), 0),
        Err(error) => {
            let code = error.print();
            match arguments.json {
                true => print_json_error(&error.message, error.hint.as_deref(), None, code),
                false => code,
            }
        }
    }
}

fn find_engines(arguments: &ListArguments) -> Result<Vec<ListedEngine>, CliError> {
    let (found, wrong) = profiles::all();
    wrong.iter().for_each(|error| print_warning(&error.message));
    let of_profiles: Vec<_> = found.iter().map(forebay_engine::Profile::driver).collect();
    let own = engines();
    let mut programs: Vec<_> =
        of_profiles.iter().flat_map(|driver| driver.programs()).map(str::to_owned).collect();
    programs.sort();
    programs.dedup();
    let store = arguments.store.clone().or_else(effective_config::store);
    let facts = HostFacts::collect(&FactsRequest {
        name: system::hostname(),
        peer: None,
        programs,
        ceph: true,
        engine_root: arguments.engine_root.clone(),
        store,
        capacity: None,
    })
    .map_err(|error| CliError::new(error).with_hint("name another store with --store"))?;
    let listed = |driver: &dyn Engine| ListedEngine::of(driver, &facts, arguments.redundancy);
    let mut all: Vec<_> = own.iter().map(|driver| listed(driver.as_ref())).collect();
    for (profile, driver) in found.iter().zip(&of_profiles) {
        let file = Some(profile.file.clone());
        let name = profile.name.clone();
        let about = profile.about.clone();
        all.push(ListedEngine { name, profile: file, about, ..listed(driver.as_ref()) });
    }
    Ok(all)
}

impl ListedEngine {
    fn of(driver: &dyn Engine, facts: &HostFacts, redundancy: u32) -> Self {
        let mut programs: Vec<_> = driver
            .programs()
            .into_iter()
            .filter_map(|name| {
                let version = facts.programs.get(name)?.version.clone();
                Some(EngineProgram { name: name.to_owned(), version })
            })
            .collect();
        if let (true, Some(CephFacts::Found(found))) = (driver.looks_for_ceph(), &facts.ceph) {
            let version = found.version.clone();
            programs.push(EngineProgram { name: "ceph-mon".to_owned(), version });
        }
        let missing = driver.missing(facts);
        Self {
            name: driver.name().to_owned(),
            profile: None,
            about: driver.about().to_owned(),
            is_offered: missing.is_empty(),
            programs,
            tested_version: driver.looks_for_ceph().then_some(TESTED_VERSION),
            choices: match missing.is_empty() {
                true => driver.choices(std::slice::from_ref(facts)),
                false => Vec::new(),
            },
            missing,
            promise: driver.promise(redundancy, facts.store.in_memory, std::slice::from_ref(facts)),
        }
    }

    fn text(&self) -> String {
        let state = if self.is_offered { "ok" } else { "missing" };
        let mut lines = vec![format!("{state:<8} {}: {}", self.name, self.about)];
        let mut add = |line: String| lines.push(format!("         {line}"));
        if let Some(file) = &self.profile {
            add(format!("profile {}", file.display()));
        }
        for EngineProgram { name, version } in &self.programs {
            add(format!("{name}: {version}"));
        }
        if let Some(tested) = self.tested_version {
            add(format!("tested with {tested}"));
        }
        for missing in &self.missing {
            add(format!("lacks {}; remedy: {}", missing.what, missing.remedy_or_bundle()));
        }
        self.choices.iter().for_each(|choice| add(choice.clone()));
        add(format!("promises: {}", promises(&self.promise)));
        for deviation in &self.promise.deviations {
            add(format!("deviation: {deviation}"));
        }
        lines.join("\n")
    }
}

fn text(found: &[ListedEngine]) -> String {
    found.iter().map(ListedEngine::text).collect::<Vec<_>>().join("\n")
}

/// What is promised, and what is not.
fn promises(promise: &Promise) -> String {
    let all = [
        (promise.atomic_append, "appends of several nodes"),
        (promise.locks, "locks across nodes"),
        (promise.shared_mmap, "MAP_SHARED"),
        (promise.striping, "striping"),
        (promise.survives_server, "survives a lost server"),
        (promise.survives_node, "survives a lost node"),
        (promise.survives_restart, "survives a restart"),
    ];
    let named = |is_kept| {
        let names: Vec<_> =
            all.iter().filter(|(kept, _)| *kept == is_kept).map(|(_, name)| *name).collect();
        names.join(", ")
    };
    let (kept, not) = (named(true), named(false));
    let mut text = format!("coherence {}", promise.coherence);
    if !kept.is_empty() {
        text += &format!(", {kept}");
    }
    if !not.is_empty() {
        text += &format!("; not: {not}");
    }
    text
}
