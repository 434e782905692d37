//! Checks the libraries that record a job's I/O and the program that shows the records.

use forebay_profile::usage;
use indicatif::HumanBytes;

use super::diagnosis::{Diagnosis, run_helper};
use forebay_terminal::{PYTHON_PROGRAM_REMEDY, observers, python_program};

const BUILD: &str = "run make build, or make install";

pub fn recording() -> Diagnosis {
    let observers = observers();
    let families = [("Open MPI", observers.openmpi), ("MPICH", observers.mpich)];
    let there = families.into_iter().filter(|(_, library)| library.is_some());
    let there: Vec<_> = there.map(|(name, _)| name).collect();
    if there.is_empty() {
        return Diagnosis::missing(
            "no libforebay_mpi.so in ../lib/forebay (seen from this program)",
            "jobs run, but what they do with their files is not recorded",
            BUILD,
        );
    }
    let there = there.join(" and ");
    let consequence = "forebay run and forebay profile record the I/O of a job's programs there";
    match usage() {
        Ok(usage) => {
            let (size, directory) = (HumanBytes(usage.bytes), usage.directory.display());
            let records = usage.records;
            let found = format!(
                "libforebay_mpi.so for {there}; {records} record(s), {size}, in {directory}"
            );
            Diagnosis::ok(found, consequence)
        }
        Err(error) => {
            let remedy = "set FOREBAY_STATE to a directory of yours";
            Diagnosis::warn(error.to_string(), "it is not known where records go", remedy)
        }
    }
}

pub fn reports() -> Diagnosis {
    let consequence =
        "jobs are recorded, but forebay report, why, tune and profile export do not work";
    let Some(path) = python_program() else {
        let found = "forebay-py is neither in the directory of forebay nor in PATH";
        return Diagnosis::missing(found, consequence, PYTHON_PROGRAM_REMEDY);
    };
    match run_helper(&path, "--help") {
        Ok(found) => {
            Diagnosis::ok(found, "forebay report, why and profile export show what was recorded")
        }
        Err(found) => Diagnosis::missing(
            found,
            consequence,
            "install again with a Python that all users can run: make install PREFIX=DIR",
        ),
    }
}
