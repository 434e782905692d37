//! `forebay __conformance`: what a file system promises on one node and across nodes
//! (docs/development/conformance.md).

use std::io::{stdin, stdout};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use forebay_conformance::{CheckResult, Node, Options, Scope, checks, run, serve};
use forebay_terminal::{CliError, print_json, print_stdout, print_warning};

#[derive(Debug, Args)]
pub struct ConformanceArguments {
    #[command(subcommand)]
    verb: ConformanceVerb,
}

#[derive(Debug, Subcommand)]
enum ConformanceVerb {
    /// Carry out the operations that standard input names, one a line
    Worker,
    /// Print the names of all checks, and what each proves
    List,
    /// Run the checks below a directory that all nodes see
    Run(RunArguments),
}

#[derive(Debug, Args)]
struct RunArguments {
    /// Command that runs forebay on a node, such as 'ssh n2 forebay'; repeat it for each node
    #[arg(long = "on", value_name = "COMMAND", required = true)]
    nodes: Vec<String>,
    /// Repeat each check so often; those that work on much data are repeated less often
    #[arg(long, value_name = "N", default_value_t = Options::default().repetitions)]
    repetitions: u64,
    /// Run this check; repeat the option for several
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// End a worker that needs longer for an operation
    #[arg(long, value_name = "SECONDS", default_value_t = Options::default().operation_s_max, value_parser = seconds)]
    operation_s_max: f64,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// An absolute path
    directory: PathBuf,
}

fn seconds(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.001..=86_400.0).contains(&value) {
        Ok(value)
    } else {
        Err("not within 0.001 and 86400".to_owned())
    }
}

pub fn conformance(arguments: &ConformanceArguments) -> i32 {
    match &arguments.verb {
        ConformanceVerb::Worker => match serve(stdin().lock(), stdout().lock()) {
            Ok(()) => 0,
            Err(error) => CliError::new(format!("the coordinator is gone: {error}")).print(),
        },
        ConformanceVerb::List => list(),
        ConformanceVerb::Run(arguments) => {
            run_checks(arguments).unwrap_or_else(|error| error.print())
        }
    }
}

fn list() -> i32 {
    let of = |scope, title: &str| {
        let lines = checks(scope).map(|check| format!("  {:<28} {}", check.name, check.proves));
        [title.to_owned()].into_iter().chain(lines).collect::<Vec<_>>().join("\n")
    };
    let one = of(Scope::OneNode, "On one node:");
    print_stdout(&format!("{one}\n{}", of(Scope::AcrossNodes, "Across nodes:")), 0)
}

fn run_checks(arguments: &RunArguments) -> Result<i32, CliError> {
    let nodes = arguments.nodes.iter().map(|command| Node::of_command(command));
    let mut nodes: Vec<Node> = nodes
        .collect::<Result<_, _>>()
        .map_err(|reason| CliError::new(format!("--on: {reason}")).with_exit_code(2))?;
    let options = Options {
        repetitions: arguments.repetitions,
        only: arguments.only.clone(),
        operation_s_max: arguments.operation_s_max,
    };
    let directory = arguments.directory.as_os_str().as_bytes();
    let mut seen = |result: &CheckResult| {
        if !arguments.json {
            print_stdout(&result.to_string(), 0);
        }
        true
    };
    let report = run(&mut nodes, directory, &options, &mut seen)
        .map_err(|error| CliError::new(error.to_string()).with_hint(error.hint()))?;
    if let Some(left) = &report.left {
        print_warning(&format!("cannot remove {left}"));
    }
    let exit_code = i32::from(!report.is_good());
    if arguments.json {
        return Ok(print_json(&report, exit_code));
    }
    Ok(print_stdout(&report.summary(), exit_code))
}
