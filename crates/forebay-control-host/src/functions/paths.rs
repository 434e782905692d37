//! `paths`: the variables of a job. Slurm waits for it, so it asks no node.

use std::io::Write;
use std::path::Path;

use forebay_host::files;

use crate::call::Call;
use crate::context::Context;
use forebay_site::Error;

pub(super) fn paths(context: &Context, call: &Call) -> Result<(), Error> {
    let session = context.session(call.token()?)?;
    let own = session.plan.variables.iter().map(|name| (name.clone(), session.namespace()));
    let mut lines: Vec<_> = own.collect();
    let used = context.database.used_by(session.id)?;
    for (name, variables) in &session.plan.persistent {
        let found = used.iter().find(|one| one.token == *name);
        let found = found.ok_or_else(|| {
            Error::new(format!("the persistent allocation {name} was destroyed"))
                .with_hint("scancel the job, make the allocation again, and submit the job again")
        })?;
        lines.extend(variables.iter().map(|variable| (variable.clone(), found.namespace())));
    }
    let text: String = lines.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
    let path = Path::new(call.value("--pathfile"));
    let mut file = files::open_to_write(path)?;
    let written = file.write_all(text.as_bytes());
    written.map_err(|error| Error::new(format!("cannot write {}: {error}", path.display())))
}
