//! The exit codes of each command, in one table: its help and its manual page end with them.
//! docs/reference/exit-codes.md explains them; a test compares both.

use clap::Command;
use forebay_host::exit_codes::{
    COMMAND_NOT_FOUND, COMMAND_NOT_STARTED, FAILED, FAILED_BEFORE_THE_JOB, STAGE_OUT_INCOMPLETE,
    TIME_LIMIT_REACHED, TIME_RAN_OUT, USAGE, of_signal,
};

/// What an exit code means, and the commands that end with it: words after `forebay`.
struct ExitCode {
    code: i32,
    commands: &'static [&'static str],
    meaning: &'static str,
}

const fn row(code: i32, commands: &'static [&'static str], meaning: &'static str) -> ExitCode {
    ExitCode { code, commands, meaning }
}

const SUCCESS: i32 = 0;
/// Stands for the codes of all signals.
const ANY_SIGNAL: i32 = of_signal(0);

/// Those of commands that start a job or program and end as it does.
const WITH_CODES_OF_THE_JOB: &[&str] = &["run", "profile"];

const TABLE: &[ExitCode] = &[
    row(SUCCESS, &[], "success"),
    row(FAILED, &[], "the command failed; the message says why"),
    row(FAILED, &["doctor"], "no job can run on this machine, or the engine failed its check"),
    row(FAILED, &["watch"], "a command failed"),
    row(FAILED, &["drain", "drain wait"], "a file could not be copied, or the job drains nothing"),
    row(FAILED, &["gather"], "a node could not be reached"),
    row(USAGE, &[], "the command line is wrong"),
    row(
        TIME_RAN_OUT,
        &["run"],
        "the job was ended because its time was up; some results were not staged out",
    ),
    row(
        STAGE_OUT_INCOMPLETE,
        &["run"],
        "the job succeeded; some results were not staged out or may be incomplete",
    ),
    row(
        STAGE_OUT_INCOMPLETE,
        &["clean", "gather", "stage", "stage in", "stage out", "stage retry", "stage wait"],
        "some files were not copied; nothing was removed",
    ),
    row(TIME_LIMIT_REACHED, &["run", "profile"], "the time limit ended it"),
    row(
        FAILED_BEFORE_THE_JOB,
        &["run"],
        "the job was not started: script, allocation or stage-in failed",
    ),
    row(COMMAND_NOT_STARTED, &["profile"], "the command could not be started"),
    row(COMMAND_NOT_FOUND, &["profile"], "the command was not found"),
    row(ANY_SIGNAL, &["run", "profile", "compare", "watch", "engine bundle"], "signal N ended it"),
    row(of_signal(2), &["doctor"], "the check of an engine was interrupted"),
];

/// The section for the command `forebay PATH`.
fn section(path: &str) -> String {
    let own = |code: i32| TABLE.iter().any(|one| one.code == code && one.commands.contains(&path));
    let ends_as_the_job = WITH_CODES_OF_THE_JOB.contains(&path);
    let applies = |one: &&ExitCode| {
        let is_general = one.commands.is_empty()
            && !own(one.code)
            && !(ends_as_the_job && [SUCCESS, FAILED].contains(&one.code));
        is_general || one.commands.contains(&path)
    };
    let mut text = String::from("Exit codes:\n");
    if ends_as_the_job {
        text.push_str("  the exit code of the job or command, if it was started\n");
    }
    for one in TABLE.iter().filter(applies) {
        let code = match one.code {
            ANY_SIGNAL => "128 + N".to_owned(),
            code => code.to_string(),
        };
        text.push_str(&format!("  {code:<7}  {}\n", one.meaning));
    }
    text.truncate(text.trim_end().len());
    text
}

/// `command`, the one of `forebay PATH`, and those below it with their exit codes at the end of the help.
/// Commands without a help of their own are another program's.
pub fn append(command: Command, path: &str) -> Command {
    let below: Vec<String> =
        command.get_subcommands().map(|one| one.get_name().to_owned()).collect();
    let command = below.into_iter().fold(command, |command, name| {
        let path = format!("{path} {name}");
        command.mut_subcommand(&name, |one| append(one, path.trim_start()))
    });
    if command.is_disable_help_flag_set() || command.is_hide_set() {
        return command;
    }
    let help = command.get_after_help().map(|text| format!("{text}\n\n")).unwrap_or_default();
    let codes = if path.is_empty() {
        section("run").replacen("Exit codes:", "Exit codes of run:", 1)
    } else {
        section(path)
    };
    command.after_help(format!("{help}{codes}"))
}
