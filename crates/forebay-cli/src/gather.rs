//! `forebay gather`: stages out the leftovers of jobs, with `forebay clean` on each node.
//! Assumes that the nodes share this user's records, and have Forebay at the same path.
//! Never discards results. Waits for each node without limit.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Child, Stdio};

use clap::Args;
use comfy_table::{Table, presets};
use forebay_engine::NodesSummary;
use forebay_host::exit_codes::{FAILED, STAGE_OUT_INCOMPLETE};
use forebay_host::messages::counted;
use forebay_host::process::command;
use forebay_host::system;
use forebay_record::records;
use forebay_recovery::{self as recovery, JobsByNode, Undrained, undrained_by_node};
use forebay_scheduler::{RemoteShell, expand_node_list, launcher_command_on};
use forebay_terminal::{
    print_error, print_error_line, print_hint, print_json, print_status, print_stdout,
};
use indicatif::HumanBytes;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::clean::Cleaned;
use crate::status::warn_of_unreadable;

/// Number of nodes that work at the same time.
const AT_ONCE: usize = 32;

#[derive(Debug, Args)]
pub struct GatherArguments {
    /// Nodes to gather from, such as n1,n2 or n[1-16] [default: all nodes that hold results]
    #[arg(long, value_name = "NODES", value_delimiter = ',')]
    pub nodes: Vec<String>,
    /// Remote shell where srun is not available, for example 'ssh -q'; Forebay runs COMMAND NODE WORDS
    #[arg(long, value_name = "COMMAND", value_parser = RemoteShell::parse)]
    pub rsh: Option<RemoteShell>,
    /// Print a JSON list with an object for each node
    #[arg(long)]
    pub json: bool,
}

/// The result of one node.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Gathered {
    /// The name of the node.
    node: String,
    /// The objects that `forebay clean --json` prints there, one per job.
    #[schemars(with = "Vec<Cleaned>")]
    jobs: Vec<Value>,
    /// Files that were staged out.
    files: u64,
    /// Their bytes.
    bytes: u64,
    /// Files that failed.
    failures: usize,
    /// Jobs whose programs may have requested a stage-out; only the node can read the requests.
    unknown: Vec<String>,
    /// Why the node was not gathered from.
    error: Option<String>,
}

type NodeJobs = (String, Vec<String>);

pub fn gather(arguments: &GatherArguments) -> i32 {
    let asked = match arguments.nodes.as_slice() {
        [] => Ok(Vec::new()),
        words => expand_node_list(&words.join(",")),
    };
    let nodes = match asked {
        Ok(nodes) => nodes,
        Err(message) => return print_error(&message, None, FAILED),
    };
    let undrained = records().map_err(recovery::Error::from).and_then(|records| {
        warn_of_unreadable(&records);
        undrained_by_node(&records, &nodes)
    });
    let Undrained { held, unknown } = match undrained {
        Ok(undrained) => undrained,
        Err(error) => return print_error(&error.to_string(), error.hint().as_deref(), FAILED),
    };
    for node in &nodes {
        if !held.contains_key(node) && !unknown.contains_key(node) {
            print_status(&format!("{node}: nothing is left there"));
        }
    }
    let all: Vec<NodeJobs> = held.into_iter().collect();
    let mut gathered = Vec::new();
    for some in all.chunks(AT_ONCE) {
        let begun: Vec<_> =
            some.iter().map(|asked| (asked, start_clean(asked, arguments.rsh.as_ref()))).collect();
        gathered.extend(begun.into_iter().map(|(asked, child)| finish(asked, child)));
    }
    add_unknown(&mut gathered, unknown);
    let code = gathered.iter().map(complain).max().unwrap_or(0);
    if arguments.json {
        return print_json(&gathered, code);
    }
    if gathered.is_empty() {
        return print_stdout("nothing is left on any node", code);
    }
    let mut text = table(&gathered);
    for job in gathered.iter().flat_map(|node| &node.jobs) {
        if let Some(nodes) = nodes_of(job) {
            let id = job["job_id"].as_str().unwrap_or_default();
            text.push_str(&format!("\njob {id}: {}", nodes.text()));
        }
    }
    print_stdout(&text, code)
}

