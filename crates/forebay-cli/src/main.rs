//! The command `forebay`. Under the name of a launcher it stands in for that launcher.

mod arguments;
mod compare;
mod emulation;
mod launchers;
mod lfs;
mod messages;
mod progress;
mod run;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Verb};
use launchers::{mpiexec, rank, srun};

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    let name = words.first().map(Path::new).and_then(Path::file_name);
    let rest = words.get(1..).unwrap_or_default();
    let status = match name.and_then(|name| name.to_str()) {
        Some("mpiexec" | "mpirun") => mpiexec::mpiexec(rest),
        Some("srun") => srun::srun(rest),
        Some("lfs") => lfs::main(rest),
        _ => verb(),
    };
    // Beyond 255 the shell sees the lowest byte only; a failure must not become a success.
    ExitCode::from(u8::try_from(status).unwrap_or(u8::MAX))
}

fn verb() -> i32 {
    match Arguments::parse().verb {
        Verb::Run(arguments) => run::run(&arguments),
        Verb::Compare(arguments) => compare::compare(&arguments),
        Verb::Man { directory } => arguments::write_manual(&directory),
        Verb::Rank { program } => rank::become_program(&program),
    }
}
