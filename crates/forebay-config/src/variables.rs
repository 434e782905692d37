//! The table of environment variables: the reference page is made from it, and a test compares it with the sources.

use crate::settings::SETTINGS;
use crate::sources::SITE_VARIABLE;

/// Who sets a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SetBy {
    /// The user.
    User,
    /// Forebay, for the programs of a job.
    Job,
    /// Parts of Forebay, for each other.
    Forebay,
}

/// One environment variable, or several that belong together.
pub(crate) struct Variable {
    pub(crate) names: &'static [&'static str],
    pub(crate) set_by: SetBy,
    pub(crate) meaning: &'static str,
}

const fn row(set_by: SetBy, names: &'static [&'static str], meaning: &'static str) -> Variable {
    Variable { names, set_by, meaning }
}

/// The variables that are no settings.
const OTHERS: &[Variable] = &[
    row(
        SetBy::User,
        &[SITE_VARIABLE],
        "another site file in place of `/etc/forebay.toml`, for tests. You or root must own it",
    ),
    row(
        SetBy::User,
        &["FOREBAY_SITE"],
        "another file in place of `/etc/forebay/site.toml`, for `dw_wlm_cli`, `dwstat`, `forebay-noded` and \
         `forebay control` ([Slurm's burst buffers](site-slurm.md))",
    ),
    row(
        SetBy::User,
        &["FOREBAY_MPI_STATS"],
        "a file: MPI programs write statistics of their I/O there at their end, as JSON ([MPI library](mpi.md))",
    ),
    row(
        SetBy::User,
        &["MPICH_MPIIO_STATS"],
        "MPI programs print statistics of their I/O, as with Cray's MPI",
    ),
    row(
        SetBy::User,
        &["FOREBAY_MPI_TRACE"],
        "a directory: MPI programs write a trace of each I/O call there ([traces](trace.md))",
    ),
    row(
        SetBy::User,
        &["FOREBAY_MPI_TRACE_BYTES_MAX"],
        "the largest size of the trace of one rank, in bytes",
    ),
    row(
        SetBy::User,
        &["MPICH_MPIIO_HINTS"],
        "MPI-IO hints per file, for Open MPI and MPICH as for Cray's MPI ([MPI library](mpi.md))",
    ),
    row(
        SetBy::User,
        &["FOREBAY_MPI_LAZY_IO"],
        "1: files that several ranks open by MPI-IO are lazy where the mount offers it; 0: strict. `forebay run` sets 1 \
         on several nodes ([MPI library](mpi.md#lazy-io))",
    ),
    row(
        SetBy::Job,
        &["DW_JOB_STRIPED"],
        "the path of the striped namespace, with a slash at its end",
    ),
    row(SetBy::Job, &["DW_JOB_PRIVATE"], "the path of the private namespace"),
    row(SetBy::Job, &["DW_PERSISTENT_STRIPED_NAME"], "the path of the persistent allocation NAME"),
    row(SetBy::Job, &["FOREBAY_JOB_ID"], "the job's id"),
    row(SetBy::Job, &["FOREBAY_NTASKS"], "the number of tasks that the script requests"),
    row(
        SetBy::Job,
        &["FOREBAY_NO_BURST_BUFFER"],
        "1 with `--no-burst-buffer`: the namespaces are directories on the file system",
    ),
    row(
        SetBy::Job,
        &["FOREBAY_FILE", "FOREBAY_VERSION"],
        "for a command of `--on-close`: the file, and how often it was closed",
    ),
    row(SetBy::Forebay, &["FOREBAY_RUN"], "marks the processes of a job"),
    row(SetBy::Forebay, &["FOREBAY_PROFILE"], "the directory into which programs record their I/O"),
    row(
        SetBy::Forebay,
        &["FOREBAY_REQUESTS"],
        "the socket for requests of `libdatawarp` and `forebay.stage`",
    ),
    row(SetBy::Forebay, &["FOREBAY_PFS_STATE"], "the state of the emulated file system"),
    row(SetBy::Forebay, &["FOREBAY_SHIMS"], "the directory with the launchers"),
    row(SetBy::Forebay, &["FOREBAY_BASH_ENV"], "the user's own `BASH_ENV`"),
    row(
        SetBy::Forebay,
        &["FOREBAY_TASK_INPUT", "FOREBAY_TASK_OUTPUT", "FOREBAY_TASK_ERROR"],
        "files for the standard streams of one rank",
    ),
    row(
        SetBy::Forebay,
        &["FOREBAY_NAMES_OF_RANK", "FOREBAY_NAMES_OF_SIZE", "FOREBAY_NAMES_OF_LOCAL_RANK"],
        "the names under which a rank finds its numbers",
    ),
    row(
        SetBy::Forebay,
        &["FOREBAY_MPI_EXCHANGED"],
        "the process that has exchanged the preloaded library for that of its own MPI",
    ),
    row(
        SetBy::Forebay,
        &["FOREBAY_PROGRAM", "FOREBAY_LIBRARY", "FOREBAY_MACHINES"],
        "for the Python side: the program, the libraries, the machine files",
    ),
    row(
        SetBy::User,
        &["FOREBAY_AGENT_LOST_S"],
        "the time in seconds after which the agents of [several nodes](../how-to/several-nodes.md) end the file system if \
         they lost `forebay run`; default 1800",
    ),
    row(
        SetBy::User,
        &["FOREBAY_ENGINE_HANG_S"],
        "the time in seconds after which operations fail on the file system of several nodes if a mount does not answer, \
         of `forebay run` and `forebay-noded`; default 60",
    ),
    row(
        SetBy::Forebay,
        &["FOREBAY_NODE", "FOREBAY_STEP", "FOREBAY_SERVES_JOB"],
        "mark the processes of an engine: the job's directory on the node, the step, and that they outlive the job's programs",
    ),
    row(
        SetBy::Forebay,
        &["FOREBAY_UNRECORDED_MS"],
        "for tests: the age in milliseconds from which `clean` removes directories without a record",
    ),
];

/// The rows of those who set the variables: names and meaning.
pub(crate) fn rows(set_by: SetBy) -> Vec<(Vec<String>, String)> {
    let of_setting = |setting: &crate::Setting| {
        let meaning = format!("the setting [{}](configuration.md)", setting.key);
        (vec![setting.variable()], meaning)
    };
    let settings = SETTINGS.iter().filter(|_| set_by == SetBy::User).map(of_setting);
    let others = OTHERS.iter().filter(|one| one.set_by == set_by).map(|one| {
        (one.names.iter().map(|name| (*name).to_owned()).collect(), one.meaning.to_owned())
    });
    settings.chain(others).collect()
}
