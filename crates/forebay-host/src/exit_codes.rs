//! The exit codes of Forebay's commands; docs/reference/exit-codes.md explains them. Never ends a process.

/// The command failed.
pub const FAILED: i32 = 1;
/// The command line is wrong.
pub const USAGE: i32 = 2;
/// The stage-out is incomplete because time ran out or the scheduler ended the job.
pub const TIME_RAN_OUT: i32 = 122;
/// The job succeeded, but its stage-out failed or is incomplete; or some files were not copied.
pub const STAGE_OUT_INCOMPLETE: i32 = 123;
/// The job reached its time limit, as of timeout(1).
pub const TIME_LIMIT_REACHED: i32 = 124;
/// The job was not started: script, allocation or stage-in failed.
pub const FAILED_BEFORE_THE_JOB: i32 = 125;
/// The command could not be started, as of env(1).
pub const COMMAND_NOT_STARTED: i32 = 126;
/// The command was not found, as of env(1).
pub const COMMAND_NOT_FOUND: i32 = 127;
/// A launcher or forebay-py cannot be started, as a shell returns for a command that it cannot run.
pub const CANNOT_RUN: i32 = 127;

/// This signal ended the command, as a shell shows it.
pub const fn of_signal(signal: i32) -> i32 {
    128 + signal
}
