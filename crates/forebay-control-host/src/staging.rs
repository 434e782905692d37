//! Has nodes stage the data of an allocation, and waits for them.
//! Assumes that the caller has set the phase, except in `copy`.
//! Never goes on when another call removes the allocation: that is an error.

use forebay_directive::{Direction, Stage};

use crate::context::Context;
use crate::nodes::{TimeLimits, Unfinished, Work};
use crate::progress::ProgressFile;
use crate::{Phase, Session};
use forebay_site::messages::{Operation, Outcome, Staging};
use forebay_site::{Error, NodeAddress};

/// Files and bytes that a staging copied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Staged {
    files: u64,
    bytes: u64,
}

/// Why a call ends whose allocation another call removed.
pub(crate) fn removed_meanwhile(token: &str) -> Error {
    Error::new(format!("the allocation of {token} was removed meanwhile"))
}

/// Whether a staging is complete.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StagingResult {
    Completed,
    /// It goes on, on these nodes: time is up.
    Incomplete(Vec<NodeAddress>),
}

impl Context {
    /// Stages in or out, and sets the phase after that. Stores the error.
    ///
    /// # Errors
    /// If it failed for good, the allocation was removed meanwhile, or the node does not answer.
    pub(crate) fn stage(
        &mut self,
        session: &Session,
        direction: Direction,
        limits: &TimeLimits,
    ) -> Result<StagingResult, Error> {
        let (from, to) = match direction {
            Direction::In => (Phase::StagingIn, Phase::StagedIn),
            Direction::Out => (Phase::StagingOut, Phase::StagedOut),
        };
        match self.copy(session, direction, limits) {
            Ok(StagingResult::Completed) => {}
            Ok(not) => return Ok(not),
            Err(error) => {
                self.database.set_problem(session.id, Some(&error.to_string()))?;
                return Err(error);
            }
        }
        self.database.set_problem(session.id, None)?;
        // Another call may have completed it.
        match self.database.advance(session.id, &[from, to], to)? {
            true => Ok(StagingResult::Completed),
            false => Err(removed_meanwhile(&session.token)),
        }
    }

    /// Stages in or out, and leaves the phase as it is.
    ///
    /// # Errors
    /// As [`Context::stage`].
    pub(crate) fn copy(
        &mut self,
        session: &Session,
        direction: Direction,
        limits: &TimeLimits,
    ) -> Result<StagingResult, Error> {
        let (stages, word) = match direction {
            Direction::In => (&session.plan.stage_in, "in"),
            Direction::Out => (&session.plan.stage_out, "out"),
        };
        if stages.is_empty() {
            return Ok(StagingResult::Completed);
        }
        let (Staged { files, bytes }, rest) =
            self.stage_on_nodes(session, direction, stages, limits)?;
        let goes_on = !rest.pending.is_empty() && (limits.polls || rest.failed.is_empty());
        if goes_on {
            return Ok(StagingResult::Incomplete(rest.pending));
        }
        rest.check()?;
        let token = &session.token;
        self.log.line(&format!("{token}: staged {word} {files} files, {bytes} bytes"));
        Ok(StagingResult::Completed)
    }

    fn stage_on_nodes(
        &mut self,
        session: &Session,
        direction: Direction,
        stages: &[Stage],
        limits: &TimeLimits,
    ) -> Result<(Staged, Unfinished), Error> {
        let persistent = self.database.used_by(session.id)?;
        let shares = self.database.shares(Some(session.id))?;
        let nodes = if session.has_engine() {
            vec![self.node_named(&session.node)?]
        } else if session.is_on_nodes() {
            let wanted =
                shares.iter().filter(|share| direction == Direction::In || !share.is_delivered);
            wanted.map(|share| self.node_named(&share.node)).collect::<Result<_, _>>()?
        } else {
            vec![self.staging_node(session)?]
        };
        let whole = session.capacity_bytes();
        let own = match session.has_engine() {
            true => whole,
            false => shares.first().map_or(whole, |share| share.bytes),
        };
        let is_by_node = session.is_private() && direction == Direction::Out;
        let operation = |node: &NodeAddress, attempt: &str| Operation::Stage {
            place: session.place(),
            staging: Staging {
                direction,
                stages: stages.to_vec(),
                persistent: persistent.iter().map(|one| (one.token.clone(), one.place())).collect(),
                capacity_bytes: own,
                below: is_by_node.then(|| node.name.clone()),
            },
            attempt: attempt.to_owned(),
        };
        let mut staged = Staged::default();
        let mut on_done = |context: &mut Self, node: &NodeAddress, outcome: Outcome| {
            if let Outcome::Done { files, bytes, .. } = outcome {
                staged.files += files;
                staged.bytes += bytes;
            }
            match is_by_node {
                true => context.database.set_delivered(session.id, &node.to_string()),
                false => Ok(()),
            }
        };
        let mut shown = ProgressFile::of(&self.site, session, direction, limits.polls);
        let mut work = Work {
            session,
            operation: &operation,
            check: &|context| context.check_kept(session),
            on_done: &mut on_done,
            shown: Some(&mut shown),
            names_node: session.is_on_nodes(),
        };
        let rest = self.carry_out(nodes, limits, &mut work)?;
        Ok((staged, rest))
    }

    /// An error if another call removes the allocation.
    pub(crate) fn check_kept(&self, session: &Session) -> Result<(), Error> {
        match self.is_kept(session)? {
            true => Ok(()),
            false => Err(removed_meanwhile(&session.token)),
        }
    }

    /// Whether no other call removes the allocation, for example because the job was cancelled.
    pub(crate) fn is_kept(&self, session: &Session) -> Result<bool, Error> {
        let now = self.database.session(&session.token)?;
        Ok(now.is_some_and(|now| now.id == session.id && now.phase != Phase::Removing))
    }
}