/// The nodes of a job that a node cleaned; none if it was on one node.
fn nodes_of(job: &Value) -> Option<NodesSummary> {
    serde_json::from_value(job.get("nodes")?.clone()).ok()
}

fn add_unknown(gathered: &mut Vec<Gathered>, unknown: JobsByNode) {
    for (node, jobs) in unknown {
        match gathered.iter_mut().find(|one| one.node == node) {
            Some(one) => one.unknown = jobs,
            None => gathered.push(Gathered { node, unknown: jobs, ..Gathered::default() }),
        }
    }
}

/// Starts `forebay clean` on the node.
fn start_clean((node, jobs): &NodeJobs, rsh: Option<&RemoteShell>) -> Result<Child, String> {
    let program = system::this_program().map_err(|error| error.to_string())?;
    let mut clean = vec![OsString::from(program)];
    clean.extend(["clean", "--json"].map(OsString::from));
    clean.extend(jobs.iter().map(OsString::from));
    let words = match rsh {
        _ if *node == system::hostname() => clean,
        Some(rsh) => rsh.command_on(node, clean)?,
        None => launcher_command_on(node, clean)?,
    };
    let mut started = command(&words[0]);
    started.args(&words[1..]).stdin(Stdio::null());
    let started = started.stdout(Stdio::piped()).spawn();
    started.map_err(|error| format!("cannot run {}: {error}", Path::new(&words[0]).display()))
}

fn finish((node, jobs): &NodeJobs, child: Result<Child, String>) -> Gathered {
    let mut gathered = Gathered { node: node.clone(), ..Gathered::default() };
    let output = child.and_then(|child| child.wait_with_output().map_err(|e| e.to_string()));
    let output = match output {
        Ok(output) => output,
        Err(why) => {
            gathered.error = Some(why);
            return gathered;
        }
    };
    let lines = String::from_utf8_lossy(&output.stdout);
    gathered.jobs = lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    for job in &gathered.jobs {
        let staged = &job["stage_out"];
        gathered.files += staged["files"].as_u64().unwrap_or(0);
        gathered.bytes += staged["bytes"].as_u64().unwrap_or(0);
        gathered.failures += staged["failures"].as_array().map_or(0, Vec::len);
    }
    let wrong = gathered.jobs.iter().find_map(|job| job["error"].as_str());
    gathered.error = match wrong {
        Some(wrong) => Some(wrong.to_owned()),
        None if gathered.jobs.len() < jobs.len() => {
            Some(format!("it did not answer: {}", output.status))
        }
        None => None,
    };
    gathered
}

/// Prints the problems of a node. Returns the exit code for it.
fn complain(gathered: &Gathered) -> i32 {
    let (node, failures) = (&gathered.node, gathered.failures);
    if let Some(why) = &gathered.error {
        print_error_line(&format!("{node}: {why}"));
        print_hint(&format!("when it can be reached: forebay gather --nodes {node}"));
        return 1;
    }
    if failures > 0 {
        print_error_line(&format!(
            "{node}: {} did not arrive; nothing was removed there",
            counted(failures as u64, "file")
        ));
        print_hint("fix the cause and run forebay gather again");
        return STAGE_OUT_INCOMPLETE;
    }
    for id in &gathered.unknown {
        print_error_line(&format!(
            "{node}: job {id} may hold what its programs asked for; only {node} can tell"
        ));
        print_hint(&format!("run forebay clean {id} there"));
    }
    i32::from(!gathered.unknown.is_empty())
}

fn table(gathered: &[Gathered]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(["NODE", "JOBS", "FILES", "BYTES", "NOT STAGED OUT"]);
    for node in gathered {
        let failures = match &node.error {
            None if node.unknown.is_empty() => node.failures.to_string(),
            _ => "?".to_owned(),
        };
        table.add_row([
            node.node.clone(),
            node.jobs.len().to_string(),
            node.files.to_string(),
            HumanBytes(node.bytes).to_string(),
            failures,
        ]);
    }
    table.trim_fmt()
}
