//! Listens for requests. A peer that is silent holds up nobody: when too many wait, the one that has waited longest is
//! closed.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use forebay_host::tcp::{Acceptor, Closer, Connection};
use forebay_host::{clock, files, filesystem, probe, threads, users};
use forebay_site::{Auth, Error, Pool, PoolKind, Quota, Side, Site};
use indicatif::HumanBytes;
use parking_lot::Mutex;

use crate::engines::Engines;
use crate::owner::Owners;
use crate::pool::PoolDirectory;
use crate::requests::{Service, is_same_node};
use crate::tasks::Tasks;

/// Connections whose request is not whole yet.
const SILENT_MAX: usize = 64;
/// Requests that are answered at a time.
const ANSWERED_MAX: usize = 256;
/// The pause after a connection could not be accepted, for example for want of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Connections whose request is not whole yet, the oldest first.
#[derive(Default)]
struct Silent {
    next: u64,
    waiting: VecDeque<(u64, Closer)>,
}

/// Serves requests at the address until the process ends. `name` is that of this node. `log` gets lines for the
/// administrator.
///
/// # Errors
/// If this is not root, the configuration cannot be used, a pool that this node stages for cannot be opened or is
/// larger than its file system, or another program has the port.
pub fn serve(address: SocketAddr, name: &str, log: fn(&str)) -> Result<(), Error> {
    if !users::is_root() {
        return Err(Error::new("forebay-noded must be started by root")
            .with_hint("start it with systemctl"));
    }
    let site = Site::load()?;
    let auth = Auth::of(&site, Side::Node)?;
    let has_engine = check_pools(&site, name, log)?;
    site.unknown_names().iter().for_each(|unknown| log(&format!("warning: {unknown}")));
    // Only one daemon has the address, so what runs in its cgroup is that of a former one.
    let acceptor = Acceptor::bind(address)?;
    let owners = Arc::new(Owners::of(name, log));
    let engines = Arc::new(Engines::of(&site, name, has_engine, log)?);
    engines.watch_all()?;
    let tasks = Tasks::of(site.clone(), name.to_owned(), Arc::clone(&owners), Arc::clone(&engines));
    log(&format!("{name} listens at {}", acceptor.address()?));
    let service = Arc::new(Service { site, auth, tasks, owners, engines, name: name.to_owned() });
    let (silent, slots) =
        (Arc::new(Mutex::new(Silent::default())), threads::Slots::new(ANSWERED_MAX));
    loop {
        let accepted = acceptor.accept().map_err(Error::from).and_then(|connection| {
            let Some(slot) = slots.take() else {
                return Err(Error::new(format!("{ANSWERED_MAX} requests are being answered")));
            };
            let (service, silent) = (Arc::clone(&service), Arc::clone(&silent));
            // The list of silent peers has a copy of the connection. The thread makes it, so that none remains of a
            // connection for which no thread starts.
            let answering = threads::spawn(move || {
                let peer = connection.peer().to_owned();
                let answered = note(&silent, &connection)
                    .and_then(|number| service.answer(connection, || forget(&silent, number)));
                if let Err(error) = answered {
                    log(&format!("{peer}: {error}"));
                }
                drop(slot);
            });
            answering.map(drop).map_err(Error::from)
        });
        if let Err(error) = accepted {
            log(&error.to_string());
            clock::sleep(PAUSE);
        }
    }
}

fn note(silent: &Mutex<Silent>, connection: &Connection) -> Result<u64, Error> {
    let closer = connection.closer()?;
    let mut silent = silent.lock();
    let number = silent.next;
    silent.next += 1;
    silent.waiting.push_back((number, closer));
    let oldest = if silent.waiting.len() > SILENT_MAX { silent.waiting.pop_front() } else { None };
    if let Some((_, oldest)) = oldest {
        oldest.close();
    }
    Ok(number)
}

fn forget(silent: &Mutex<Silent>, number: u64) {
    silent.lock().waiting.retain(|(other, _)| *other != number);
}

/// The pools that this node stages for must be there; others may be mounted later. Returns whether one has an engine.
fn check_pools(site: &Site, name: &str, log: fn(&str)) -> Result<bool, Error> {
    let mut has_engine = false;
    let mut sizes = HashMap::new();
    for pool in &site.pools {
        let stages = pool.staging_nodes.iter().any(|node| is_same_node(&node.name, name));
        if pool.kind == PoolKind::OnNode && !stages {
            continue;
        }
        match PoolDirectory::of(pool) {
            Ok(directory) if stages => directory.check_quota(&pool.name)?,
            Ok(_) => {}
            Err(error) if stages => return Err(error),
            Err(error) => {
                log(&format!("warning: {error}"));
                continue;
            }
        }
        if !stages {
            continue; // neither the size nor the quota was looked at
        }
        check_size(site, pool, &mut sizes)?;
        if let Some(engine) = &pool.engine {
            check_engine(&pool.name)?;
            has_engine = true;
            log(&format!(
                "pool {}: the engine {engine} limits the size of an allocation",
                pool.name
            ));
            continue;
        }
        let how = match pool.quota {
            Some(Quota::Project) => "a project quota limits the size of an allocation",
            Some(Quota::Ceph) => "a quota of CephFS limits the size of an allocation",
            None => "the size of an allocation is accounted, not enforced by the file system",
        };
        log(&format!("pool {}: {how}", pool.name));
    }
    Ok(has_engine)
}

/// The pools of each file system, by device number: their names, and the bytes of all.
type Sizes<'a> = HashMap<u64, (Vec<&'a str>, u64)>;

/// Pools of one file system must fit into it together.
fn check_size<'a>(site: &Site, pool: &'a Pool, sizes: &mut Sizes<'a>) -> Result<(), Error> {
    let (names, wanted) = sizes.entry(files::status(&pool.path)?.device).or_default();
    names.push(&pool.name);
    *wanted = wanted
        .saturating_add(pool.directory_bytes())
        .saturating_add(pool.directory_reserve_bytes());
    let has = filesystem::space(&pool.path)?.total_bytes;
    if *wanted <= has {
        return Ok(());
    }
    let (path, file) = (pool.path.display(), site.file.display());
    let (wanted, has) = (HumanBytes(*wanted), HumanBytes(has));
    let (who, remedy) = match names.as_slice() {
        [one] => (format!("the pool {one} has"), "lower its quantity"),
        all => (format!("the pools {} together have", all.join(", ")), "lower their quantities"),
    };
    Err(Error::new(format!("{who} {wanted}, and the file system at {path} has {has}"))
        .with_hint(format!("{remedy} in {file}")))
}

/// An engine mounts its namespace with fusermount, which becomes root for it.
fn check_engine(pool: &str) -> Result<(), Error> {
    let fuse = Path::new("/dev/fuse");
    let why_not = match probe::check_open_rw(fuse) {
        Err(error) => Some(error.to_string()),
        Ok(()) => probe::no_setuid_mounts().map(str::to_owned),
    };
    match why_not {
        None => Ok(()),
        Some(why) => Err(Error::new(format!("the pool {pool} has an engine, but {why}"))
            .with_hint("the unit needs forebay-noded-engine.conf: docs/how-to/site-slurm.md")),
    }
}
