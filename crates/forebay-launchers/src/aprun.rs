//! The `aprun` stand-in, with the options that matter on one machine (aprun(1) of Cray's ALPS).
//! Some options have two letters after a single dash.

use crate::options::Step;
use crate::options::{Count, Dialect, Meaning as M};

pub static APRUN: Dialect = Dialect {
    name: "aprun",
    usage: "\
usage: aprun [OPTION...] PROGRAM [ARGUMENT...]
Stands in for aprun in a job that runs without a scheduler. Options that matter here:
  -n, --pes N        number of tasks [default: 1]
  -B, --batch-args   as many tasks as the job has
  -e, --environment-override NAME=VALUE
Placement and limits have no effect on one machine; unknown options are named.
example: aprun -n 4 ./a.out",
    options: &[
        ("-n --pes", M::Count(Count::Tasks)),
        ("-B --batch-args", M::TasksOfTheJob),
        ("-e --environment-override", M::Export),
        ("--wdir", M::Directory),
        ("--version", M::Version),
        ("-h --help", M::Help),
        ("-c -s", M::TwoLetters),
        // Options for placement, limits and accounting.
        (
            "-cc --cc --cpu-binding -cp --cp --cpu-binding-file -sl --sl --numa-node-list -sn \
             --sn --numa-nodes-per-node -N --pes-per-node -d --cpus-per-pe -S --pes-per-numa-node \
             -j --cpus-per-cu -r --specialized-cpus -m --memory-per-pe -a --architecture -D \
             --debug -E --exclude-node-list --exclude-node-list-file -F --access-mode -L \
             --node-list -l --node-list-file -P --pipes -p --protection-domain -R --relaunch -t \
             --cpu-time-limit --p-governor --p-state -Z --zone-sort-secs",
            M::Value,
        ),
        (
            "-ss --ss --strict-memory-containment -b --bypass-app-transfer -C --reconnect -q \
             --quiet --silent -T --sync-output -z --zone-sort",
            M::Flag,
        ),
        // Options that add other programs or resources.
        ("--mpmd-env", M::Refused),
    ],
    tasks,
    task_variables: ["ALPS_APP_PE", "", ""],
    step_variables: &[],
    symbols: &[],
    pads_numbers: false,
    no_file: None,
    error_follows_output: false,
    broadcasts_input: false,
    colon_separates: true,
};

fn tasks(step: &Step) -> Option<u32> {
    let default = (!step.tasks_of_the_job).then_some(1);
    step.count(Count::Tasks).or(default)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::parsed;

    #[test]
    fn two_letters_after_one_dash_are_one_option() {
        for (line, expected) in [
            ("-n 48 -N 24 -d 1 -S 12 -cc cpu -ss -j 1 ./a -n 2", Some(48)),
            ("-n4 -cc none -sn 2 -q ./a", Some(4)),
            ("-cc 0,2:1,3 ./a", Some(1)),
            ("-B -q ./a", None),
        ] {
            let step = parsed(&APRUN, line);
            assert_eq!(tasks(&step), expected, "{line}");
            assert_eq!((&step.program[0], step.warnings), (&"./a".into(), vec![]), "{line}");
        }
    }

    #[test]
    fn aprun_variables_are_set_and_unknown_options_reported() {
        let step = parsed(&APRUN, "-e A=b,c=d -sz -n 2 ./a");
        assert_eq!(step.exports, [("A".to_owned(), "b,c=d".to_owned())]);
        assert_eq!(step.warnings, ["unknown option -sz has no effect"]);
        let words = ["-n", "1", "./a", ":", "-n", "2", "./b"].map(Into::into);
        let error = APRUN.parse(&words).expect_err("MPMD").to_string();
        assert!(error.contains("several programs"), "{error}");
    }
}
