//! The pools of a configuration, and their checks.
//! Never looks at a directory of a pool or asks a node: `forebay-noded` checks them.

use std::collections::HashSet;
use std::path::PathBuf;

use forebay_scheduler::expand_node_list;
use serde::Deserialize;
use toml::Spanned;

use super::faults::Faults;
use super::{NodeAddress, Pool, PoolKind, Quota};

/// The engine that is started on the nodes of a job.
const ENGINE: &str = "ceph";
/// The size of a granule, unless the file has another one.
const GRANULARITY_BYTES: u64 = 1 << 30;
/// Slurm's counters of bytes are signed numbers of 64 bits.
const POOL_BYTES_MAX: u64 = i64::MAX as u64;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawPool {
    name: Spanned<String>,
    kind: Spanned<String>,
    path: Option<Spanned<PathBuf>>,
    granularity: Option<Spanned<String>>,
    quantity: Option<Spanned<u64>>,
    capacity: Option<Spanned<String>>,
    reserve: Option<Spanned<String>>,
    #[serde(default)]
    users: Vec<Spanned<String>>,
    #[serde(default)]
    groups: Vec<Spanned<String>>,
    user_max: Option<Spanned<String>>,
    staging_nodes: Option<Spanned<Vec<Spanned<String>>>>,
    nodes: Option<Spanned<Vec<Spanned<String>>>>,
    quota: Option<Spanned<String>>,
    stage_rate_max: Option<Spanned<String>>,
    pub(super) engine: Option<Spanned<String>>,
    redundancy: Option<Spanned<u32>>,
}

/// A pool; none if what is wrong leaves no pool.
pub(super) fn pool_of(spanned: &Spanned<RawPool>, port: u16, faults: &mut Faults) -> Option<Pool> {
    let (start, written) = (spanned.span().start, spanned.get_ref());
    let name = written.name.get_ref();
    if let Some(what) = forebay_directive::name_error(name) {
        faults.add(written.name.span().start, &format!("name: {name:?} {what}"));
    }
    let kind = kind_of(&written.kind, faults)?;
    match &written.path {
        Some(path) => faults.path("path", path),
        None => faults.add(start, &format!("pool {name} has no path; name its directory")),
    }
    let granularity =
        faults.size("granularity", written.granularity.as_ref()).unwrap_or(GRANULARITY_BYTES);
    let granules = granules(written, start, granularity, faults);
    let reserve =
        faults.size("reserve", written.reserve.as_ref()).unwrap_or(0).div_ceil(granularity);
    if reserve >= granules && granules > 0 {
        let place = written.reserve.as_ref().map_or(start, |reserve| reserve.span().start);
        faults
            .add(place, &format!("reserve: {reserve} of {granules} granules leave none for jobs"));
    }
    let staging_nodes = nodes_of(kind, written, start, port, faults);
    // The file has the size of each directory.
    let directories = match kind {
        PoolKind::Directory => 1,
        PoolKind::OnNode => staging_nodes.len() as u64,
    };
    let redundancy = redundancy_of(written, faults);
    let quantity =
        granules.saturating_sub(reserve).saturating_mul(directories) / u64::from(redundancy);
    if quantity == 0 && redundancy > 1 {
        faults.add(start, &format!("pool {name}: {redundancy} copies leave no granule for jobs"));
    }
    Some(Pool {
        name: name.clone(),
        kind,
        path: written.path.as_ref()?.get_ref().components().collect(),
        granularity_bytes: granularity,
        quantity,
        directory_granules: granules.saturating_sub(reserve),
        reserve: reserve.saturating_mul(directories),
        users: written.users.iter().map(|user| user.get_ref().clone()).collect(),
        groups: written.groups.iter().map(|group| group.get_ref().clone()).collect(),
        quota: written.quota.as_ref().and_then(|quota| quota_of(kind, quota, faults)),
        user_bytes_max: faults.size("user_max", written.user_max.as_ref()),
        staging_nodes,
        stage_bytes_per_s_max: faults.size("stage_rate_max", written.stage_rate_max.as_ref()),
        engine: written.engine.as_ref().and_then(|engine| engine_of(kind, written, engine, faults)),
        redundancy,
    })
}

fn kind_of(kind: &Spanned<String>, faults: &mut Faults) -> Option<PoolKind> {
    let message = match kind.get_ref().as_str() {
        "directory" => return Some(PoolKind::Directory),
        "onnode" => return Some(PoolKind::OnNode),
        "servers" => {
            "kind: Forebay has no storage servers of its own; run a file system such as CephFS on the servers"
                .to_owned()
        }
        other => format!("kind: there is no kind {other:?}"),
    };
    let hint = "write kind = \"directory\" or kind = \"onnode\"";
    faults.add(kind.span().start, &format!("{message}; {hint}"));
    None
}

