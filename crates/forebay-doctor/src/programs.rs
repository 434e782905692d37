//! Checks programs that a job needs, by their own output.
//! Runs a program for its version or settings only. Never starts a rank, a job or a daemon.

use forebay_ceph::{Programs, TESTED_VERSION};
use forebay_host::process::command;
use forebay_host::system::find_other_program;
use forebay_profile::MpiFamily;
use forebay_scheduler::SHIMS_VARIABLE;

use super::diagnosis::{Diagnosis, run_helper, run_probe};
use forebay_terminal::preload_library;

/// The relevant settings of `scontrol show config`.
const SLURM_SETTINGS: [&str; 5] =
    ["SLURM_VERSION", "BurstBufferType", "SelectType", "ProctrackType", "TaskPlugin"];

const LOAD_MPI: &str =
    "load the MPI module, or install one: apt-get install openmpi-bin libopenmpi-dev";

pub fn mpi() -> Diagnosis {
    let names = ["mpiexec", "mpirun"];
    let Some(path) = names.into_iter().find_map(find_other_program) else {
        return Diagnosis::missing(
            "no mpiexec and no mpirun in PATH",
            "mpiexec, mpirun and srun in a script fail, unless Slurm starts the ranks",
            LOAD_MPI,
        );
    };
    let mut launcher = command(&path);
    launcher.arg("--version");
    let said = match run_probe(launcher) {
        Ok(answer) => answer.output,
        Err(error) => {
            let consequence = "ranks may hang as it does, or not start";
            let found = format!("{}: {error}", path.display());
            return Diagnosis::warn(found, consequence, LOAD_MPI);
        }
    };
    let (flavour, version) = (MpiFamily::of(&said), version(&said).unwrap_or_default());
    let name = match flavour {
        MpiFamily::OpenMpi => "Open MPI",
        MpiFamily::Hydra if said.contains("Intel(R) MPI") => "Intel MPI",
        MpiFamily::Hydra => "MPICH",
        MpiFamily::Unknown => "an unknown MPI",
    };
    let found = format!("{name} {version} ({})", path.display());
    if flavour == MpiFamily::Unknown {
        let consequence =
            "its options are handed on as they are: ranks may be placed as on a cluster";
        return Diagnosis::warn(found, consequence, "use Open MPI, MPICH or Intel MPI");
    }
    Diagnosis::ok(found, "starts the ranks of mpiexec, mpirun and srun in a script")
}

pub fn mpi_compiler() -> Diagnosis {
    match find_other_program("mpicc") {
        Some(path) => match run_helper(&path, "--version") {
            Ok(found) => Diagnosis::ok(found, "builds Forebay's kernels"),
            Err(found) => Diagnosis::warn(found, "Forebay's kernels cannot be built", LOAD_MPI),
        },
        None => Diagnosis::missing(
            "no mpicc in PATH",
            "Forebay's kernels cannot be built; programs that exist run all the same",
            LOAD_MPI,
        ),
    }
}

/// The first word of the form 4.1.4.
fn version(said: &str) -> Option<&str> {
    said.split_whitespace().map(|word| word.trim_end_matches(',')).find(|word| {
        let mut parts = word.split('.');
        let numeric = parts.next().is_some_and(|part| part.parse::<u32>().is_ok());
        numeric && parts.next().is_some_and(|part| part.starts_with(|c: char| c.is_ascii_digit()))
    })
}

pub fn mpi_io() -> Diagnosis {
    let romio = "it takes MPI-IO hints such as cb_nodes, striping_unit, romio_cb_write";
    let Some(info) = find_other_program("ompi_info") else {
        if find_other_program("mpichversion").is_some() {
            return Diagnosis::ok("ROMIO, as part of MPICH", romio);
        }
        let found = "neither ompi_info nor mpichversion in PATH";
        let consequence = "it is not known which MPI-IO hints have an effect";
        return Diagnosis::missing(found, consequence, LOAD_MPI);
    };
    let mut info = command(info);
    info.arg("--parsable");
    let consequence = "each takes hints of its own; OMPI_MCA_io=NAME chooses";
    match run_probe(info) {
        Ok(answer) if !components(&answer.output).is_empty() => {
            let mut found = format!("Open MPI's {}", components(&answer.output).join(", "));
            if let Ok(name) = std::env::var("OMPI_MCA_io") {
                found.push_str(&format!("; OMPI_MCA_io={name}"));
            }
            Diagnosis::ok(found, consequence)
        }
        Ok(_) => Diagnosis::warn(
            "ompi_info names no component for MPI-IO",
            "applications cannot use MPI-IO",
            "use an Open MPI that was built with --enable-mpi-io",
        ),
        Err(error) => {
            let remedy = "try again, or see why ompi_info --parsable takes so long";
            Diagnosis::warn(format!("ompi_info: {error}"), consequence, remedy)
        }
    }
}

