//! The numbers of a site in the format OpenMetrics, for a collector that reads a text file. The control host asks the
//! daemons of the staging nodes for theirs, so no daemon listens for anybody else.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;

use forebay_directive::Direction;
use forebay_host::users;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use crate::context::Context;
use crate::nodes::asked;
use crate::{Phase, Session, Share, progress};
use forebay_site::messages::{Counts, Operation, Outcome};
use forebay_site::{Error, NodeAddress, PoolKind};

type Labels = Vec<(&'static str, String)>;
type Gauges = Family<Labels, Gauge<u64, AtomicU64>>;
type Counters = Family<Labels, Counter>;

/// All numbers, from the state and from the daemons that answer.
///
/// # Errors
/// If the configuration or the state cannot be used.
pub fn metrics() -> Result<String, Error> {
    let context = Context::open()?;
    let mut registry = Registry::with_prefix("forebay");
    let sessions = context.database.sessions()?;
    pools(&context, &mut registry)?;
    allocations(&context, &mut registry, &sessions);
    shares(&context, &mut registry, &sessions)?;
    let counted = counts_of_nodes(&context);
    nodes(&mut registry, &counted);
    let mut text = String::new();
    encode(&mut text, &registry).map_err(|error| Error::new(error.to_string()))?;
    Ok(text)
}

fn gauge(registry: &mut Registry, name: &str, help: &str, unit: Option<Unit>) -> Gauges {
    let made = Gauges::default();
    match unit {
        Some(unit) => registry.register_with_unit(name, help, unit, made.clone()),
        None => registry.register(name, help, made.clone()),
    }
    made
}

fn counter(registry: &mut Registry, name: &str, help: &str, unit: Option<Unit>) -> Counters {
    let made = Counters::default();
    match unit {
        Some(unit) => registry.register_with_unit(name, help, unit, made.clone()),
        None => registry.register(name, help, made.clone()),
    }
    made
}

fn pools(context: &Context, registry: &mut Registry) -> Result<(), Error> {
    let bytes = || Some(Unit::Bytes);
    let capacity = gauge(registry, "pool_capacity", "Bytes of a pool for jobs", bytes());
    let allocated = gauge(registry, "pool_allocated", "Bytes that allocations have", bytes());
    let reserved = gauge(registry, "pool_reserved", "Bytes that no job gets", bytes());
    let drained = gauge(registry, "pool_drained", "1 if the pool is drained", None);
    let draining = context.database.drained()?;
    for pool in &context.site.pools {
        let labels = vec![("pool", pool.name.clone())];
        let shown = |granules: u64| granules.saturating_mul(pool.granularity_bytes);
        capacity.get_or_create(&labels).set(shown(pool.quantity));
        allocated.get_or_create(&labels).set(shown(context.database.used_granules(pool)?));
        reserved.get_or_create(&labels).set(shown(pool.reserve));
        drained.get_or_create(&labels).set(u64::from(draining.contains(&pool.name)));
    }
    Ok(())
}

fn allocations(context: &Context, registry: &mut Registry, sessions: &[Session]) {
    let of_user = gauge(registry, "allocations", "Allocations", None);
    let size = gauge(registry, "allocation_size", "Bytes of the allocations", Some(Unit::Bytes));
    let failing =
        gauge(registry, "allocations_failing", "Allocations whose last call failed", None);
    let kept =
        gauge(registry, "allocations_undelivered", "Ended jobs with results to deliver", None);
    let waiting = gauge(registry, "stagings", "Stagings that calls wait for", None);
    let backlog =
        gauge(registry, "staging_backlog", "Bytes that are still to be copied", Some(Unit::Bytes));
    for pool in &context.site.pools {
        let labels = vec![("pool", pool.name.clone())];
        drop(failing.get_or_create(&labels)); // zero is a value, too
        drop(kept.get_or_create(&labels)); // zero is a value, too
        for direction in ["in", "out"] {
            let labels = with(&labels, "direction", direction);
            drop(waiting.get_or_create(&labels)); // zero is a value, too
            drop(backlog.get_or_create(&labels)); // zero is a value, too
        }
    }
    for session in sessions {
        let labels = vec![("pool", session.pool.clone())];
        let user = with(&labels, "user", &users::user_named(session.user));
        of_user.get_or_create(&with(&user, "phase", &session.phase.to_string())).inc();
        let has_space = session.phase != Phase::Waiting;
        size.get_or_create(&user).inc_by(if has_space { session.capacity_bytes() } else { 0 });
        if session.problem.is_some() {
            failing.get_or_create(&labels).inc();
        }
        if session.has_undelivered_results() && session.phase != Phase::Running {
            kept.get_or_create(&labels).inc();
        }
        // Nodes of a job get their input at its start.
        let is_staging = match session.phase {
            Phase::StagingIn | Phase::StagingOut => true,
            Phase::Ready | Phase::StagedIn => session.is_on_nodes(),
            _ => false,
        };
        if let Some(staging) = progress::of(&context.site, session.id).filter(|_| is_staging) {
            let word = match staging.direction {
                Direction::In => "in",
                Direction::Out => "out",
            };
            let labels = with(&labels, "direction", word);
            waiting.get_or_create(&labels).inc();
            let progress = staging.nodes.iter().filter_map(|node| node.progress);
            let left = progress.map(|now| now.bytes.saturating_sub(now.bytes_done)).sum();
            backlog.get_or_create(&labels).inc_by(left);
        }
    }
}

/// What allocations have on each node, in pools whose space is in the nodes.
fn shares(context: &Context, registry: &mut Registry, sessions: &[Session]) -> Result<(), Error> {
    let bytes = || Some(Unit::Bytes);
    let capacity = gauge(registry, "node_capacity", "Bytes of a pool on a node for jobs", bytes());
    let allocated = gauge(registry, "node_allocated", "Bytes that allocations have there", bytes());
    let help = "Ended jobs with results to deliver on a node";
    let kept = gauge(registry, "node_undelivered", help, None);
    let shares = context.database.shares(None)?;
    for pool in context.site.pools.iter().filter(|pool| pool.kind == PoolKind::OnNode) {
        for node in &pool.staging_nodes {
            let address = node.to_string();
            let labels = vec![("node", node.name.clone()), ("pool", pool.name.clone())];
            let of_node = shares.iter().filter(|share| share.node == address);
            let of_pool: Vec<_> = of_node
                .filter_map(|share| {
                    let is_its = |session: &&Session| session.id == share.session;
                    let session = sessions.iter().find(is_its)?;
                    (session.pool == pool.name).then_some((share, session))
                })
                .collect();
            capacity.get_or_create(&labels).set(pool.directory_bytes());
            let sum = of_pool.iter().map(|(share, _)| share.bytes).sum();
            allocated.get_or_create(&labels).set(sum);
            let is_kept = |(share, session): &&(&Share, &Session)| {
                !share.is_delivered
                    && session.has_undelivered_results()
                    && session.phase > Phase::Running
            };
            kept.get_or_create(&labels).set(of_pool.iter().filter(is_kept).count() as u64);
        }
    }
    Ok(())
}

fn with(labels: &Labels, key: &'static str, value: &str) -> Labels {
    labels.iter().cloned().chain([(key, value.to_owned())]).collect()
}

/// What each staging node says; none if it does not answer.
fn counts_of_nodes(context: &Context) -> BTreeMap<String, Option<Counts>> {
    let mut nodes: Vec<NodeAddress> = Vec::new();
    for node in context.site.pools.iter().flat_map(|pool| &pool.staging_nodes) {
        if !nodes.contains(node) {
            nodes.push(node.clone());
        }
    }
    let names = nodes.iter().map(|node| node.name.clone());
    let requests: Vec<_> = nodes.iter().map(|node| (node.clone(), Operation::Count)).collect();
    let Ok(client) = context.client() else {
        return names.map(|name| (name, None)).collect();
    };
    let counts = asked(client, &requests).into_iter().map(|answer| match answer {
        Ok(Outcome::Counts { counts }) => Some(counts),
        _ => None,
    });
    names.zip(counts).collect()
}

fn nodes(registry: &mut Registry, counted: &BTreeMap<String, Option<Counts>>) {
    let up = gauge(registry, "node_up", "1 if forebay-noded of a staging node answers", None);
    let tasks = gauge(registry, "node_tasks", "Stagings and removals on a node", None);
    let ended =
        counter(registry, "node_tasks_ended", "Stagings and removals that have ended", None);
    let files = counter(registry, "node_staged_files", "Files that were staged", None);
    let bytes = counter(registry, "node_staged", "Bytes that were staged", Some(Unit::Bytes));
    let ends =
        counter(registry, "node_processes_killed", "Processes of owners that were killed", None);
    for (node, counts) in counted {
        let labels = vec![("node", node.clone())];
        up.get_or_create(&labels).set(u64::from(counts.is_some()));
        let Some(counts) = counts else { continue };
        tasks.get_or_create(&with(&labels, "state", "running")).set(counts.running);
        tasks.get_or_create(&with(&labels, "state", "waiting")).set(counts.waiting);
        let kinds =
            [("in", counts.stage_in), ("out", counts.stage_out), ("removal", counts.removal)];
        for (word, of_kind) in kinds {
            let kind = if word == "removal" { word.to_owned() } else { format!("stage_{word}") };
            let labels_of_kind = with(&labels, "kind", &kind);
            ended.get_or_create(&with(&labels_of_kind, "result", "done")).inc_by(of_kind.done);
            ended.get_or_create(&with(&labels_of_kind, "result", "failed")).inc_by(of_kind.failed);
            if word != "removal" {
                let labels = with(&labels, "direction", word);
                files.get_or_create(&labels).inc_by(of_kind.files);
                bytes.get_or_create(&labels).inc_by(of_kind.bytes);
            }
        }
        let by = |word: &str| ends.get_or_create(&with(&labels, "by", word)).clone();
        by("others").inc_by(counts.interruptions);
        by("forebay").inc_by(counts.idle);
    }
}
