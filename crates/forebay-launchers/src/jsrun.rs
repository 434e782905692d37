//! The `jsrun` stand-in, with the options that matter on one machine (IBM Job Step Manager 10.1). A
//! resource set only multiplies the number of tasks.

use crate::options::Step;
use crate::options::{Count, Dialect, Meaning as M, Symbol};

pub static JSRUN: Dialect = Dialect {
    name: "jsrun",
    usage: "\
usage: jsrun [OPTION...] PROGRAM [ARGUMENT...]
Stands in for jsrun in a job that runs without a scheduler. Options that matter here:
  -n, --nrs N            resource sets
  -a, --tasks_per_rs N   tasks of each resource set [default: 1]
  -r, --rs_per_host N    resource sets, where -n is not given: there is one host
  -p, --np N             tasks, instead of resource sets
  -h, --chdir DIR        -E, --env NAME=VALUE
  -o, --stdio_stdout FILE   -k, --stdio_stderr FILE   -t, --stdio_input FILE
Without any of -n, -a, -r and -p as many tasks are started as the job has.
Placement and binding have no effect on one machine; unknown options are named.
example: jsrun -n 2 -a 4 ./a.out",
    options: &[
        ("-n --nrs", M::Count(Count::Sets)),
        ("-a --tasks_per_rs", M::Count(Count::TasksPerSet)),
        ("-r --rs_per_host", M::Count(Count::SetsPerHost)),
        ("-p --np", M::Count(Count::Tasks)),
        ("-h --chdir", M::Directory),
        ("-E --env", M::Export),
        ("-D --env_no_propagate -F --env_eval", M::Unexport),
        ("-o --stdio_stdout", M::Output),
        ("-k --stdio_stderr", M::Error),
        ("-t --stdio_input", M::Input),
        ("-V --version", M::Version),
        ("-? --help --usage", M::Help),
        // Options for placement, limits and accounting.
        (
            "-c --cpu_per_rs -g --gpu_per_rs -m --memory_per_rs -K --rs_per_socket -b --bind -d \
             --launch_distribution -l --latency_priority -x --exclude_hosts -e --stdio_mode -I \
             --stdin_rank -M --smpiargs -X --exit_on_error -Z --progress -P --pre_post_exec -L \
             --use_spindle --print_placement -S --save_resources",
            M::Value,
        ),
        ("-i --immediate", M::Flag),
        // Options that add other programs or resources.
        (
            "--erf_input --erf_output --erf_output_pidx -f --appfile -U --use_resources -J \
             --use_reservation -A --allocate_only -H --launch_node_task",
            M::Refused,
        ),
    ],
    tasks,
    task_variables: ["JSM_NAMESPACE_RANK", "JSM_NAMESPACE_LOCAL_RANK", "JSM_NAMESPACE_SIZE"],
    step_variables: &[],
    symbols: &[("%j", Symbol::Job), ("%h", Symbol::Host)],
    pads_numbers: false,
    no_file: None,
    error_follows_output: false,
    broadcasts_input: false,
    colon_separates: true,
};

fn tasks(step: &Step) -> Option<u32> {
    let sets = step.count(Count::Sets).or(step.count(Count::SetsPerHost));
    let per_set = step.count(Count::TasksPerSet);
    let by_sets = match (sets, per_set) {
        (None, None) => None,
        (sets, per_set) => Some(sets.unwrap_or(1).saturating_mul(per_set.unwrap_or(1))),
    };
    step.count(Count::Tasks).or(by_sets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::parsed;

    #[test]
    fn tasks_are_resource_sets_times_tasks_per_set() {
        for (line, expected) in [
            ("-n 1 -a 16 -c 16 -r 1 ./btio", Some(16)),
            ("-n6 -a1 -g1 -c7 -r6 -l gpu-cpu -d packed -b packed:7 ./a", Some(6)),
            ("-n 4 ./a", Some(4)),
            ("-r 2 -a 3 -c ALL_CPUS -g ALL_GPUS ./a", Some(6)),
            ("-n ALL_HOSTS -a 4 ./a", Some(4)),
            ("--nrs=2 --tasks_per_rs=3 --smpiargs=-gpu -X 1 ./a", Some(6)),
            ("-p 5 --rs_per_socket=1 -c 20 -r 2 ./a", Some(5)),
            ("--smpiargs -disable_gpu_hooks ./a -n 3", None),
        ] {
            let step = parsed(&JSRUN, line);
            assert_eq!(tasks(&step), expected, "{line}");
            assert_eq!(step.warnings, [""; 0], "{line}");
        }
    }

    #[test]
    fn unsupported_jsrun_options_are_refused() {
        for line in ["--erf_input f ./a", "-U 1 ./a", "-f app", "-n 1 ./a : -n 2 ./b"] {
            let words: Vec<_> = line.split(' ').map(Into::into).collect();
            let error = JSRUN.parse(&words).expect_err(line).to_string();
            assert!(error.contains("not supported"), "{line}: {error}");
        }
    }
}
