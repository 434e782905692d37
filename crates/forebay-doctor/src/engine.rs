//! `forebay doctor --engine`: starts an engine on the nodes, checks what it promises, measures it shortly,
//! and takes it down. Leaves nothing, also when it is interrupted. After a kill, `forebay clean` finds its leftovers
//! by a record as of a job.

use std::cell::RefCell;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use comfy_table::{Table, presets};
use forebay_cluster::{Session, SessionSpec};
use forebay_conformance as conformance;
use forebay_conformance::{CheckResult, Connection, Node, Outcome, Scope};
use forebay_engine::{
    AllocationDirectory, Coherence, Engine, HANG_S_MAX, Ledger, NodesUse, Promise, Step,
};
use forebay_host::exit_codes;
use forebay_host::messages::{Messages, counted};
use forebay_host::process::{Piped, SignalGuard, command};
use forebay_host::{clock, system};
use forebay_job::NodeOptions;
use forebay_record::{JobDirectory, Record, RecordFile};
use forebay_terminal::{CliError, Progress, print_json, print_status, print_stdout, print_warning};
use indicatif::HumanBytes;
use schemars::JsonSchema;
use serde::Serialize;

/// The name of a check among jobs.
const NAME: &str = "forebay doctor";
/// The namespace in which the checks run.
const NAMESPACE: &str = "striped";
/// Exit code after Ctrl-C.
const INTERRUPTED: i32 = exit_codes::of_signal(2);

/// What the checks found of one promise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PromiseFound {
    /// The promise.
    pub promise: &'static str,
    /// What the engine declares.
    pub declared: String,
    /// The checks that found it kept.
    pub kept: Vec<&'static str>,
    /// The checks that found it broken, or got no answer, with what they found.
    pub broken: Vec<String>,
    /// The checks of calls that the engine does not offer.
    pub not_supported: Vec<&'static str>,
    /// Whether the engine declares it and does not keep it.
    pub is_wrong: bool,
}

/// A short measurement of all nodes at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct EngineRates {
    /// Bytes that each node wrote and read.
    pub node_bytes: u64,
    /// Each node writes files of its own, in bytes per second.
    pub write_bytes_per_s: f64,
    /// Each node reads files of another node, in bytes per second.
    pub read_bytes_per_s: f64,
    /// Empty files created per second.
    pub creates_per_s: f64,
    /// Empty files removed per second.
    pub removes_per_s: f64,
}

/// What was found of an engine on nodes.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct EngineFound {
    /// The engine.
    pub engine: String,
    /// The nodes.
    pub nodes: Vec<String>,
    /// The time to start it in seconds.
    pub start_s: f64,
    /// The time to take it down in seconds.
    pub stop_s: f64,
    /// Repetitions of each check.
    pub repetitions: u64,
    /// What the engine chose where it has a choice.
    pub choices: Vec<String>,
    /// All that the engine declares.
    pub declared: Promise,
    /// Each promise that was tried.
    pub promises: Vec<PromiseFound>,
    /// The measurement; null if it failed.
    pub rates: Option<EngineRates>,
    /// What could not be removed, with its node.
    pub left: Vec<String>,
}

/// Checks an engine on nodes. Returns the exit code.
///
/// # Errors
/// If the engine cannot be started.
pub fn check_engine(
    options: &NodeOptions,
    store: Option<PathBuf>,
    repetitions: u64,
    json: bool,
) -> Result<i32, CliError> {
    let events = SignalGuard::listen()?.watch(None)?;
    let stops = events.stops();
    let should_continue = || stops.count() == 0;
    let found = examine(options, store, repetitions, &should_continue)?;
    let is_good = found.left.is_empty() && !found.promises.iter().any(|row| row.is_wrong);
    found.left.iter().for_each(|left| print_warning(&format!("left: {left}")));
    if !should_continue() {
        return Ok(INTERRUPTED);
    }
    let exit_code = if is_good && found.rates.is_some() { 0 } else { exit_codes::FAILED };
    Ok(if json { print_json(&found, exit_code) } else { print_stdout(&text(&found), exit_code) })
}

fn examine(
    options: &NodeOptions,
    store: Option<PathBuf>,
    repetitions: u64,
    should_continue: &dyn Fn() -> bool,
) -> Result<EngineFound, CliError> {
    let engine = options.engine().map_err(CliError::of_job)?;
    let trace = Trace::make()?;
    let found =
        examine_recorded(options, engine.as_ref(), store, repetitions, &trace, should_continue);
    // What is left has been named, and the record finds it.
    if found.as_ref().is_ok_and(|found| found.left.is_empty()) || !trace.has_nodes() {
        trace.remove()?;
    }
    found
}

/// The record of the check, for `forebay clean`.
struct Trace {
    directory: JobDirectory,
    recorded: RefCell<RecordFile>,
}

