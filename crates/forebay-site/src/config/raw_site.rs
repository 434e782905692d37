//! The configuration as the file has it, and its checks. Each fault names its line.
//! Looks up `slurm_user` in the name services. Never opens a path that the file names.

use std::path::{Path, PathBuf};
use std::time::Duration;

use forebay_directive::closest;
use forebay_host::users;
use serde::Deserialize;
use toml::Spanned;

use super::faults::Faults;
use super::pools::{RawPool, check_distinct, pool_of};
use super::{NODE_PORT, Site};

/// The user of slurmctld, unless the file names another one.
const SLURM_USER: &str = "slurm";
const STATE: &str = "/var/lib/forebay";
const SECRET: &str = "/etc/forebay/secret";
/// File servers that fail over take minutes; a user who waits for a reason does not want to wait for more.
const STAGE_OUT_RETRY: Duration = Duration::from_secs(300);
const NODE_WAIT: Duration = Duration::from_secs(300);
/// Slurm ends the call after 300 s, unless `OtherTimeout` is larger.
const START_WAIT: Duration = Duration::from_secs(240);
/// A file server that fails over takes minutes.
const STAGE_IDLE_MAX: Duration = Duration::from_secs(900);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSite {
    slurm_user: Option<Spanned<String>>,
    state: Option<Spanned<PathBuf>>,
    auth: Option<Spanned<String>>,
    munge_socket: Option<Spanned<PathBuf>>,
    secret: Option<Spanned<PathBuf>>,
    node_port: Option<Spanned<u16>>,
    check_nodes: Option<bool>,
    stage_out_retry: Option<Spanned<String>>,
    node_wait: Option<Spanned<String>>,
    start_wait: Option<Spanned<String>>,
    stage_idle_max: Option<Spanned<String>>,
    #[serde(default)]
    pool: Vec<Spanned<RawPool>>,
}

/// Parses the text of a file.
///
/// # Errors
/// All faults, or the first one of the syntax.
pub(super) fn parse(file: &Path, text: &str) -> Result<Site, Vec<String>> {
    let mut faults = Faults { file, text, found: Vec::new() };
    let written: RawSite = match toml::from_str(text) {
        Ok(written) => written,
        Err(error) => {
            let start = error.span().map_or(0, |span| span.start);
            faults.add(start, &with_suggestion(error.message()));
            return Err(faults.found);
        }
    };
    let site = checked(&written, &mut faults);
    match site {
        Some(site) if faults.found.is_empty() => Ok(site),
        _ => Err(faults.found),
    }
}

/// The message of the parser in one line, with the key that was meant.
fn with_suggestion(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default();
    let mut quoted = line.split('`').skip(1).step_by(2);
    let known: Vec<_> = match quoted.next() {
        Some(_) if line.starts_with("unknown field") => quoted.collect(),
        _ => return line.to_owned(),
    };
    let wrong = line.split('`').nth(1).unwrap_or_default();
    match closest(wrong, known.iter().copied()) {
        Some(meant) => format!("there is no key {wrong}; did you mean {meant}?"),
        None => format!("there is no key {wrong}; the keys are {}", known.join(", ")),
    }
}

