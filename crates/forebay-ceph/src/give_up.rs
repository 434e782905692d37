//! Gives up the data of a storage daemon that is lost and has no copy, so that nobody waits for it. In three steps:
//! write down what is lost; tell every mount, which fails reads and writes there from then on; make new, empty
//! groups on other daemons. In another order a read that waited would get zeros for the data.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use forebay_host::files;
use nix::errno::Errno;
use serde_json::{Value, json};

use crate::error::Error;
use crate::lost_groups::{LOST_GROUPS_ATTRIBUTE, Losses, LostGroups, LostOfPool};
use crate::monitors::Monitors;
use crate::questions::{ask, ask_at_once, command, not_understood};
use crate::{DATA_POOL, LOCAL_POOL, NAMES_POOL};

const DUMP: &str = "osd dump";

/// Where the monitors keep what was lost with the last storage daemon. One is given up after the other.
const KEY: &str = "forebay/lost-groups";

/// Writes down the groups that this daemon alone has, of so many in the beginning.
pub(crate) fn note_lost_groups(
    monitors: &Monitors,
    (daemon, daemons): (u64, u64),
    new_pool: &str,
) -> Result<Value, Error> {
    let dump = ask(monitors, &command(json!({"prefix": DUMP, "format": "json"})), "")?;
    let dump: Value =
        serde_json::from_slice(&dump).map_err(|error| not_understood(DUMP, error.to_string()))?;
    let map = GroupMap::of(&dump, daemons)
        .ok_or_else(|| not_understood(DUMP, "a member is missing".to_owned()))?;
    let mut placed = map.placed.clone();
    let unknown: Vec<_> = map.groups().filter(|group| !placed.contains_key(group)).collect();
    let queries: Vec<_> = unknown
        .iter()
        .map(|group| command(json!({"prefix": "pg map", "pgid": group, "format": "json"})))
        .collect();
    let answers = ask_at_once(monitors, &queries)?;
    let answers = answers.as_array().map(Vec::as_slice).unwrap_or_default();
    for (number, group) in unknown.into_iter().enumerate() {
        let acting = numbers(answers.get(number).and_then(|answer| answer.get("acting")))
            .ok_or_else(|| not_understood("pg map", "a member is missing".to_owned()))?;
        // The place of a group whose daemon is down is not shown. It must be that of this one.
        if let (true, Some(other)) = (acting.is_empty(), map.down_beside(daemon)) {
            let reason = format!("storage daemon {other} is down, too, and may have {group}");
            return Err(not_understood("pg map", reason));
        }
        placed.insert(group, acting);
    }
    let is_lost = |group: &String| {
        placed.get(group).is_some_and(|all| all.iter().all(|number| *number == daemon))
    };
    let lost = map.lost_groups(new_pool, is_lost);
    let value =
        serde_json::to_string(&lost).map_err(|error| not_understood(DUMP, error.to_string()))?;
    ask(monitors, &command(json!({"prefix": "config-key set", "key": KEY, "val": value})), "")?;
    Ok(json!(lost.pools))
}

/// Tells the mount of this node, and through the file one that is started later.
pub(crate) fn send_lost_groups(
    monitors: &Monitors,
    mount: &Path,
    file: &Path,
) -> Result<Value, Error> {
    let mut all = Losses::read(file)?;
    all.add(LostGroups::parse(&noted(monitors)?)?);
    files::write_json(file, &file.with_extension("fresh"), &all)?;
    let text = json!(all).to_string();
    let name = LOST_GROUPS_ATTRIBUTE.to_string_lossy();
    match files::set_extended_attribute_of_path(mount, &name, text.as_bytes()) {
        // Nobody reads there: the process of the mount has ended.
        Err(error) if error.source.raw_os_error() == Some(Errno::ENOTCONN as i32) => {
            Ok(Value::Null)
        }
        told => Ok(told.map(|()| Value::Null)?),
    }
}

/// Makes new, empty groups in place of those that were written down, on the daemons that the map names now.
pub(crate) fn replace_lost_groups(monitors: &Monitors) -> Result<Value, Error> {
    let lost = LostGroups::parse(&noted(monitors)?)?;
    let groups = lost
        .pools
        .values()
        .flat_map(|pool| pool.lost.iter().map(|group| format!("{}.{group:x}", pool.number)));
    let commands: Vec<_> = groups
        .map(|group| {
            command(json!({"prefix": "osd force-create-pg", "pgid": group, "yes_i_really_mean_it": true}))
        })
        .collect();
    ask_at_once(monitors, &commands)
}

fn noted(monitors: &Monitors) -> Result<Vec<u8>, Error> {
    ask(monitors, &command(json!({"prefix": "config-key get", "key": KEY})), "")
}

/// The pools of a cluster, and the daemons of groups whose place was chosen.
struct GroupMap {
    pools: BTreeMap<String, (u64, u32)>,
    placed: HashMap<String, Vec<u64>>,
    /// Daemons that should have groups and do not answer.
    down: Vec<u64>,
}

