//! Applies the configuration to a command line: configured values become the defaults of options.
//! Assumes one call a process, since the first configuration stays. Never overrides an option that the user gave.
//! Never applies configured values to the options of `clean`, or `store` to `--store`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::OsStr;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use forebay_config::{Configuration, Errors, Kind, SETTINGS, Setting, Sources};
use forebay_host::exit_codes::FAILED_BEFORE_THE_JOB;
use forebay_host::state;
use forebay_terminal::CliError;

use crate::{effective_config, series};

/// Commands that need no setting.
const WITHOUT: &[&str] = &[
    "drain",
    "watch",
    "machines",
    "__man",
    "__completions",
    "__reference",
    "__probe-namespace",
    "__rank",
];
/// Its options change what a job recorded, so configured values do not apply.
const CLEAN: &str = "clean";
/// Not a default of `--store`: commands that search stores would search only this one.
const STORE: &str = "store";
const STATE: &str = "state";
/// Commands that start a job.
const STARTING_JOBS: &[&str] = &["run", SERIES];
const SERIES: &str = "__series";

/// Lets each option of a flag take `=true` and `=false`, so that it can override the configuration.
pub fn with_values_of_flags(command: Command) -> Command {
    let flags = SETTINGS.iter().filter(|setting| setting.kind == Kind::Flag);
    let command = flags.fold(command, |command, setting| match id_of(&command, setting) {
        Some(id) => command.mut_arg(id, |flag: Arg| {
            flag.action(ArgAction::Set)
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value("true")
                .default_value("false")
                .value_parser(value_parser!(bool))
                .value_name("BOOL")
                .hide_default_value(true)
                .hide_possible_values(true)
        }),
        None => command,
    });
    let below: Vec<String> =
        command.get_subcommands().map(|one| one.get_name().to_owned()).collect();
    below
        .into_iter()
        .fold(command, |command, name| command.mut_subcommand(name, with_values_of_flags))
}

fn id_of(command: &Command, setting: &Setting) -> Option<String> {
    let has_name = |arg: &&Arg| setting.has_option && arg.get_long() == Some(setting.key);
    command.get_arguments().find(has_name).map(|arg| arg.get_id().to_string())
}

/// Parses the command line with configured values as defaults. Ends the process if the command line is wrong.
///
/// # Errors
/// The exit code, after the errors of the configuration were printed.
pub fn matches(command: Command, words: Vec<OsString>) -> Result<ArgMatches, i32> {
    let plain = command.clone().get_matches_from(&words);
    let mut path = Vec::new();
    let mut leaf = &plain;
    let mut leaf_command = &command;
    while let Some((name, below)) = leaf.subcommand() {
        path.push(name.to_owned());
        leaf = below;
        leaf_command = leaf_command.find_subcommand(name).unwrap_or(leaf_command);
    }
    if path.first().is_none_or(|verb| WITHOUT.contains(&verb.as_str())) {
        return Ok(plain);
    }
    let script = leaf.try_get_one::<PathBuf>("script").ok().flatten();
    let loaded = Configuration::load(&Sources::of_process(script.map(PathBuf::as_path)));
    let applied = loaded.map_err(error_of).and_then(|mut configuration| {
        if let Some(store) = configuration.path(STORE) {
            effective_config::keep_store(store);
        }
        let defaults = merge(&mut configuration, leaf_command, leaf, &path)?;
        Ok((configuration, defaults))
    });
    let (configuration, defaults) = applied.map_err(|error| refuse(error, leaf, &path[0]))?;
    if let Some(state) = configuration.path(STATE) {
        state::use_directory(state);
    }
    effective_config::keep(configuration);
    if defaults.is_empty() {
        return Ok(plain);
    }
    Ok(with_defaults(command, &path, &defaults).get_matches_from(words))
}

fn error_of(errors: Errors) -> CliError {
    let error = CliError::new(errors.to_string());
    match errors.hint {
        Some(hint) => error.with_hint(hint),
        None => error.with_hint(
            "forebay config lists the keys; docs/reference/configuration.md explains them",
        ),
    }
}

