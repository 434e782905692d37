//! The functions of `dw_wlm_cli`, one file each. Each may run again, also while a former call for the same job runs:
//! it then waits for the former work or finds it done.

mod create_persistent;
mod data_in;
mod data_out;
mod job_process;
mod paths;
mod place;
mod pools;
mod post_run;
mod pre_run;
mod real_size;
mod setup;
mod show;
mod teardown;

use std::ffi::OsString;

use forebay_host::clock;

use crate::Reply;
use crate::call::Call;
use crate::context::Context;
use crate::log::Log;
use crate::staging::StagingResult;
use forebay_site::{Error, Site};

pub(crate) use data_out::deliver;
pub(crate) use place::first_answer;
pub(crate) use setup::heterogeneous;
pub(crate) use teardown::remove_directory;

/// Runs one function of the protocol, with the words after the program's name.
pub fn dw_wlm_cli(words: &[OsString]) -> Reply {
    let began = clock::now();
    let call = match Call::parse(words) {
        Ok(call) => call,
        Err(error) => return refused(words, error),
    };
    // It opens no state, so that a user learns of a wrong directive in any case.
    if call.function.name == "job_process" {
        return job_process::job_process(&call).map(|()| String::new()).into();
    }
    let mut context = match Context::open() {
        Ok(context) => context,
        Err(error) => return Err(error).into(),
    };
    let result = run(&mut context, &call);
    let token = call.optional("--token").unwrap_or("-");
    let name = call.function.name;
    let said =
        result.as_ref().err().map_or_else(|| "ok".to_owned(), |error| format!("error: {error}"));
    let hurry = if call.hurry { " --hurry" } else { "" };
    context
        .log
        .line(&format!("{name} {token}{hurry}: {said} ({} ms)", began.elapsed().as_millis()));
    if !call.ignored.is_empty() {
        context.log.line(&format!("{name} {token}: passed over {:?}", call.ignored));
    }
    result.into()
}

/// The log names wrong calls too, where it can.
fn refused(words: &[OsString], error: Error) -> Reply {
    let site = Site::load().ok();
    if let Some(site) = site.filter(|site| forebay_host::users::user_id() == site.slurm_user.user) {
        Log::of(&site).line(&format!("{words:?}: error: {error}"));
    }
    Err(error).into()
}

/// What a caller reads who asks from time to time.
fn answer(waited: StagingResult) -> String {
    match waited {
        StagingResult::Completed => String::new(),
        StagingResult::Incomplete(_) => "BUSY".to_owned(),
    }
}

fn run(context: &mut Context, call: &Call) -> Result<String, Error> {
    let done = |result: Result<(), Error>| result.map(|()| String::new());
    match call.function.name {
        "pools" => pools::pools(context),
        "show_sessions" => show::sessions(context),
        "show_instances" => show::instances(context),
        "show_configurations" => show::configurations(context),
        "setup" => done(setup::setup(context, call)),
        "data_in" => data_in::data_in(context, call).map(answer),
        "real_size" => real_size::real_size(context, call),
        "paths" => done(paths::paths(context, call)),
        "pre_run" => done(pre_run::pre_run(context, call)),
        "post_run" => done(post_run::post_run(context, call)),
        "data_out" => data_out::data_out(context, call).map(answer),
        "teardown" => done(teardown::teardown(context, call)),
        "create_persistent" => create_persistent::create_persistent(context, call),
        other => Err(Error::new(format!("the function {other} is not known"))),
    }
}
