//! The staging of jobs, as `forebay stage` shows it under their ids.

use forebay_control::{Direction, Phase, Recorded, State, records};
use forebay_host::clock;

use super::arguments::How;
use super::kept::{Order, Staging};
use super::{Refused, STEP};

/// The job with this id, if there is one.
pub fn with_id(id: &str) -> Result<Option<Recorded>, Refused> {
    let mut found = records()?.found.into_iter();
    Ok(found.find(|job| job.record.id == id))
}

/// What it stages, or staged last.
pub fn staging(job: &Recorded) -> Result<Staging, Refused> {
    let id = &job.record.id;
    if job.state()? == State::Elsewhere {
        let message = format!("the staging of job {id} is on {}", job.record.host);
        return Err(Refused(message, Some("ask there".to_owned())));
    }
    let Some((direction, journal)) = job.staging()? else {
        let message = format!("job {id} stages nothing now, and has left nothing half staged");
        let hint = "forebay status tells how far it is; forebay stage wait waits for its end";
        return Err(Refused(message, Some(hint.to_owned())));
    };
    let stages = job.record.stage_out.iter();
    let destinations: Vec<_> = stages.map(|one| one.pfs_path.as_str()).collect();
    let data = job
        .data()
        .map_or_else(String::new, |path| path.display().to_string());
    let script = job.record.script.clone();
    let (source, target) = match direction {
        Direction::In => (script, data),
        Direction::Out => (data, destinations.join(", ")),
    };
    let order = Order {
        is_out: direction == Direction::Out,
        source,
        target,
        how: How::default(), // its forebay run alone knows, and carries it out
    };
    Ok(Staging {
        id: id.clone(),
        journal,
        order,
    })
}

/// Waits until its `forebay run` has ended; the job, if it has left something that is to be staged out.
pub fn end_of(id: &str) -> Result<Option<Recorded>, Refused> {
    loop {
        let Some(job) = with_id(id)? else {
            return Ok(None); // all has arrived
        };
        match job.state()? {
            State::Running => clock::sleep(STEP),
            _ if job.record.phase == Phase::Kept && !job.is_undrained() => return Ok(None),
            _ => return Ok(Some(job)),
        }
    }
}