fn refuse(error: CliError, leaf: &ArgMatches, verb: &str) -> i32 {
    let error = if STARTING_JOBS.contains(&verb) {
        error.with_exit_code(FAILED_BEFORE_THE_JOB)
    } else {
        error
    };
    if verb == SERIES {
        return series::refuse(&error);
    }
    let as_json = leaf.try_get_one::<bool>("json").ok().flatten().copied().unwrap_or_default();
    error.print_with_json(as_json, None)
}

/// Default values of an option.
type Default = (String, Vec<String>);

/// Puts the options of the command line over the configuration, and returns the defaults of the other options.
///
/// # Errors
/// If an option changes a locked key.
fn merge(
    configuration: &mut Configuration,
    command: &Command,
    given: &ArgMatches,
    path: &[String],
) -> Result<Vec<Default>, CliError> {
    let is_given = |id: &str| given.value_source(id) == Some(ValueSource::CommandLine);
    let all: Vec<&Arg> =
        command.get_arguments().filter(|arg| is_given(arg.get_id().as_str())).collect();
    let mut defaults = Vec::new();
    for setting in SETTINGS {
        let Some(arg) = command
            .get_arguments()
            .find(|arg| setting.has_option && arg.get_long() == Some(setting.key))
        else {
            continue;
        };
        let id = arg.get_id().to_string();
        if is_given(&id) {
            let words = given.get_raw(&id).into_iter().flatten();
            let words = words.map(|word| word.to_string_lossy().into_owned()).collect();
            let value = configuration.option(setting, words);
            let value = value.map_err(|(message, hint)| CliError::new(message).with_hint(hint))?;
            configuration.replace(setting, Some(value));
            continue;
        }
        let Some(value) = configuration.get(setting.key) else { continue };
        let conflict = all.iter().find(|other| {
            let conflicts = |one, other: &Arg| {
                command
                    .get_arg_conflicts_with(one)
                    .iter()
                    .any(|found| found.get_id() == other.get_id())
            };
            conflicts(arg, other) || conflicts(other, arg)
        });
        if let Some(other) = conflict {
            let long = other.get_long().unwrap_or_default();
            if let Some(lock) = configuration.lock(setting.key) {
                let message = format!(
                    "--{long} conflicts with {}, which the site file locks ({lock})",
                    setting.key
                );
                return Err(CliError::new(message).with_hint(format!("leave --{long} out")));
            }
            configuration.replace(setting, None);
            continue;
        }
        if setting.key != STORE && path[0] != CLEAN {
            defaults.push((id, value.words.clone()));
        }
    }
    Ok(defaults)
}

/// The command with defaults for options of the subcommand at the end of the path.
fn with_defaults(command: Command, path: &[String], defaults: &[Default]) -> Command {
    match path.split_first() {
        Some((name, rest)) => {
            command.mut_subcommand(name, |one| with_defaults(one, rest, defaults))
        }
        None => defaults.iter().fold(command, |command, (id, words)| {
            let words: Vec<OsStr> = words.iter().cloned().map(OsStr::from).collect();
            command.mut_arg(id, |arg| arg.default_values(words))
        }),
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;
    use crate::arguments;
    use crate::options::staging::VerifyWhen;

    fn options(command: &Command) -> Vec<String> {
        let own = command.get_arguments().filter_map(Arg::get_long).map(str::to_owned);
        own.chain(command.get_subcommands().flat_map(options)).collect()
    }

    #[test]
    fn each_setting_with_an_option_belongs_to_a_command() {
        let all = options(&arguments::command());
        for setting in SETTINGS {
            assert_eq!(
                all.contains(&setting.key.to_owned()),
                setting.has_option,
                "{}",
                setting.key
            );
        }
    }

    #[test]
    fn setting_verify_takes_the_values_of_the_option() {
        let check = Setting::find("verify").expect("a setting").check;
        for when in VerifyWhen::value_variants() {
            let name = when.to_possible_value().expect("a name");
            assert!(check(name.get_name()).is_ok(), "{}", name.get_name());
        }
    }
}