fn checked(written: &RawSite, faults: &mut Faults) -> Option<Site> {
    let user = written.slurm_user.as_ref();
    let name = user.map_or(SLURM_USER, |user| user.get_ref());
    let place = user.map_or(0, |user| user.span().start);
    let slurm_user = match users::account_named(name) {
        Ok(Some(account)) if account.user == 0 => {
            faults.add(
                place,
                "slurm_user: slurmctld must not run as root; name the SlurmUser of slurm.conf",
            );
            None
        }
        Ok(Some(account)) => Some(account),
        Ok(None) => {
            faults.add(
                place,
                &format!("slurm_user: there is no user {name}; name the SlurmUser of slurm.conf"),
            );
            None
        }
        Err(error) => {
            faults.add(place, &format!("slurm_user: {error}"));
            None
        }
    };
    for (key, path) in [
        ("state", &written.state),
        ("munge_socket", &written.munge_socket),
        ("secret", &written.secret),
    ] {
        path.iter().for_each(|path| faults.path(key, path));
    }
    let port = written.node_port.as_ref().map_or(NODE_PORT, |port| *port.get_ref());
    if port == 0 {
        faults.add(
            written.node_port.as_ref().map_or(0, |port| port.span().start),
            "node_port: write a number from 1",
        );
    }
    if written.pool.is_empty() {
        faults.add(0, "there is no pool; add a table [[pool]] with name, kind, path, quantity and staging_nodes or nodes");
    }
    let pools: Vec<_> =
        written.pool.iter().filter_map(|pool| pool_of(pool, port, faults)).collect();
    check_distinct(&written.pool, faults);
    let secret = secret(written, faults);
    let engine = written.pool.iter().find_map(|pool| pool.get_ref().engine.as_ref());
    if let (Some(engine), Some(_)) = (engine, &secret) {
        let message =
            "engine: its nodes get a key that others must not read; auth = \"munge\" encrypts it";
        faults.add(engine.span().start, message);
    }
    Some(Site {
        file: faults.file.to_owned(),
        slurm_user: slurm_user?,
        state: written.state.as_ref().map_or_else(|| STATE.into(), |path| path.get_ref().clone()),
        munge_socket: written.munge_socket.as_ref().map(|path| path.get_ref().clone()),
        secret,
        node_port: port,
        checks_nodes: written.check_nodes.unwrap_or(true),
        stage_out_retry: faults.duration(
            "stage_out_retry",
            written.stage_out_retry.as_ref(),
            STAGE_OUT_RETRY,
        ),
        node_wait: faults.duration("node_wait", written.node_wait.as_ref(), NODE_WAIT),
        start_wait: faults.duration("start_wait", written.start_wait.as_ref(), START_WAIT),
        stage_idle_max: idle_max(written, faults),
        pools,
    })
}

/// The file of the secret; none with MUNGE.
fn secret(written: &RawSite, faults: &mut Faults) -> Option<PathBuf> {
    let has_secret = match written.auth.as_ref().map(|auth| (auth, auth.get_ref().as_str())) {
        None | Some((_, "munge")) => false,
        Some((_, "secret")) => true,
        Some((auth, other)) => {
            let message = format!("auth: there is no {other:?}; write \"munge\" or \"secret\"");
            faults.add(auth.span().start, &message);
            return None;
        }
    };
    let (key, unused, auth) = match has_secret {
        true => ("munge_socket", &written.munge_socket, "munge"),
        false => ("secret", &written.secret, "secret"),
    };
    if let Some(unused) = unused {
        faults.add(unused.span().start, &format!("{key}: it needs auth = \"{auth}\""));
    }
    let file = written.secret.as_ref().map_or_else(|| SECRET.into(), |path| path.get_ref().clone());
    has_secret.then_some(file)
}

/// A stopped process must lose its place, and one that works must keep it.
fn idle_max(written: &RawSite, faults: &mut Faults) -> Duration {
    let key = written.stage_idle_max.as_ref();
    let idle_max = faults.duration("stage_idle_max", key, STAGE_IDLE_MAX);
    if let Some(key) = key.filter(|_| idle_max < Duration::from_secs(1)) {
        faults.add(key.span().start, "stage_idle_max: at least \"1s\" is needed");
    }
    idle_max
}

#[cfg(test)]
mod tests {
    use super::super::NodeAddress;
    use super::*;

    const WHOLE: &str = r#"slurm_user = "nobody"
[[pool]]
name = "flash"
kind = "directory"
path = "/flash/pool"
granularity = "1GiB"
quantity = 10
reserve = "1500MiB"
staging_nodes = ["n1", "n2:99"]
"#;

    fn read(text: &str) -> Result<Site, String> {
        parse(Path::new("site.toml"), text).map_err(|faults| faults.join("\n"))
    }