impl Trace {
    fn make() -> Result<Self, CliError> {
        let of_record = |error: forebay_record::Error| CliError::of_job(error.into());
        let directory = JobDirectory::make().map_err(of_record)?;
        let record = Record::new(directory.id(), Path::new(NAME), directory.path());
        let recorded = record.and_then(|record| record.create(false)).map_err(of_record)?;
        directory.mark_recorded()?;
        Ok(Self { directory, recorded: RefCell::new(recorded) })
    }

    /// Called before the first directory is made on a node.
    fn record_nodes_use(&self, used: &NodesUse) -> forebay_host::Result<()> {
        let place = AllocationDirectory { root: used.mount(), mounted: false, capacity_bytes: 0 };
        let mut recorded = self.recorded.borrow_mut();
        recorded.record_step(Step::Nodes(used.clone()))?;
        recorded.record_step(Step::Allocation(place))
    }

    fn has_nodes(&self) -> bool {
        self.recorded.borrow().record.nodes.is_some()
    }

    /// The start failed, and left nothing on the nodes.
    fn forget_nodes(&self) {
        self.recorded.borrow_mut().record.nodes = None;
    }

    fn remove(self) -> Result<(), CliError> {
        self.recorded.into_inner().remove().map_err(|error| CliError::of_job(error.into()))?;
        Ok(self.directory.remove()?)
    }
}

fn examine_recorded(
    options: &NodeOptions,
    engine: &dyn Engine,
    store: Option<PathBuf>,
    repetitions: u64,
    trace: &Trace,
    should_continue: &dyn Fn() -> bool,
) -> Result<EngineFound, CliError> {
    let id = trace.directory.id();
    let messages = Progress::explaining(false);
    let agents = options.agents(id).map_err(CliError::of_job)?;
    print_status(&format!("starting {} on {}", engine.name(), options.names.join(", ")));
    let began = clock::now();
    let spec = spec(id, engine, options, store.as_deref(), &messages);
    let started =
        Session::start(&spec, agents, &mut |used| trace.record_nodes_use(used), should_continue);
    let session = started.map_err(|error| {
        if !matches!(error, forebay_cluster::Error::EngineLeft { .. }) {
            trace.forget_nodes();
        }
        CliError::of_job(error.into())
    })?;
    let start_s = began.elapsed().as_secs_f64();
    let promise = session.promise().clone();
    let choices = session.choices().to_vec();
    let checked = check(options, &session, repetitions, should_continue);
    session.take_messages().iter().for_each(|message| print_warning(message));
    print_status("taking it down");
    let began = clock::now();
    let left = session.remove();
    let (promises, rates) = checked?;
    Ok(EngineFound {
        engine: engine.name().to_owned(),
        nodes: options.names.clone(),
        start_s,
        stop_s: began.elapsed().as_secs_f64(),
        repetitions,
        choices,
        promises: rows(&promise, &promises),
        declared: promise,
        rates,
        left,
    })
}

fn spec<'a>(
    id: &'a str,
    engine: &'a dyn Engine,
    options: &'a NodeOptions,
    store: Option<&'a Path>,
    messages: &'a dyn Messages,
) -> SessionSpec<'a> {
    SessionSpec {
        id,
        engine,
        engine_root: options.engine_root.as_deref(),
        store,
        capacity_bytes: None,
        strict_capacity: false,
        redundancy: options.redundancy,
        metadata_servers: options.metadata_servers(),
        layout: options.layout(),
        coherence: options.coherence,
        namespaces: vec![NAMESPACE.to_owned()],
        private: false,
        node_local: None,
        hang_s_max: HANG_S_MAX,
        messages,
    }
}

/// Runs the checks, then measures.
fn check(
    options: &NodeOptions,
    session: &Session,
    repetitions: u64,
    should_continue: &dyn Fn() -> bool,
) -> Result<(Vec<CheckResult>, Option<EngineRates>), CliError> {
    let mut nodes = workers(options)?;
    let directory = session.mount().join(NAMESPACE);
    let directory = directory.as_os_str().as_bytes();
    let asked = conformance::Options { repetitions, ..conformance::Options::default() };
    print_status(&format!("checking; each check runs {}", counted(repetitions, "time")));
    let mut seen = |result: &CheckResult| {
        if !result.is_good() {
            print_status(&result.to_string());
        }
        should_continue()
    };
    let report = conformance::run(&mut nodes, directory, &asked, &mut seen)
        .map_err(|error| CliError::new(error.to_string()).with_hint(error.hint()))?;
    if !should_continue() {
        return Ok((report.checks, None));
    }
    print_status("measuring");
    let rates = match conformance::measure(&mut nodes, directory) {
        Ok(rates) => Some(EngineRates {
            node_bytes: rates.node_bytes,
            write_bytes_per_s: rates.write_bytes_per_s,
            read_bytes_per_s: rates.read_bytes_per_s,
            creates_per_s: rates.creates_per_s,
            removes_per_s: rates.removes_per_s,
        }),
        Err(failed) => {
            print_warning(&format!("cannot measure: {failed:?}"));
            None
        }
    };
    Ok((report.checks, rates))
}

