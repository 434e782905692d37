//! `forebay doctor`: examines a machine and explains the results for jobs.
//! Assumes that a look can hang, so each has a time limit. Never changes the machine; the check of an
//! engine removes what it started.

mod diagnosis;
mod engine;
mod node;
mod programs;
mod recording;
mod storage;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

use clap::Args;
use comfy_table::{ContentArrangement, Table, presets};
use forebay_host::exit_codes;
use forebay_terminal::{print_json, print_stdout};

pub use engine::{EngineFound, check_engine};
pub use node::probe_namespace;

pub use diagnosis::Finding;
use diagnosis::{Diagnosis, PROBE_TIME_MS_MAX, State};
use forebay_host::threads;

/// The options of `forebay doctor`.
#[derive(Debug, Args)]
pub struct DoctorArguments {
    /// Store to check [default: the store that a job would use]
    #[arg(long, value_name = "STORE")]
    pub store: Option<PathBuf>,
    /// With an engine: run each check so many times
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub repetitions: u64,
    /// Print the findings as a JSON list
    #[arg(long)]
    pub json: bool,
}

/// The time limit of a finding: it runs at most one program and may access paths that hang.
const FINDING_TIME_MS_MAX: u64 = 2 * PROBE_TIME_MS_MAX;
/// The maximum line length, also without a terminal.
const LINE_COLUMNS_MAX: u16 = 100;

/// A check of the machine. Its argument holds the stores of the user and the site.
type Question = fn(&Stores) -> Diagnosis;
type Stores = [Option<PathBuf>; 2];

/// All checks, in the order of the list.
const QUESTIONS: [(&str, Question); 18] = [
    ("store", |[named, site]| storage::store(named.as_deref(), site.as_deref())),
    ("user_namespaces", |_| node::user_namespaces()),
    ("huge_pages", |_| node::huge_pages()),
    ("memory", |_| node::memory()),
    ("memory_cgroup", |_| node::memory_cgroup()),
    ("shared_memory", |_| node::shared_memory()),
    ("nvme", |_| storage::nvme()),
    ("network_fs", |_| storage::network_file_systems()),
    ("lfs", |_| storage::lfs()),
    ("fuse", |_| node::fuse()),
    ("engine", |_| programs::engine()),
    ("mpi", |_| programs::mpi()),
    ("mpi_compiler", |_| programs::mpi_compiler()),
    ("mpi_io", |_| programs::mpi_io()),
    ("slurm", |_| programs::slurm()),
    ("emulation", |_| programs::emulation()),
    ("recording", |_| recording::recording()),
    ("reports", |_| recording::reports()),
];

/// Prints the findings. `site_store` is the store of the configuration. Returns the exit code.
#[must_use]
pub fn doctor(arguments: &DoctorArguments, site_store: Option<PathBuf>) -> i32 {
    let findings = findings(&[arguments.store.clone(), site_store]);
    let of = |id| findings.iter().find(|finding| finding.id == id);
    let usable = of("store").is_some_and(|store| store.state != State::Missing);
    let exit_code = if usable { 0 } else { exit_codes::FAILED };
    if arguments.json {
        return print_json(&findings, exit_code);
    }
    let text = format!("{}\n\n{}", list(&findings), summary(of("store"), of("mpi")));
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
        || std::env::var_os("TERM").is_none_or(|terminal| terminal == "dumb");
    let coloured = std::io::stdout().is_terminal() && !plain;
    let text = if coloured { colour(&text) } else { text };
    print_stdout(&text, exit_code)
}

/// Runs all checks in parallel, so that a slow one does not delay the others.
fn findings(stores: &Stores) -> Vec<Finding> {
    let time_max = Duration::from_millis(FINDING_TIME_MS_MAX);
    let deadline = forebay_host::clock::now() + time_max;
    let asked = QUESTIONS.map(|(id, question)| {
        let (sender, receiver) = mpsc::channel();
        // After the time limit there is no receiver.
        let asked = {
            let stores = stores.clone();
            threads::spawn(move || sender.send(question(&stores)).ok())
        };
        // Without a thread, this one asks.
        let receiver = match asked {
            Ok(_) => receiver,
            Err(_) => answered(question(stores)),
        };
        (id, receiver)
    });
    let answers = asked.into_iter().map(|(id, receiver)| {
        let left = deadline.saturating_duration_since(forebay_host::clock::now());
        let diagnosis = receiver.recv_timeout(left).unwrap_or_else(|_| {
            let found = format!("no answer within {} s", time_max.as_secs());
            let consequence = "a job that asks the same may hang, too";
            Diagnosis::warn(found, consequence, "see what hangs: a dead mount in PATH?")
        });
        let Diagnosis { state, found, consequence, remedy } = diagnosis;
        Finding { id, state, found, consequence, remedy }
    });
    answers.collect()
}