fn quota_of(kind: PoolKind, quota: &Spanned<String>, faults: &mut Faults) -> Option<Quota> {
    let known = Quota::ALL.into_iter().find(|known| known.word() == quota.get_ref());
    let message = match known {
        Some(Quota::Ceph) if kind == PoolKind::OnNode => {
            "quota: \"ceph\" is for pools of kind \"directory\" on CephFS".to_owned()
        }
        Some(_) => return known,
        None => {
            let words = Quota::ALL.map(|known| format!("{:?}", known.word())).join(" or ");
            format!("quota: there is no quota {:?}; write {words}", quota.get_ref())
        }
    };
    faults.add(quota.span().start, &message);
    None
}

fn engine_of(
    kind: PoolKind,
    written: &RawPool,
    engine: &Spanned<String>,
    faults: &mut Faults,
) -> Option<String> {
    let message = match engine.get_ref().as_str() {
        _ if kind != PoolKind::OnNode => {
            "engine: it is for pools of kind \"onnode\"; a directory is one namespace already"
        }
        _ if written.quota.is_some() => "engine: it limits its allocations itself; drop quota",
        ENGINE => return Some(ENGINE.to_owned()),
        _ => "engine: write \"ceph\"",
    };
    faults.add(engine.span().start, message);
    None
}

/// The copies of the data.
fn redundancy_of(written: &RawPool, faults: &mut Faults) -> u32 {
    let Some(redundancy) = &written.redundancy else { return 1 };
    let message = match *redundancy.get_ref() {
        _ if written.engine.is_none() => "redundancy: it needs an engine, which keeps the copies",
        copies @ (1 | 2) => return copies,
        _ => "redundancy: write 1 or 2",
    };
    faults.add(redundancy.span().start, message);
    1
}

/// The granules of a pool, those of the reserve included.
fn granules(written: &RawPool, start: usize, granularity: u64, faults: &mut Faults) -> u64 {
    let capacity = faults.size("capacity", written.capacity.as_ref());
    let granules = match (&written.quantity, capacity) {
        (Some(quantity), None) if written.capacity.is_none() => *quantity.get_ref(),
        (None, Some(bytes)) => bytes / granularity,
        (None, None) if written.capacity.is_some() => return 0, // its fault is named
        _ => {
            let name = written.name.get_ref();
            faults.add(
                start,
                &format!("pool {name}: give either quantity, in granules, or capacity, in bytes"),
            );
            return 0;
        }
    };
    let bytes = granules.checked_mul(granularity).filter(|bytes| *bytes <= POOL_BYTES_MAX);
    if granules == 0 || bytes.is_none() {
        let what = format!("{granules} granules of {granularity} bytes");
        faults.add(
            start,
            &format!("pool {}: {what}: a pool has from 1 granule to 8 EiB", written.name.get_ref()),
        );
    }
    granules
}

/// The nodes of a pool, under the key that its kind has.
fn nodes_of(
    kind: PoolKind,
    written: &RawPool,
    start: usize,
    port: u16,
    faults: &mut Faults,
) -> Vec<NodeAddress> {
    let (staging, own) = (&written.staging_nodes, &written.nodes);
    let (key, listed, other, unused, what) = match kind {
        PoolKind::Directory => ("staging_nodes", staging, "nodes", own, "run forebay-noded"),
        PoolKind::OnNode => ("nodes", own, "staging_nodes", staging, "have this directory"),
    };
    let name = written.name.get_ref();
    if let Some(unused) = unused {
        faults.add(unused.span().start, &format!("{other}: a pool of this kind has {key}"));
    }
    let Some(listed) = listed.as_ref().filter(|nodes| !nodes.get_ref().is_empty()) else {
        faults.add(start, &format!("pool {name} has no {key}; name nodes that {what}"));
        return Vec::new();
    };
    let (mut nodes, mut names) = (Vec::new(), HashSet::new());
    for word in listed.get_ref() {
        let parsed = expand_node_list(word.get_ref()).and_then(|words| {
            words.iter().map(|word| NodeAddress::parse(word, port)).collect::<Result<Vec<_>, _>>()
        });
        match parsed {
            Ok(parsed) => {
                let twice = parsed.iter().find(|node| !names.insert(node.name.clone()));
                if let Some(node) = twice {
                    faults.add(word.span().start, &format!("{key}: {} is named twice", node.name));
                }
                nodes.extend(parsed);
            }
            Err(message) => faults.add(word.span().start, &format!("{key}: {message}")),
        }
    }
    nodes
}

/// Two pools in one directory would count its space twice.
pub(super) fn check_distinct(pools: &[Spanned<RawPool>], faults: &mut Faults) {
    for (index, late) in pools.iter().enumerate() {
        let late = late.get_ref();
        for early in &pools[..index] {
            let early = early.get_ref();
            if early.name.get_ref() == late.name.get_ref() {
                let message = format!("name: there is a pool {} already", late.name.get_ref());
                faults.add(late.name.span().start, &message);
            }
            let (Some(one), Some(other)) = (&early.path, &late.path) else { continue };
            let (one, path) = (one.get_ref(), other.get_ref());
            if one.starts_with(path) || path.starts_with(one) {
                let message = format!(
                    "path: {} and {} of the pool {} are not separate",
                    path.display(),
                    one.display(),
                    early.name.get_ref()
                );
                faults.add(other.span().start, &message);
            }
        }
    }
}
