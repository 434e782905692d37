//! The `srun` stand-in, with the options that matter on one machine (srun(1) of Slurm 22.05).
//! Never places or limits tasks: those options are accepted without effect.

use forebay_scheduler::TASKS_VARIABLE;

use crate::options::Step;
use crate::options::{Count, Dialect, Meaning as M, Symbol};

pub static SRUN: Dialect = Dialect {
    name: "srun",
    usage: "\
usage: srun [OPTION...] PROGRAM [ARGUMENT...]
Stands in for Slurm's srun in a job that runs without a scheduler. Options that matter here:
  -n, --ntasks N         number of tasks [default: $SLURM_NTASKS]
  -N, --nodes N, --ntasks-per-node N
                         their product is the default where the script asks for no number of tasks
  -c, --cpus-per-task N  sets SLURM_CPUS_PER_TASK
  -D, --chdir DIR        -o, --output FILE   -e, --error FILE   -i, --input FILE
  --export ALL,NAME=VALUE                    -l, --label
Placement and limits have no effect on one machine; unknown options are named.
example: srun -n 4 ./a.out",
    options: &[
        ("-n --ntasks", M::Count(Count::Tasks)),
        ("-N --nodes", M::Count(Count::Nodes)),
        ("--ntasks-per-node", M::Count(Count::TasksPerNode)),
        ("--tasks-per-node", M::Count(Count::TasksPerNode)),
        ("-c --cpus-per-task", M::Count(Count::CpusPerTask)),
        ("-D --chdir", M::Directory),
        ("-o --output", M::Output),
        ("-e --error", M::Error),
        ("-i --input", M::Input),
        ("--export", M::Exports),
        ("-l --label", M::Label),
        ("-V --version", M::Version),
        ("-h --help --usage", M::Help),
        // Options for placement, limits and accounting.
        (
            "-A -B -C -F -G -J -L -M -P -S -T -W -b -d -m -p -q -r -t -w -x --account --accel-bind \
             --acctg-freq --bb --bbf --bcast-exclude --begin --checkpoint --checkpoint-dir \
             --cluster-constraint --clusters --comment --constraint --container --container-id \
             --core-spec --cores-per-socket --cpu-bind --cpu-freq --cpu_bind \
             --cpus-per-gpu --deadline --delay-boot --dependency --distribution --exclude \
             --extra --extra-node-info --gid --gpu-bind --gpu-freq --gpus --gpus-per-node --gpus-per-socket \
             --gpus-per-task --gres --gres-flags --het-group --hint --job-name --jobid --licenses \
             --mail-type --mail-user --max-threads --mcs-label --mem --mem-bind --mem_bind \
             --mem-per-cpu --mem-per-gpu --mincpus --mpi --msg-timeout --network --nodefile \
             --nodelist --ntasks-per-core --ntasks-per-gpu --ntasks-per-socket --ntasks-per-tres \
             --open-mode --pack-group --partition --power --prefer --priority --profile --prolog \
             --epilog --qos --relative --reservation --restart-dir --segment --signal \
             --slurmd-debug --sockets-per-node --switches --task-epilog --task-prolog \
             --thread-spec --threads --threads-per-core --time --time-min --tmp --treewidth \
             --tres-bind --tres-per-job --tres-per-task --uid --wait --wckey",
            M::Value,
        ),
        ("-E -H -O -Q -X -Z -j -k -s -u -v", M::Flag),
        // Options without a value, or with a value only after `=`.
        (
            "-I -K --bcast --compress --contiguous --immediate --kill-on-bad-exit --nice \
             --disable-status --exact --exclusive --hold --interactive --join --no-allocate \
             --no-kill --no-shell --oom-kill-step --overcommit --overlap --oversubscribe \
             --preserve-env --propagate --pty --quiet --quit-on-interrupt --reboot --resv-ports \
             --send-libs --share --spread-job --stepmgr --unbuffered \
             --use-min-nodes --verbose --whole --x11",
            M::AttachedValue,
        ),
        ("--multi-prog --test-only", M::Refused),
    ],
    tasks,
    task_variables: ["SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS SLURM_NPROCS"],
    step_variables: &[("SLURM_STEP_ID", Symbol::Step), ("SLURM_STEPID", Symbol::Step)],
    symbols: &[
        ("%j", Symbol::Job),
        ("%J", Symbol::JobAndStep),
        ("%s", Symbol::Step),
        ("%A", Symbol::ArrayJob),
        ("%a", Symbol::ArrayTask),
        ("%u", Symbol::User),
        ("%x", Symbol::JobName),
        ("%N", Symbol::Host),
        ("%n", Symbol::Node),
    ],
    pads_numbers: true,
    no_file: Some("none"),
    error_follows_output: true,
    broadcasts_input: true,
    colon_separates: true,
};