/// A worker on each node, started as the agents are.
fn workers(options: &NodeOptions) -> Result<Vec<Node>, CliError> {
    let words: [OsString; 3] =
        [system::this_program()?.into(), "__conformance".into(), "worker".into()];
    let node = |(index, name): (usize, &String)| {
        let line = match index {
            0 => words.to_vec(),
            _ => options.launcher.command_on(name, &words).map_err(CliError::new)?,
        };
        let connect = move || {
            let mut worker = command(line.first().cloned().unwrap_or_default());
            worker.args(line.get(1..).unwrap_or_default());
            let (process, output, input) =
                Piped::start(worker).map_err(|error| error.to_string())?;
            Ok(Connection {
                input: Box::new(input),
                output: Box::new(output),
                guard: Box::new(process),
            })
        };
        Ok(Node::new(name.clone(), Box::new(connect)))
    };
    options.names.iter().enumerate().map(node).collect()
}

/// The promise that a check is about.
fn promise_of(check: &CheckResult) -> &'static str {
    let name = check.name;
    if name.contains("map") {
        "shared_mmap"
    } else if check.scope == Scope::OneNode {
        "posix"
    } else if name.contains("lock") {
        "locks"
    } else if name.starts_with("append_") {
        "atomic_append"
    } else {
        "coherence"
    }
}

fn yes(is: bool) -> String {
    (if is { "yes" } else { "no" }).to_owned()
}

fn rows(declared: &Promise, checks: &[CheckResult]) -> Vec<PromiseFound> {
    let is_strict = declared.coherence == Coherence::Strict;
    let all = [
        ("coherence", declared.coherence.to_string(), is_strict),
        ("atomic_append", yes(declared.atomic_append), declared.atomic_append),
        ("locks", yes(declared.locks), declared.locks),
        ("shared_mmap", yes(declared.shared_mmap), declared.shared_mmap),
        match declared.deviations.is_empty() {
            true => ("posix", yes(true), true),
            false => ("posix", "with deviations".to_owned(), false),
        },
    ];
    let row = |(promise, declared, is_declared)| {
        let mut found = PromiseFound {
            promise,
            declared,
            kept: Vec::new(),
            broken: Vec::new(),
            not_supported: Vec::new(),
            is_wrong: false,
        };
        for check in checks.iter().filter(|check| promise_of(check) == promise) {
            match &check.outcome {
                Outcome::Kept => found.kept.push(check.name),
                Outcome::NotSupported { .. } => found.not_supported.push(check.name),
                _ => found.broken.push(format!(
                    "{}: {}",
                    check.name,
                    check.reason().unwrap_or("not run")
                )),
            }
        }
        found.is_wrong = is_declared && !found.broken.is_empty();
        found
    };
    all.into_iter().map(row).collect()
}

fn text(found: &EngineFound) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(["promise", "declared", "kept", "broken", "not offered", ""]);
    for row in &found.promises {
        table.add_row([
            row.promise.to_owned(),
            row.declared.clone(),
            row.kept.len().to_string(),
            row.broken.len().to_string(),
            row.not_supported.len().to_string(),
            (if row.is_wrong { "WRONG" } else { "" }).to_owned(),
        ]);
    }
    let mut lines = found.choices.clone();
    lines.extend(table.lines().map(|line| line.trim_end().to_owned()));
    for row in &found.promises {
        lines.extend(row.broken.iter().map(|broken| format!("{}: broken: {broken}", row.promise)));
    }
    lines.push(format!(
        "Declared, and not tried here: striping: {}; survives the loss of a server: {}, of a node: {}, a restart: {}.",
        yes(found.declared.striping),
        yes(found.declared.survives_server),
        yes(found.declared.survives_node),
        yes(found.declared.survives_restart)
    ));
    let rate = |bytes: f64| format!("{}/s", HumanBytes(bytes as u64));
    let is_alone = found.nodes.len() == 1;
    let source = if is_alone { "" } else { "what another node wrote " };
    if let Some(rates) = found.rates {
        lines.push(format!(
            "A short measurement, {} from each node, all nodes together: write {}, read {source}{}, \
             create {:.0} and remove {:.0} names/s.",
            HumanBytes(rates.node_bytes),
            rate(rates.write_bytes_per_s),
            rate(rates.read_bytes_per_s),
            rates.creates_per_s,
            rates.removes_per_s
        ));
    }
    if is_alone {
        lines.push("Checks across nodes need two nodes: name them with --nodes.".to_owned());
    }
    lines.push(format!(
        "{} on {} started in {:.1} s and was taken down in {:.1} s.",
        found.engine,
        counted(found.nodes.len() as u64, "node"),
        found.start_s,
        found.stop_s
    ));
    lines.join("\n")
}