    #[test]
    fn pool_counts_whole_granules_without_its_reserve() {
        let site = read(WHOLE).expect("valid");
        let pool = site.pool("flash").expect("pool");
        assert_eq!((pool.quantity, pool.reserve, pool.granularity_bytes), (8, 2, 1 << 30));
        assert_eq!(pool.staging_nodes[0], NodeAddress { name: "n1".into(), port: NODE_PORT });
        assert_eq!(pool.staging_nodes[1], NodeAddress { name: "n2".into(), port: 99 });
        assert_eq!(
            (pool.granules_of(1), pool.granules_of(1 << 30), pool.granules_of((1 << 30) + 1)),
            (1, 1, 2)
        );
        let by_capacity =
            read(&WHOLE.replace("quantity = 10", "capacity = \"10.5GiB\"")).expect("valid");
        assert_eq!(by_capacity.pools[0].quantity, 8);
        assert_eq!(
            site.pool("other").expect_err("none").to_string(),
            "there is no pool other; the pools are: flash"
        );
    }

    #[test]
    fn pool_of_nodes_has_the_space_of_all_its_nodes() {
        let text = WHOLE.replace("directory", "onnode").replace("staging_nodes", "nodes");
        let site = read(&text.replace("\"n1\", \"n2:99\"", "\"n[08-10]\", \"m1\"")).expect("valid");
        let pool = &site.pools[0];
        let names: Vec<_> = pool.staging_nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["n08", "n09", "n10", "m1"]);
        assert_eq!((pool.quantity, pool.reserve, pool.directory_bytes()), (32, 8, 8 << 30));
    }

    #[test]
    fn wrong_lists_of_nodes_are_named() {
        for (word, wanted) in [
            ("n[3-1]", "\"n[3-1]\" is no list of nodes: write for example n[1-16,20]"),
            ("n[1-3", "\"n[1-3\" is no list of nodes"),
            ("n[0-x]", "\"n[0-x]\" is no list of nodes"),
            ("n[0-3]", "n2 is named twice"),
        ] {
            let error = read(&WHOLE.replacen("n1", word, 1)).expect_err(word);
            assert!(error.contains(&format!("site.toml:9: staging_nodes: {wanted}")), "{error}");
        }
        let error = read(&WHOLE.replace("directory", "onnode")).expect_err("the wrong key");
        assert!(error.contains("site.toml:9: staging_nodes: a pool of this kind has nodes"));
        assert!(error.contains("site.toml:2: pool flash has no nodes; name nodes that have"));
    }

    #[test]
    fn engine_makes_one_namespace_of_nodes_and_needs_messages_that_are_encrypted() {
        let text = WHOLE.replace("directory", "onnode").replace("staging_nodes", "nodes");
        let with = |lines: &str| read(&text.replace("reserve", &format!("{lines}\nreserve")));
        let site = with("engine = \"ceph\"").expect("valid");
        assert_eq!(site.pools[0].access(), forebay_directive::AccessMode::Striped);
        let twice = with("engine = \"ceph\"\nredundancy = 2").expect("valid").pools.remove(0);
        let once = &site.pools[0];
        assert_eq!((once.quantity, twice.quantity), (16, 8));
        assert_eq!(once.directory_bytes(), twice.directory_bytes());
        for (lines, wanted) in [
            ("engine = \"gfs\"", "8: engine: write \"ceph\""),
            ("redundancy = 2", "8: redundancy: it needs an engine, which keeps the copies"),
            ("engine = \"ceph\"\nredundancy = 3", "9: redundancy: write 1 or 2"),
            (
                "engine = \"ceph\"\nquota = \"project\"",
                "8: engine: it limits its allocations itself; drop quota",
            ),
        ] {
            assert_eq!(with(lines).expect_err(lines), format!("site.toml:{wanted}"));
        }
        let error =
            read(&WHOLE.replace("reserve", "engine = \"ceph\"\nreserve")).expect_err("kind");
        assert!(error.contains("8: engine: it is for pools of kind \"onnode\""), "{error}");
        let text = text.replace("[[pool]]", "auth = \"secret\"\n[[pool]]");
        let error = read(&text.replace("reserve", "engine = \"ceph\"\nreserve")).expect_err("auth");
        assert!(error.contains("auth = \"munge\" encrypts it"), "{error}");
    }

    #[test]
    fn messages_are_signed_by_munge_or_a_secret() {
        let with = |lines: &str| read(&WHOLE.replace("[[pool]]", &format!("{lines}\n[[pool]]")));
        let secret_of = |lines: &str| with(lines).expect("valid").secret;
        assert_eq!((secret_of(""), secret_of("auth = \"munge\"")), (None, None));
        let usual = Some(PathBuf::from("/etc/forebay/secret"));
        assert_eq!(secret_of("auth = \"secret\""), usual);
        for (lines, wanted) in [
            ("auth = \"none\"", "2: auth: there is no \"none\"; write \"munge\" or \"secret\""),
            ("secret = \"/s\"", "2: secret: it needs auth = \"secret\""),
            (
                "auth = \"secret\"\nmunge_socket = \"/s\"",
                "3: munge_socket: it needs auth = \"munge\"",
            ),
        ] {
            assert_eq!(with(lines).expect_err(lines), format!("site.toml:{wanted}"));
        }
    }

    #[test]
    fn each_fault_is_named_with_its_line() {
        for (from, to, wanted) in [
            (
                "quantity = 10",
                "quantty = 10",
                "site.toml:7: there is no key quantty; did you mean quantity?",
            ),
            (
                "quantity = 10",
                "quantity = 0",
                "site.toml:2: pool flash: 0 granules of 1073741824 bytes: a pool has from",
            ),
            ("quantity = 10", "quantity = 9e9", "site.toml:7: invalid type: floating point"),
            (
                "quantity = 10",
                "quantity = 9000000000000",
                "site.toml:2: pool flash: 9000000000000 granules of",
            ),
            (
                "quantity = 10",
                "quantity = 10\ncapacity = \"1TiB\"",
                "site.toml:2: pool flash: give either quantity",
            ),
            ("quantity = 10", "", "site.toml:2: pool flash: give either quantity"),
            ("\"1GiB\"", "\"1Gi\"", "site.toml:6: granularity: \"1Gi\" is no size"),
            (
                "\"1500MiB\"",
                "\"10GiB\"",
                "site.toml:8: reserve: 10 of 10 granules leave none for jobs",
            ),
            (
                "\"directory\"",
                "\"servers\"",
                "site.toml:4: kind: Forebay has no storage servers of its own; run a file system such as CephFS",
            ),
            ("\"directory\"", "\"tape\"", "site.toml:4: kind: there is no kind \"tape\""),
            ("\"/flash/pool\"", "\"flash\"", "site.toml:5: path: \"flash\" is no absolute path"),
            (
                "\"/flash/pool\"",
                "\"/flash/../etc\"",
                "site.toml:5: path: \"/flash/../etc\" is no absolute path",
            ),
            ("\"/flash/pool\"", "\"/my flash\"", "site.toml:5: path: \"/my flash\" has blanks"),
            (
                "quantity = 10",
                "quantity = 10\nquota = \"user\"",
                "site.toml:8: quota: there is no quota \"user\"; write \"project\" or \"ceph\"",
            ),
            ("\"n1\"", "\"n2\"", "site.toml:9: staging_nodes: n2 is named twice"),
            ("\"n1\"", "\"n1:0\"", "site.toml:9: staging_nodes: \"n1:0\" is no node"),
            ("\"n1\"", "\"-x\"", "site.toml:9: staging_nodes: \"-x\" is no node"),
            ("\"n1\", \"n2:99\"", "", "site.toml:2: pool flash has no staging_nodes"),
            ("\"flash\"", "\"1flash\"", "site.toml:3: name: \"1flash\" is no name"),
            ("\"nobody\"", "\"no such\"", "site.toml:1: slurm_user: there is no user no such"),
            ("\"nobody\"", "\"root\"", "site.toml:1: slurm_user: slurmctld must not run as root"),
            ("[[pool]]", "node_wait = \"soon\"\n[[pool]]", "site.toml:2: node_wait: "),
            ("[[pool]]", "groups = 3\n[[pool", "site.toml:"),
        ] {
            let error = read(&WHOLE.replacen(from, to, 1)).expect_err(to);
            assert!(error.contains(wanted), "{to}: {error}");
        }
        let twice = format!("{WHOLE}{}", &WHOLE[WHOLE.find("[[").expect("table")..]);
        let error = read(&twice).expect_err("twice");
        assert!(error.contains("site.toml:11: name: there is a pool flash already"), "{error}");
        assert!(
            error.contains("site.toml:13: path: /flash/pool and /flash/pool of the pool flash"),
            "{error}"
        );
        assert!(read("").expect_err("empty").contains("there is no pool"));
    }
}