/// The components in `ompi_info --parsable`, from lines such as `mca:io:ompio:version:...`.
fn components(said: &str) -> Vec<&str> {
    let names = said.lines().filter_map(|line| line.strip_prefix("mca:io:")?.split(':').next());
    let mut names: Vec<_> = names.filter(|name| *name != "base").collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The id of a real Slurm job. Without Slurm, `forebay run` sets the same variable.
pub fn slurm_job() -> Option<String> {
    let by_forebay = std::env::var_os(SHIMS_VARIABLE).is_some();
    std::env::var("SLURM_JOB_ID").ok().filter(|_| !by_forebay)
}

pub fn slurm() -> Diagnosis {
    let job = slurm_job();
    let in_job = job.as_ref().map_or(String::new(), |id| format!("job {id}; "));
    let Some(path) = find_other_program("scontrol") else {
        return match (job, find_other_program("sinfo")) {
            (Some(id), _) => Diagnosis::warn(
                format!("job {id}, but no scontrol in PATH"),
                "srun in a script is Slurm's own, if it is in PATH",
                "put Slurm's commands into PATH: module load slurm",
            ),
            (None, Some(sinfo)) => Diagnosis::warn(
                format!("{}, but no scontrol in PATH", sinfo.display()),
                "srun in a script starts local ranks",
                "put all of Slurm's commands into PATH: module load slurm",
            ),
            (None, None) => Diagnosis::ok("none", "srun in a script starts local ranks"),
        };
    };
    let mut control = command(path);
    control.args(["show", "config"]);
    let answer = match run_probe(control) {
        Ok(answer) if answer.success => answer.output,
        said => {
            let why = said.err().unwrap_or_else(|| "it failed".to_owned());
            return Diagnosis::warn(
                format!("{in_job}scontrol show config: {why}"),
                "Slurm starts no job and no rank while its controller is out of reach",
                "ask for the controller: scontrol ping",
            );
        }
    };
    let settings = SLURM_SETTINGS.iter().filter_map(|name| {
        let value = slurm_setting(&answer, name)?;
        Some(format!("{name}={value}"))
    });
    let found = format!("{in_job}{}", settings.collect::<Vec<_>>().join(" "));
    let burst_buffer = slurm_setting(&answer, "BurstBufferType").unwrap_or_default();
    Diagnosis::ok(
        found,
        match burst_buffer {
            "" | "(null)" | "none" | "burst_buffer/none" => {
                "Slurm takes #DW lines for comments; forebay run, inside a job, obeys them"
            }
            _ => {
                "Slurm itself obeys #DW or #BB lines at sbatch; in forebay run they are obeyed once more"
            }
        },
    )
}

/// A setting of `scontrol show config`, from lines such as `SelectType              = select/cons_tres`.
fn slurm_setting<'a>(said: &'a str, name: &str) -> Option<&'a str> {
    let mut values = said.lines().filter_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == name).then_some(value.trim())
    });
    values.next_back()
}

pub fn engine() -> Diagnosis {
    let consequence = "gives jobs on several nodes one namespace";
    match Programs::find(None) {
        Ok(found) if found.version.starts_with(TESTED_VERSION) => {
            Diagnosis::ok(format!("Ceph {}", found.version), consequence)
        }
        Ok(found) => Diagnosis::warn(
            format!("Ceph {}", found.version),
            format!("{consequence}, but is tested with {TESTED_VERSION} alone"),
            "try it: forebay doctor --engine ceph --nodes n1,n2",
        ),
        Err(missing) => Diagnosis::missing(
            missing.to_string(),
            "jobs on several nodes need it, or a profile; jobs on one node do not",
            &missing.hint(),
        ),
    }
}

pub fn emulation() -> Diagnosis {
    match preload_library() {
        Ok(path) => {
            let consequence = "--pfs-model can emulate a parallel file system";
            Diagnosis::ok(path.display().to_string(), consequence)
        }
        Err(error) => {
            let consequence = "--pfs-model does not work; jobs run all the same";
            Diagnosis::missing(error.message, consequence, &error.hint.unwrap_or_default())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_launchers_are_found() {
        for (said, found) in [
            ("mpiexec (OpenRTE) 4.1.4\n\nReport bugs", Some("4.1.4")),
            ("mpiexec (Open MPI) 5.0.3rc1\n", Some("5.0.3rc1")),
            ("HYDRA build details:\n    Version:    4.0.2\n", Some("4.0.2")),
            ("Intel(R) MPI Library for Linux* OS, Version 2021.9, Build 2023", Some("2021.9")),
            ("something else", None),
        ] {
            assert_eq!(version(said), found, "{said}");
        }
    }

    #[test]
    fn components_of_mpi_io_are_named_once() {
        let said = "mca:io:romio321:version:\"mca:2.1.0\"\nmca:fs:ufs:version:1\n\
                    mca:io:ompio:version:1\nmca:io:ompio:version:2\n";
        assert_eq!(components(said), ["ompio", "romio321"]);
    }

    #[test]
    fn settings_of_slurm_are_found_by_their_whole_name() {
        let said = "SelectTypeParameters    = CR_CORE\nSelectType = select/cons_tres\nBurstBufferType = (null)\n";
        assert_eq!(slurm_setting(said, "SelectType"), Some("select/cons_tres"));
        assert_eq!(slurm_setting(said, "BurstBufferType"), Some("(null)"));
        assert_eq!(slurm_setting(said, "TaskPlugin"), None);
    }
}