impl GroupMap {
    /// None if a member is missing in what `osd dump` printed.
    fn of(dump: &Value, daemons: u64) -> Option<Self> {
        let pool = |pool: &Value| {
            let (number, groups) = (pool.get("pool")?.as_u64()?, pool.get("pg_num")?.as_u64()?);
            Some((
                pool.get("pool_name")?.as_str()?.to_owned(),
                (number, u32::try_from(groups).ok()?),
            ))
        };
        // The place does not count while one of its daemons is out.
        let (mut within, mut down) = (HashSet::new(), Vec::new());
        for daemon in dump.get("osds")?.as_array()? {
            let number = daemon.get("osd")?.as_u64()?;
            if daemon.get("in")?.as_u64()? == 1 {
                within.insert(number);
                if daemon.get("up")?.as_u64()? == 0 {
                    down.push(number);
                }
            }
        }
        let place = |place: &Value| {
            Some((place.get("pgid")?.as_str()?.to_owned(), numbers(place.get("osds"))?))
        };
        let all: Option<HashMap<_, _>> =
            dump.get("pg_upmap")?.as_array()?.iter().map(place).collect();
        let mut placed = all?;
        placed.retain(|_, daemons| daemons.iter().all(|daemon| within.contains(daemon)));
        let pools: Option<BTreeMap<_, _>> =
            dump.get("pools")?.as_array()?.iter().map(pool).collect();
        let pools = pools?;
        // The monitors forget a chosen place that is the one without a choice, too.
        for (name, (number, groups)) in &pools {
            for group in 0..*groups {
                let first = first_place(name, group, daemons).filter(|one| within.contains(one));
                if let Some(daemon) = first {
                    placed.entry(format!("{number}.{group:x}")).or_insert_with(|| vec![daemon]);
                }
            }
        }
        Some(Self { pools, placed, down })
    }

    fn down_beside(&self, daemon: u64) -> Option<u64> {
        self.down.iter().copied().find(|other| *other != daemon)
    }

    /// All groups, as Ceph writes them.
    fn groups(&self) -> impl Iterator<Item = String> + use<'_> {
        self.pools
            .values()
            .flat_map(|(pool, groups)| (0..*groups).map(move |group| format!("{pool}.{group:x}")))
    }

    fn lost_groups(&self, new_pool: &str, is_lost: impl Fn(&String) -> bool) -> LostGroups {
        let of_pool = |(name, (number, groups)): (&String, &(u64, u32))| {
            let lost = (0..*groups).filter(|group| is_lost(&format!("{number}.{group:x}")));
            let found = LostOfPool { number: *number, groups: *groups, lost: lost.collect() };
            (!found.lost.is_empty()).then(|| (name.clone(), found))
        };
        let pools = self.pools.iter().filter_map(of_pool).collect();
        LostGroups { pools, new_pool: new_pool.to_owned() }
    }
}

/// The daemon that a group has in the beginning; none for pools that are made later.
fn first_place(pool: &str, group: u32, daemons: u64) -> Option<u64> {
    let node = |number: &str| number.strip_prefix('.')?.parse::<u64>().ok()?.checked_sub(1);
    match pool {
        NAMES_POOL => Some(0),
        DATA_POOL | LOCAL_POOL => u64::from(group).checked_rem(daemons),
        _ => pool.strip_prefix(LOCAL_POOL).and_then(node),
    }
}

fn numbers(list: Option<&Value>) -> Option<Vec<u64>> {
    list?.as_array()?.iter().map(Value::as_u64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_without_a_chosen_place_are_asked_for() {
        let dump = json!({
            "pools": [{"pool": 2, "pool_name": "data.without.3", "pg_num": 12}],
            "osds": [{"osd": 0, "in": 1, "up": 1}, {"osd": 1, "in": 1, "up": 0}, {"osd": 2, "in": 0, "up": 0}],
            "pg_upmap": [
                {"pgid": "2.0", "osds": [0]}, {"pgid": "2.a", "osds": [1]}, {"pgid": "2.b", "osds": [2]}],
        });
        let map = GroupMap::of(&dump, 3).expect("a map");
        assert_eq!(map.placed, [("2.0".to_owned(), vec![0]), ("2.a".to_owned(), vec![1])].into());
        assert_eq!(map.groups().count(), 12);
        assert_eq!((map.down_beside(1), map.down_beside(0)), (None, Some(1)));
        let lost = map.lost_groups("data.2", |group| group == "2.a" || group == "2.3");
        assert_eq!(lost.pools["data.without.3"].lost, [3, 10].into());
        assert!(map.lost_groups("data.2", |_| false).pools.is_empty());
        assert!(GroupMap::of(&json!({}), 3).is_none());
    }

    #[test]
    fn groups_have_their_first_place_unless_its_daemon_is_out() {
        let places = |pool| [0, 1, 5].map(|group| first_place(pool, group, 3));
        assert_eq!(places("data"), [Some(0), Some(1), Some(2)]);
        assert_eq!(places("local.2"), [Some(1); 3]);
        assert_eq!(places("names"), [Some(0); 3]);
        assert_eq!(places("data.without.2"), [None; 3]);
        let dump = json!({
            "pools": [{"pool": 2, "pool_name": "data", "pg_num": 3}],
            "osds": [{"osd": 0, "in": 1, "up": 1}, {"osd": 1, "in": 1, "up": 0}, {"osd": 2, "in": 0, "up": 0}],
            "pg_upmap": [],
        });
        let map = GroupMap::of(&dump, 3).expect("a map");
        assert_eq!(map.placed, [("2.0".to_owned(), vec![0]), ("2.1".to_owned(), vec![1])].into());
    }
}
