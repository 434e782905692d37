//! `forebay control`: shows and drains a site's pools, and removes or delivers what jobs left.
//! Assumes root or SlurmUser on the control host; `forebay-control-host` does the work.
//! Without --discard, never removes a directory that belongs to no allocation.

use clap::{Args, Subcommand};
use comfy_table::{Table, presets};
use forebay_control_host::control::{self, AllocationStatus, Reaped, Status};
use forebay_host::exit_codes::FAILED;
use forebay_host::messages::counted;
use forebay_site::Error;
use forebay_terminal::{CliError, print_json, print_status, print_stdout, print_warning};
use indicatif::HumanBytes;

#[derive(Debug, Args)]
pub struct ControlArguments {
    #[command(subcommand)]
    pub verb: ControlVerb,
}

#[derive(Debug, Subcommand)]
pub enum ControlVerb {
    /// Show pools, allocations and nodes
    #[command(after_help = "Example:\n  forebay control status")]
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Give nothing of a pool to new jobs, or give again
    #[command(
        after_help = "Example:\n  forebay control drain flash\n  forebay control drain --undo flash"
    )]
    Drain {
        /// The pool
        pool: String,
        /// Give to new jobs again
        #[arg(long)]
        undo: bool,
    },
    /// Print the numbers of pools, allocations, stagings and nodes in the format OpenMetrics
    #[command(after_help = "Example:\n  forebay control metrics > /run/forebay/metrics.new")]
    Metrics,
    /// Complete removals, also of ended jobs, and name directories that belong to no allocation
    #[command(after_help = "Example:\n  forebay control reap\n  forebay control reap --discard")]
    Reap {
        /// Remove these directories with all that is in them
        #[arg(long)]
        discard: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Stage out the results of a job again, after the reason of the failure is gone
    #[command(after_help = "Example:\n  forebay control deliver 4711\n\n\
        When it succeeds, scancel --hurry 4711 ends the job and frees its allocation.")]
    Deliver {
        /// The job's ID
        job: String,
    },
}

pub fn control(verb: &ControlVerb) -> i32 {
    match verb {
        ControlVerb::Status { json } => status(*json),
        ControlVerb::Metrics => match forebay_control_host::metrics() {
            Ok(text) => print_stdout(text.trim_end(), 0),
            Err(error) => failed(error).print(),
        },
        ControlVerb::Drain { pool, undo } => drain(pool, *undo),
        ControlVerb::Reap { discard, json } => reap(*discard, *json),
        ControlVerb::Deliver { job } => match control::deliver_results(job) {
            Ok(()) => {
                print_status(&format!("the results of job {job} are at their destinations"));
                print_status(&if job.contains('.') {
                    "forebay control reap frees the allocation".to_owned()
                } else {
                    format!("scancel --hurry {job} ends the job and frees its allocation")
                });
                0
            }
            Err(error) => failed(error).print(),
        },
    }
}

fn failed(error: Error) -> CliError {
    CliError { hint: error.hint.clone(), ..CliError::new(error.message) }
}

fn status(json: bool) -> i32 {
    match control::status() {
        Ok(status) if json => print_json(&status, 0),
        Ok(status) => {
            status.unknown_names.iter().for_each(|unknown| print_warning(unknown));
            print_stdout(&text_of(&status), 0)
        }
        Err(error) => failed(error).print_with_json(json, None),
    }
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(header);
    table
}

fn text_of(status: &Status) -> String {
    let mut pools = table(&["pool", "free", "size", "granule", "state", "directory"]);
    for pool in &status.pools {
        let shown =
            |grains: u64| HumanBytes(grains.saturating_mul(pool.granularity_bytes)).to_string();
        let state = if pool.is_drained { "drained" } else { "in use" };
        pools.add_row([
            pool.name.clone(),
            shown(pool.quantity.saturating_sub(pool.used)),
            shown(pool.quantity),
            shown(1),
            state.to_owned(),
            pool.path.clone(),
        ]);
    }
    let mut texts = vec![pools.to_string()];
    if status.allocations.is_empty() {
        texts.push("no allocations".to_owned());
    } else {
        let mut allocations =
            table(&["job or name", "user", "pool", "size", "phase", "node", "directory"]);
        for one in &status.allocations {
            allocations.add_row([
                one.token.clone(),
                one.user.clone(),
                one.pool.clone(),
                HumanBytes(one.capacity_bytes).to_string(),
                one.phase.to_string(),
                nodes_of(one),
                one.directory.clone(),
            ]);
        }
        texts.push(allocations.to_string());
    }
    for one in &status.allocations {
        texts.extend(one.problem.as_ref().map(|problem| format!("{}: {problem}", one.token)));
    }
    let silent: Vec<_> =
        status.nodes.iter().filter(|node| !node.is_online).map(|node| node.name.as_str()).collect();
    if !silent.is_empty() {
        texts.push(format!("no answer from: {}", silent.join(", ")));
    }
    texts.join("\n\n")
}

/// The node that stages, or how many nodes have a directory.
fn nodes_of(one: &AllocationStatus) -> String {
    match &one.shares[..] {
        [] => one.node.clone(),
        [share] => share.node.clone(),
        shares => format!("{} nodes", shares.len()),
    }
}

fn drain(pool: &str, undo: bool) -> i32 {
    match control::drain(pool, undo) {
        Ok(_) if undo => print_status(&format!("the pool {pool} gives to new jobs again")),
        Ok(left) if left.is_empty() => print_status(&format!("the pool {pool} is empty")),
        Ok(left) => {
            let count = counted(left.len() as u64, "allocation");
            print_status(&format!(
                "the pool {pool} gives nothing to new jobs; it still has {count}:"
            ));
            return print_stdout(&left.join("\n"), 0);
        }
        Err(error) => return failed(error).print(),
    }
    0
}

fn reap(discard: bool, json: bool) -> i32 {
    let reaped = match control::reap(discard) {
        Ok(reaped) => reaped,
        Err(error) => return failed(error).print_with_json(json, None),
    };
    let code = if reaped.failed.is_empty() { 0 } else { FAILED };
    for failed in &reaped.failed {
        print_warning(failed);
    }
    if json {
        print_json(&reaped, code)
    } else {
        print_stdout(&reaped_text(&reaped, discard), code)
    }
}

fn reaped_text(reaped: &Reaped, discard: bool) -> String {
    let mut lines: Vec<_> =
        reaped.removed.iter().map(|token| format!("removed the leftovers of {token}")).collect();
    for orphan in &reaped.orphans {
        let what = if orphan.is_removed { "removed" } else { "belongs to no allocation:" };
        let on = orphan.node.as_ref().map(|node| format!(" on {node}")).unwrap_or_default();
        lines.push(format!("{what} {} of {}{on}", orphan.path, orphan.owner));
    }
    lines.extend(reaped.missing.iter().map(|token| format!("the directory of {token} is gone")));
    if !discard && !reaped.orphans.is_empty() {
        lines.push("forebay control reap --discard removes these directories".to_owned());
    }
    if lines.is_empty() { "nothing is left behind".to_owned() } else { lines.join("\n") }
}
