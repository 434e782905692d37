//! The command `forebay`. If its name is that of a launcher or of a site's program, it acts as that program.
//! Never reads a configuration of users then.

mod arguments;
mod ceph;
mod clean;
mod compare;
mod config;
mod configuration;
mod conformance;
mod control;
mod drain;
mod effective_config;
mod emulation;
mod engine;
mod exit_codes;
mod gather;
mod job_id;
mod job_setup;
mod jobs;
mod machines;
mod mount;
mod on_close;
mod options;
mod parsers;
mod persistent;
mod pfs_directory;
mod preview;
mod profile;
mod profiles;
mod python;
mod request;
mod run;
mod schemas;
mod series;
mod site;
mod stage;
mod status;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use arguments::Verb;
use forebay_doctor::DoctorArguments;
use options::nodes::NodeArguments;
use profile::ProfileVerb;

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    let name = words.first().map(Path::new).and_then(Path::file_name);
    let rest = words.get(1..).unwrap_or_default();
    let name = name.and_then(|name| name.to_str());
    let stand_in =
        name.and_then(|name| forebay_launchers::stand_in(name).or_else(|| site::program(name)));
    let status = match stand_in {
        Some(stand_in) => stand_in(rest),
        None if rest.first().is_some_and(|word| word == site::WORK) => site::work(&rest[1..]),
        None if rest.first().is_some_and(|word| word == site::ENGINE) => site::engine(&rest[1..]),
        None => verb(words),
    };
    // The shell sees only the lowest byte; a failure above 255 must not become a success.
    ExitCode::from(u8::try_from(status).unwrap_or(u8::MAX))
}

/// Turns `forebay help VERB` into `forebay VERB --help`; Python verbs handle `--help` themselves.
fn rewrite_help(mut words: Vec<OsString>) -> Vec<OsString> {
    let at = match &words[..] {
        [_, help, verb, ..] if help == "help" && verb != "help" => 1,
        [_, verb, help, _, ..] if verb == "profile" && help == "help" => 2,
        _ => return words,
    };
    words.remove(at);
    words.push("--help".into());
    words
}

fn verb(words: Vec<OsString>) -> i32 {
    let arguments = match arguments::parse(rewrite_help(words)) {
        Ok(arguments) => arguments,
        Err(exit_code) => return exit_code,
    };
    match arguments.verb {
        Verb::Run(arguments) => run::run(&arguments),
        Verb::Compare(arguments) => compare::compare(&arguments),
        Verb::Profile(arguments) => match &arguments.verb {
            Some(ProfileVerb::Export { words }) => python::exec_python_verb("export", words),
            None => profile::profile(&arguments),
        },
        Verb::Tune { words } => python::exec_python_verb("tune", &words),
        Verb::Plan { words } => python::exec_python_verb("plan", &words),
        Verb::Report { words } => python::exec_python_verb("report", &words),
        Verb::Why { words } => python::exec_python_verb("why", &words),
        Verb::Bench { words } => python::exec_python_verb("bench", &words),
        Verb::Status(arguments) => status::status(&arguments),
        Verb::Jobs(arguments) => jobs::jobs(&arguments),
        Verb::Drain(arguments) => drain::drain(&arguments),
        Verb::Watch(arguments) => on_close::watch(&arguments),
        Verb::Clean(arguments) => clean::clean(&arguments),
        Verb::Control(arguments) => control::control(&arguments.verb),
        Verb::Persistent(arguments) => persistent::persistent(&arguments.verb),
        Verb::Stage(arguments) => stage::stage(&arguments),
        Verb::Engine(arguments) => engine::engine(&arguments.verb),
        Verb::Gather(arguments) => gather::gather(&arguments),
        Verb::Machines(arguments) => machines::machines(&arguments),
        Verb::Doctor { machine, nodes } => doctor(&machine, &nodes),
        Verb::Config(arguments) => config::config(&arguments),
        Verb::Reference { page } => config::print_page(page),
        Verb::Request { script } => request::print_request(&script),
        Verb::ProbeNamespace { huge } => forebay_doctor::probe_namespace(huge),
        Verb::Ceph { file } => ceph::ceph(&file),
        Verb::Mount(arguments) => mount::mount(&arguments),
        Verb::Series(arguments) => series::series(&arguments),
        Verb::Conformance(arguments) => conformance::conformance(&arguments),
        Verb::Man { directory } => arguments::write_manual(&directory),
        Verb::Completions { directory } => arguments::write_completions(&directory),
        Verb::Schemas { directory } => schemas::write_schemas(&directory),
        Verb::Node => forebay_cluster::agent::serve(forebay_job::serve_task),
        Verb::Rank { program } => forebay_launchers::exec_rank(&program),
    }
}

/// Checks the machine or, with `--engine`, an engine on nodes. A configured engine alone is no request for that.
fn doctor(machine: &DoctorArguments, nodes: &NodeArguments) -> i32 {
    let names_engine = ["engine", "engine-profile"].into_iter().any(effective_config::is_of_option);
    if !names_engine && nodes.nodes.is_empty() && nodes.hostfile.is_none() {
        return forebay_doctor::doctor(machine, effective_config::store());
    }
    let checked = nodes.options_or_this_node().and_then(|options| {
        let of_profile = options.profile.as_ref().and_then(|profile| profile.store.clone());
        let store = machine.store.clone().or(of_profile).or_else(effective_config::store);
        forebay_doctor::check_engine(&options, store, machine.repetitions, machine.json)
    });
    checked.unwrap_or_else(|error| error.print_with_json(machine.json, None))
}
