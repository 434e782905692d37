//! The `flux` stand-in: `flux run` and the older `flux mini run`, with the options that matter on
//! one machine (flux-run(1)).

use std::ffi::OsString;

use forebay_terminal::print_error;

use crate::options::Step;
use crate::options::{Count, Dialect, Meaning as M, Symbol};
use crate::step;

pub static FLUX_RUN: Dialect = Dialect {
    name: "flux run",
    usage: "\
usage: flux run [OPTION...] PROGRAM [ARGUMENT...]
Stands in for flux run in a job that runs without a scheduler. Options that matter here:
  -n, --ntasks N         number of tasks [default: 1, or 1 for each node]
  -N, --nodes N          --tasks-per-node N
  --cwd DIR              --env NAME=VALUE        -l, --label-io
  --output FILE          --error FILE            --input FILE
Placement and limits have no effect on one machine; unknown options are named.
example: flux run -n 4 ./a.out",
    options: &[
        ("-n --ntasks", M::Count(Count::Tasks)),
        ("-N --nodes", M::Count(Count::Nodes)),
        ("--tasks-per-node", M::Count(Count::TasksPerNode)),
        ("--cwd", M::Directory),
        ("--output", M::Output),
        ("--error", M::Error),
        ("--input", M::Input),
        ("--env", M::Export),
        ("--env-remove --env-file", M::Unexport),
        ("-l --label-io", M::Label),
        ("--version", M::Version),
        ("-h --help", M::Help),
        // Options for placement, limits and accounting.
        (
            "-c --cores-per-task -g --gpus-per-task --cores --gpus-per-node -t --time-limit \
             --time -q --queue -B --bank -o --setopt -S --setattr --job-name --urgency --requires \
             --dependency --begin-time --signal --flags --rlimit --taskmap --add-file --conf",
            M::Value,
        ),
        ("-x --exclusive -u --unbuffered -v --verbose --quiet", M::Flag),
        ("--tasks-per-core --dry-run", M::Refused),
    ],
    tasks,
    task_variables: ["FLUX_TASK_RANK", "FLUX_TASK_LOCAL_ID", "FLUX_JOB_SIZE"],
    step_variables: &[("FLUX_JOB_ID", Symbol::Job), ("FLUX_JOB_NNODES", Symbol::Nodes)],
    symbols: &[
        ("{{id}}", Symbol::Job),
        ("{{jobid}}", Symbol::Job),
        ("{{node.name}}", Symbol::Host),
        ("{{node.id}}", Symbol::Node),
        ("{{nnodes}}", Symbol::Nodes),
    ],
    pads_numbers: false,
    no_file: None,
    error_follows_output: true,
    broadcasts_input: true,
    colon_separates: false,
};

/// Runs `flux` in a job without a scheduler.
pub fn flux(words: &[OsString]) -> i32 {
    let begins_with = |verbs: &[&str]| words.iter().take(verbs.len()).eq(verbs);
    match [&["run"][..], &["mini", "run"]].into_iter().find(|verbs| begins_with(verbs)) {
        Some(verbs) => step::launch(&FLUX_RUN, &words[verbs.len()..]),
        None => print_error(
            "of flux, there is only flux run (and flux mini run) in a job without a scheduler",
            Some("write for example: flux run -n 4 ./a.out"),
            2,
        ),
    }
}

fn tasks(step: &Step) -> Option<u32> {
    let nodes = step.count(Count::Nodes).unwrap_or(1);
    let per_node = step.count(Count::TasksPerNode).unwrap_or(1);
    step.count(Count::Tasks).or(Some(nodes.saturating_mul(per_node)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::parsed;

    #[test]
    fn one_task_by_default() {
        for (line, expected) in [
            ("hostname", 1),
            ("-N4 -n16 -o mpibind=off -c 2 -t 5m ./a -n 3", 16),
            ("-N2 ./a", 2),
            ("--nodes=2 --tasks-per-node=3 --exclusive ./a", 6),
        ] {
            let step = parsed(&FLUX_RUN, line);
            assert_eq!(tasks(&step), Some(expected), "{line}");
            assert_eq!(step.warnings, [""; 0], "{line}");
        }
    }

    #[test]
    fn environment_rules_that_remove_variables_are_named() {
        let step = parsed(&FLUX_RUN, "--env=A=b --env=-LD_* --env=HOME --env-file=f ./a");
        assert_eq!(step.exports, [("A".to_owned(), "b".to_owned())]);
        let kept = "is not honoured: the job's environment stays";
        let expected = [format!("--env=-LD_* {kept}"), format!("--env-file=f {kept}")];
        assert_eq!(step.warnings, expected);
    }
}