fn tasks(step: &Step) -> Option<u32> {
    let number = |name| std::env::var(name).ok()?.parse().ok();
    Some(tasks_of(step, number("SLURM_NTASKS"), number(TASKS_VARIABLE)))
}

/// A number of tasks of the job precedes all options but --ntasks (srun(1), INPUT ENVIRONMENT VARIABLES). Otherwise the
/// job has one task for each of its nodes.
fn tasks_of(step: &Step, of_job: Option<u32>, nodes_of_job: Option<u32>) -> u32 {
    let nodes = step.count(Count::Nodes).or(nodes_of_job).unwrap_or(1);
    let per_node = step.count(Count::TasksPerNode).unwrap_or(1);
    let given = step.count(Count::Tasks).or(of_job);
    given.unwrap_or_else(|| nodes.saturating_mul(per_node))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::parsed;

    #[test]
    fn srun_options_are_taken_and_the_program_keeps_its_own() {
        let step = parsed(
            &SRUN,
            "-n 1024 --hint=nomultithread -c4 -K1 -lu --cpu_bind=cores ./btio -n deck",
        );
        assert_eq!(tasks_of(&step, Some(2), None), 1024);
        assert_eq!(step.count(Count::CpusPerTask), Some(4));
        assert!(step.label);
        assert_eq!(step.program, ["./btio", "-n", "deck"]);
        assert_eq!(step.warnings, [""; 0]);
        let step = parsed(
            &SRUN,
            "--jobid 7 --pack-group 0 --signal USR1@60 --begin now -b now --uid 1 --gid 1 --tres-bind a:b \
             --clusters c --container d --prefer e --pty --bcast --compress --propagate --x11 ./a --pty",
        );
        assert_eq!((step.program.len(), step.warnings), (2, vec![]));
        let line = "--nodes=2-4 --ntasks-per-node 3 --export=ALL,A=b -D /tmp -o out.%j x";
        let step = parsed(&SRUN, line);
        assert_eq!(tasks_of(&step, None, Some(4)), 6);
        assert_eq!(step.exports, [("A".to_owned(), "b".to_owned())]);
        assert_eq!(step.output, Some("out.%j".into()));
    }

    #[test]
    fn number_of_tasks_follows_the_rules_of_srun() {
        for (line, of_job, nodes, expected) in [
            ("x", None, Some(4), 4),
            ("x", Some(3), Some(4), 3),
            ("-N 1 x", None, Some(4), 1),
            ("-N 2 x", None, None, 2),
            ("-N 1 x", Some(4), Some(4), 4),
            ("--ntasks-per-node=2 x", None, Some(2), 4),
            ("--ntasks-per-node=2 x", Some(4), Some(2), 4),
            ("-N 1 --ntasks-per-node=1 x", Some(2), Some(2), 2),
            ("-n 3 --ntasks-per-node=2 x", Some(4), Some(2), 3),
        ] {
            assert_eq!(tasks_of(&parsed(&SRUN, line), of_job, nodes), expected, "{line}");
        }
    }

    #[test]
    fn unknown_options_are_named() {
        let step = parsed(&SRUN, "--what=3 --ever -Y -n 2 ./x");
        let named: Vec<_> = step.warnings.iter().map(|w| w.split(' ').nth(2)).collect();
        assert_eq!(named, [Some("--what"), Some("--ever"), Some("-Y")]);
        assert_eq!((tasks_of(&step, None, None), step.program), (2, vec!["./x".into()]));
    }

    #[test]
    fn bad_number_and_second_program_are_errors() {
        for (line, expected) in [("-n four x", "four"), ("-n 1 a : -n 2 b", "several programs")] {
            let words: Vec<_> = line.split(' ').map(Into::into).collect();
            let error = SRUN.parse(&words).expect_err(line).to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