/// A receiver of this answer.
fn answered(diagnosis: Diagnosis) -> mpsc::Receiver<Diagnosis> {
    let (sender, receiver) = mpsc::channel();
    sender.send(diagnosis).ok(); // we hold the receiver
    receiver
}

/// Formats state, name and text in three columns.
fn list(findings: &[Finding]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(LINE_COLUMNS_MAX);
    for finding in findings {
        let mut said = format!("{}\n-> {}", finding.found, finding.consequence);
        if let Some(remedy) = &finding.remedy {
            said.push_str("\nremedy: ");
            said.push_str(remedy);
        }
        table.add_row([finding.state.word(), &finding.id.replace('_', " "), &said]);
    }
    // The table adds a blank on either side of each cell.
    let lines = table.lines().map(|line| {
        let line = line.trim_end();
        line.strip_prefix(' ').unwrap_or(line).to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn summary(store: Option<&Finding>, mpi: Option<&Finding>) -> String {
    let found = |finding: Option<&Finding>| finding.map_or("?".to_owned(), |f| f.found.clone());
    if store.is_none_or(|store| store.state == State::Missing) {
        return format!("No job can run here: {}.", found(store));
    }
    let ranks = if programs::slurm_job().is_some() {
        "ranks are started by Slurm".to_owned()
    } else if mpi.is_none_or(|mpi| mpi.state == State::Missing) {
        "no ranks can be started".to_owned()
    } else {
        format!("ranks are started by {}", found(mpi))
    };
    format!("A job here uses {}; {ranks}.", found(store))
}

/// Colours the state at the start of lines.
fn colour(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let states = [State::Ok, State::Warn, State::Missing];
        let at_begin = |state: &State| line.starts_with(&format!("{} ", state.word()));
        match states.into_iter().find(at_begin) {
            Some(state) => {
                let (word, rest) = line.split_at(state.word().len());
                format!("\x1b[{}m{word}\x1b[0m{rest}", state.colour())
            }
            None => line.to_owned(),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(id: &'static str, state: State, remedy: Option<&str>) -> Finding {
        Finding {
            id,
            state,
            found: "what was found".into(),
            consequence: "what it means".into(),
            remedy: remedy.map(str::to_owned),
        }
    }

    #[test]
    fn list_is_aligned_and_colour_adds_no_text() {
        let findings = [
            finding("store", State::Ok, None),
            finding("shared_memory", State::Missing, Some("mount it")),
        ];
        let text = list(&findings);
        let expected = "\
ok       store          what was found
                        -> what it means
missing  shared memory  what was found
                        -> what it means
                        remedy: mount it";
        assert_eq!(text, expected);
        let coloured = colour(&text);
        assert!(coloured.starts_with("\x1b[32mok\x1b[0m "), "{coloured}");
        let mut plain = coloured.replace("\x1b[0m", "");
        for code in ["\x1b[31m", "\x1b[32m"] {
            plain = plain.replace(code, "");
        }
        assert_eq!(plain, text);
    }

    #[test]
    fn finding_ids_are_distinct() {
        let ids: std::collections::HashSet<_> = QUESTIONS.iter().map(|(id, _)| id).collect();
        assert_eq!(ids.len(), QUESTIONS.len());
    }

    #[test]
    fn summary_without_a_store_says_that_no_job_can_run() {
        let (store, mpi) = ("store", "mpi");
        let missing = finding(store, State::Missing, None);
        let said = summary(Some(&missing), None);
        assert_eq!(said, "No job can run here: what was found.");
        let found = finding(store, State::Warn, None);
        let said = summary(Some(&found), Some(&finding(mpi, State::Missing, None)));
        assert!(said.starts_with("A job here uses what was found; "), "{said}");
    }
}
