//! Starting ranks on this machine: the `mpiexec` stand-in, and what it shares with `srun`'s.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::Command;

use forebay_control::shim_directory;
use forebay_host::machine;
use forebay_host::process::{command, replace_by};

use crate::messages::{fail, warn};

/// Exit code when no rank was started, as a shell gives it for a command it cannot run.
const CANNOT_LAUNCH: i32 = 127;

/// How many values follow an option, and what becomes of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Handed on with so many values.
    Passed(usize),
    /// It places ranks on nodes; dropped with so many values, since there is one node.
    Dropped(usize),
}

/// Options of Open MPI's, MPICH's and Intel's mpiexec, dashes left off.
const OPTIONS: &[(&[&str], Fate)] = &[
    (&["n", "np", "c"], Fate::Passed(1)),
    (
        &[
            "x",
            "wdir",
            "wd",
            "path",
            "env",
            "output-filename",
            "timeout",
            "stdin",
        ],
        Fate::Passed(1),
    ),
    (&["mca", "genv", "gmca", "prtemca"], Fate::Passed(2)),
    (
        &[
            "v",
            "q",
            "verbose",
            "quiet",
            "tag-output",
            "timestamp-output",
            "l",
            "label",
        ],
        Fate::Passed(0),
    ),
    (
        &[
            "genvall",
            "oversubscribe",
            "allow-run-as-root",
            "merge-stderr-to-stdout",
        ],
        Fate::Passed(0),
    ),
    (
        &[
            "host",
            "hosts",
            "H",
            "hostfile",
            "machinefile",
            "f",
            "machine",
            "rf",
            "rankfile",
        ],
        Fate::Dropped(1),
    ),
    (
        &[
            "ppn",
            "perhost",
            "npernode",
            "N",
            "npersocket",
            "map-by",
            "bind-to",
            "rank-by",
        ],
        Fate::Dropped(1),
    ),
    (
        &[
            "launcher",
            "rmk",
            "bootstrap",
            "iface",
            "cpus-per-proc",
            "cpus-per-rank",
        ],
        Fate::Dropped(1),
    ),
    (
        &[
            "bynode",
            "byslot",
            "nolocal",
            "pernode",
            "bind-to-core",
            "bind-to-none",
            "use-hwthread-cpus",
        ],
        Fate::Dropped(0),
    ),
];

/// The MPI whose launcher stands behind us.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flavour {
    OpenMpi,
    Hydra,
    Unknown,
}

/// `mpiexec` and `mpirun` of a job that runs without a scheduler.
pub fn mpiexec(words: &[OsString]) -> i32 {
    let (options, program) = split(words);
    launch(&options, program, |_| {})
}

/// Options to hand on, and the program with all behind it.
fn split(words: &[OsString]) -> (Vec<OsString>, &[OsString]) {
    let mut kept = Vec::new();
    let mut at = 0;
    while let Some(text) = words.get(at).and_then(|word| word.to_str()) {
        let Some(name) = text.strip_prefix('-') else {
            break;
        };
        let name = name.strip_prefix('-').unwrap_or(name);
        let (name, attached) = match name.split_once('=') {
            Some((name, _)) => (name, true),
            None => (name, false),
        };
        let known = OPTIONS.iter().find(|(names, _)| names.contains(&name));
        let fate = known.map_or(Fate::Passed(0), |(_, fate)| *fate);
        if known.is_none() {
            warn(&format!(
                "mpiexec: unknown option {text} is handed on as it is"
            ));
        }
        let (Fate::Passed(values) | Fate::Dropped(values)) = fate;
        let values = if attached { 0 } else { values };
        let end = (at + 1 + values).min(words.len());
        if matches!(fate, Fate::Passed(_)) {
            kept.extend_from_slice(&words[at..end]);
        }
        at = end;
    }
    (kept, words.get(at..).unwrap_or_default())
}

