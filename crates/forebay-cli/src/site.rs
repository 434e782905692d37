//! Programs of a site by their names: `dw_wlm_cli`, `dwstat`, `forebay-noded`. They read no configuration of users.

use std::ffi::OsString;
use std::io::Write;
use std::net::SocketAddr;

use clap::Parser;
use forebay_control_host::Reply;
use forebay_host::exit_codes::{FAILED, USAGE};
use forebay_host::system;
use forebay_terminal::print_stdout;

/// A program's arguments, without its name; returns the exit code.
type Main = fn(&[OsString]) -> i32;

/// The program with this name.
pub fn program(name: &str) -> Option<Main> {
    match name {
        "dw_wlm_cli" => Some(|words| print(&forebay_control_host::dw_wlm_cli(words))),
        "dwstat" => Some(|words| print(&forebay_control_host::dwstat::dwstat(words))),
        "forebay-noded" => Some(noded),
        _ => None,
    }
}

/// The work of a process that `forebay-noded` started for an allocation's owner.
pub const WORK: &str = "__site";

/// Does it.
pub fn work(words: &[OsString]) -> i32 {
    let (text, code) = forebay_noded::work(words);
    print_stdout(&text, code)
}

/// The word of a process of an engine that `forebay-noded` started.
pub use forebay_noded::{ENGINE, engine};

/// An error is one line: Slurm makes it the reason of the job.
fn print(reply: &Reply) -> i32 {
    if let Some(error) = &reply.error {
        log(error);
        return FAILED;
    }
    if reply.output.is_empty() { 0 } else { print_stdout(&reply.output, 0) }
}

/// A line on standard error, which may be closed.
fn log(text: &str) {
    writeln!(std::io::stderr().lock(), "{text}").ok();
}

/// Serve allocations of a site on this node; docs/how-to/site-slurm.md shows how
#[derive(Debug, Parser)]
#[command(
    name = "forebay-noded",
    version,
    after_help = "Example:\n  forebay-noded --listen 10.0.0.1:7077\n\n\
    It must be started by root. The configuration is /etc/forebay/site.toml, or the file that FOREBAY_SITE names."
)]
struct NodedArguments {
    /// Accept requests at this address only
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: SocketAddr,
    /// The name of this node in Slurm [default: the host name]
    #[arg(long)]
    name: Option<String>,
}

fn noded(words: &[OsString]) -> i32 {
    let program = [OsString::from("forebay-noded")];
    let arguments = match NodedArguments::try_parse_from(program.iter().chain(words)) {
        Ok(arguments) => arguments,
        Err(error) => {
            error.print().ok(); // standard error may be closed
            return if error.use_stderr() { USAGE } else { 0 };
        }
    };
    let name = arguments.name.unwrap_or_else(system::hostname);
    match forebay_noded::serve(arguments.listen, &name, log) {
        Ok(()) => 0,
        Err(error) => print(&Err(error).into()),
    }
}
