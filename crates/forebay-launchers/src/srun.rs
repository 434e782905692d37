//! The `srun` stand-in, with the options that matter on one machine (srun(1) of Slurm 22.05).
//! Never places or limits tasks: those options are accepted without effect.

use crate::options::Step;
use crate::options::{Count, Dialect, Meaning as M, Symbol};

pub static SRUN: Dialect = Dialect {
    name: "srun",
    usage: "\
usage: srun [OPTION...] PROGRAM [ARGUMENT...]
Stands in for Slurm's srun in a job that runs without a scheduler. Options that matter here:
  -n, --ntasks N         number of tasks [default: that of the job]
  -N, --nodes N, --ntasks-per-node N
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
            "-A -B -C -F -G -J -L -M -P -S -T -W -d -m -p -q -r -t -w -x --account --accel-bind \
             --acctg-freq --bb --bbf --bcast --cluster-constraint --comment --compress \
             --constraint --core-spec --cores-per-socket --cpu-bind --cpu-freq --cpu_bind \
             --cpus-per-gpu --deadline --delay-boot --dependency --distribution --exclude \
             --extra-node-info --gpu-bind --gpu-freq --gpus --gpus-per-node --gpus-per-socket \
             --gpus-per-task --gres --gres-flags --het-group --hint --job-name --licenses \
             --mail-type --mail-user --max-threads --mcs-label --mem --mem-bind --mem_bind \
             --mem-per-cpu --mem-per-gpu --mincpus --mpi --msg-timeout --network --nodefile \
             --nodelist --ntasks-per-core --ntasks-per-gpu --ntasks-per-socket --open-mode \
             --partition --power --priority --profile --prolog --epilog --propagate --qos \
             --relative --reservation --slurmd-debug --sockets-per-node --switches --task-epilog \
             --task-prolog --thread-spec --threads --threads-per-core --time --time-min --tmp \
             --wait --wckey",
            M::Value,
        ),
        ("-E -H -O -Q -X -Z -j -k -s -u -v", M::Flag),
        // Options without a value, or with a value only after `=`.
        (
            "-I -K --contiguous --immediate --kill-on-bad-exit --nice --disable-status --exact \
             --exclusive --hold --interactive --join --no-allocate --no-kill --no-shell \
             --overcommit --overlap --oversubscribe --preserve-env --quiet --quit-on-interrupt \
             --reboot --share --spread-job --unbuffered --use-min-nodes --verbose --whole",
            M::AttachedValue,
        ),
        ("--multi-prog", M::Refused),
    ],
    tasks,
    task_variables: ["SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS SLURM_NPROCS"],
    step_variables: &[],
    symbols: &[
        ("%j", Symbol::Job),
        ("%J", Symbol::Job),
        ("%N", Symbol::Host),
        ("%n", Symbol::Node),
    ],
    no_file: Some("none"),
    error_follows_output: true,
    colon_separates: false,
};

/// From the step's options, else from the job's (srun(1), option --ntasks).
fn tasks(step: &Step) -> Option<u32> {
    let nodes = step.count(Count::Nodes).unwrap_or(1);
    let per_node = step.count(Count::TasksPerNode);
    let all_nodes = per_node.map(|n| n.saturating_mul(nodes));
    step.count(Count::Tasks).or(all_nodes)
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
        assert_eq!(tasks(&step), Some(1024));
        assert_eq!(step.count(Count::CpusPerTask), Some(4));
        assert!(step.label);
        assert_eq!(step.program, ["./btio", "-n", "deck"]);
        assert_eq!(step.warnings, [""; 0]);
        let line = "--nodes=2-4 --ntasks-per-node 3 --export=ALL,A=b -D /tmp -o out.%j x";
        let step = parsed(&SRUN, line);
        assert_eq!(tasks(&step), Some(6));
        assert_eq!(step.exports, [("A".to_owned(), "b".to_owned())]);
        assert_eq!(step.output, Some("out.%j".into()));
        assert_eq!(tasks(&parsed(&SRUN, "-N 2 x")), None);
    }

    #[test]
    fn unknown_options_are_named() {
        let step = parsed(&SRUN, "--what=3 --ever -Y -n 2 ./x");
        let named: Vec<_> = step.warnings.iter().map(|w| w.split(' ').nth(2)).collect();
        assert_eq!(named, [Some("--what"), Some("--ever"), Some("-Y")]);
        assert_eq!((tasks(&step), step.program), (Some(2), vec!["./x".into()]));
    }

    #[test]
    fn bad_number_is_an_error() {
        let words = ["-n".into(), "four".into(), "x".into()];
        let error = SRUN.parse(&words).expect_err("no number").to_string();
        assert!(error.contains("four"), "{error}");
    }
}