/// Becomes the real mpiexec. `prepare` may set directory, environment and output.
pub fn launch(
    options: &[OsString],
    program: &[OsString],
    prepare: impl FnOnce(&mut Command),
) -> i32 {
    if program.is_empty() {
        return fail(
            "no program to start",
            Some("write for example: mpiexec -n 4 ./a.out"),
            2,
        );
    }
    let Some(real) = real_launcher() else {
        let hint = "install an MPI, for example: apt-get install openmpi-bin";
        return fail(
            "no mpiexec in PATH to start ranks with",
            Some(hint),
            CANNOT_LAUNCH,
        );
    };
    let mut process = command(&real);
    let flavour = flavour(&real);
    adapt(&mut process, flavour);
    process.args(options.iter().map(|option| in_words_of(flavour, option)));
    process.args(program);
    prepare(&mut process);
    let error = replace_by(process);
    fail(&error.to_string(), None, CANNOT_LAUNCH)
}

fn real_launcher() -> Option<PathBuf> {
    let skipped: Vec<_> = shim_directory().into_iter().collect();
    let names = ["mpiexec", "mpirun"];
    names
        .iter()
        .find_map(|name| machine::find_program(name, &skipped))
}

fn flavour(launcher: &std::path::Path) -> Flavour {
    let Ok(said) = command(launcher).arg("--version").output() else {
        return Flavour::Unknown;
    };
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    if said.contains("Open MPI") || said.contains("OpenRTE") {
        Flavour::OpenMpi
    } else if said.contains("HYDRA") || said.contains("Intel(R) MPI") {
        Flavour::Hydra
    } else {
        Flavour::Unknown
    }
}

/// Makes the launcher start all ranks here: as many as asked for, whatever the number of
/// processors, and although the environment looks like a Slurm job's.
fn adapt(process: &mut Command, flavour: Flavour) {
    match flavour {
        Flavour::OpenMpi => {
            process.arg("--oversubscribe");
            // 4.x and 5.x have different names for the parts that would look for Slurm.
            for prefix in ["OMPI_MCA_", "PRTE_MCA_"] {
                for part in ["plm", "ras"] {
                    process.env(format!("{prefix}{part}"), "^slurm");
                }
            }
            if machine::user_id() == 0 {
                for name in ["OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT"] {
                    process.env(name, "1").env(format!("{name}_CONFIRM"), "1");
                }
            }
        }
        Flavour::Hydra => {
            process.args(["-launcher", "fork"]).env("HYDRA_RMK", "user");
        }
        Flavour::Unknown => {}
    }
}

/// An option as this launcher spells it.
fn in_words_of(flavour: Flavour, option: &OsStr) -> &OsStr {
    match (flavour, option.to_str()) {
        (Flavour::OpenMpi, Some("-l" | "--label")) => OsStr::new("--tag-output"),
        (Flavour::Hydra, Some("--tag-output" | "-tag-output")) => OsStr::new("-l"),
        _ => option,
    }
}

/// First of these variables that is set.
pub fn first_variable(names: &[&str]) -> Option<OsString> {
    names.iter().map(OsStr::new).find_map(std::env::var_os)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn splits_into(line: &str, options: &str, program: &str) {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let (kept, rest) = split(&words);
        let text = |words: &[OsString]| words.join(OsStr::new(" ")).into_string().expect("utf-8");
        assert_eq!(text(&kept), options, "{line}");
        assert_eq!(text(rest), program, "{line}");
    }

    #[test]
    fn placement_is_dropped_and_the_rest_is_handed_on() {
        splits_into("-n 4 ./a.out -n 5", "-n 4", "./a.out -n 5");
        splits_into(
            "-np 4 --map-by ppr:2:node -x A=b ./a.out",
            "-np 4 -x A=b",
            "./a.out",
        );
        splits_into(
            "--hostfile=h -ppn 32 --np=2 a : -n 1 b",
            "--np=2",
            "a : -n 1 b",
        );
        splits_into(
            "-genv A b -mca io romio321 a",
            "-genv A b -mca io romio321",
            "a",
        );
        splits_into("--report-uri a", "--report-uri", "a");
        splits_into("-n", "-n", "");
    }
}
