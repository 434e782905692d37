//! The settings of Ceph for a cluster that lives as long as a job, each with its reason. Ceph's own values
//! are for data centres.

/// A setting: name, value, reason.
pub(super) type Setting = (&'static str, &'static str, &'static str);

/// Settings of all daemons and mounts.
pub(super) const SETTINGS: &[Setting] = &[
    ("auth cluster required", "cephx", "no daemon without a key"),
    ("auth service required", "cephx", "no client without a key"),
    ("auth client required", "cephx", "no foreign cluster for a client"),
    (
        "auth allow insecure global id reclaim",
        "false",
        "all clients of these versions can do without",
    ),
    (
        "ms bind msgr1",
        "false",
        "one port for each daemon: all clients speak version 2 of the protocol",
    ),
    ("ms bind ipv6", "false", "addresses of the job's network"),
    ("admin socket", "", "nobody asks the daemons; a path of a socket has at most 107 bytes"),
    ("log to stderr", "true", "the agent keeps standard error"),
    ("err to stderr", "true", "the agent keeps standard error"),
    ("log to file", "false", "the agent keeps standard error"),
    ("mon cluster log to file", "false", "the logs of the daemons have what is needed"),
    ("mon allow pool size one", "true", "one copy unless redundancy is requested"),
    ("osd pool default min size", "1", "with two copies, one is enough to go on"),
    (
        "osd pool default pg autoscale mode",
        "off",
        "the autoscaler is part of the manager, which is not started",
    ),
    (
        "mon osd max initial pgs",
        "65536",
        "a pool has all its groups from the beginning: nobody adds the rest without a manager",
    ),
    ("osd crush chooseleaf type", "0", "copies on different storage daemons: one for each node"),
    ("osd crush update on start", "false", "each daemon has its place before it starts"),
    ("mon election timeout", "1", "monitors find each other within seconds"),
    ("paxos propose interval", "0.05", "a change of the maps does not wait a second"),
    ("paxos min wait", "0.02", "a change of the maps does not wait"),
    (
        "mon osd crush smoke test",
        "false",
        "it may take as long as a lease: on a busy node the monitor refuses a pool otherwise",
    ),
    ("mon tick interval", "1", "failures are looked at each second"),
    (
        "mds tick interval",
        "0.1",
        "files that another node wrote are read and removed without waiting for a tick of 5 s",
    ),
    (
        "mds dirstat min interval",
        "0",
        "the quota counts what was written at once, not what was written a second ago",
    ),
    (
        "mds log max segments",
        "16",
        "the journal of names takes 64 MiB of the first node, and not 512 MiB after some hours",
    ),
    ("osd memory target", "939524096", "the least that a storage daemon accepts"),
    (
        "bdev aio poll ms",
        "5",
        "each close of a BlueStore file waits for a poll of 250 ms otherwise",
    ),
    ("bluestore fsck on mkfs", "false", "a new store has no errors"),
    ("mon data avail warn", "1", "the maps are small, and the disk is that of other programs"),
    ("mon data avail crit", "0", "a disk that others fill does not end the cluster"),
    ("mon osd full ratio", "0.97", "the quota is the limit that users meet"),
    ("mon osd backfillfull ratio", "0.96", "below the full ratio"),
    ("mon osd nearfull ratio", "0.95", "below the backfillfull ratio"),
    ("fuse disable pagecache", "true", "the kernel's cache does not know what other nodes write"),
    ("fuse allow other", "false", "an ordinary user may mount, and only that user may look"),
    (
        "client dirsize rbytes",
        "false",
        "the size of a directory does not change with its files: tar compares it",
    ),
    (
        "client caps release delay",
        "0",
        "other nodes see a closed file fast after 1 s, and not after 5 s",
    ),
    ("client quota df", "true", "df shows the capacity of the allocation"),
    ("client die on failed remount", "false", "an ordinary user cannot remount"),
];

/// The lease of a daemon that is alone in its groups after a loss, as a multiple of the grace of heartbeats of
/// [`REDUNDANT`]: 120 s, as with one copy.
pub(super) const LEASE_RATIO_ALONE: &str = "30";

/// Settings with one copy: nothing takes over, so there is no hurry to notice a loss.
pub(super) const SINGLE: &[Setting] = &[
    ("mds beacon interval", "1", "the metadata server is known to be active within a second"),
    ("osd heartbeat interval", "2", "little traffic"),
    (
        "osd pool default read lease ratio",
        "6",
        "times the grace of 20 s: a daemon without copies that stops for longer never answers what waits for it",
    ),
    (
        "osd min pg log entries",
        "100",
        "an entry takes 11 KB of memory, and nothing recovers from them",
    ),
    (
        "osd max pg log entries",
        "200",
        "a daemon would keep 300,000 otherwise, which takes more than 3 GB",
    ),
    (
        "osd pg log dups tracked",
        "300",
        "more than the requests that wait for one placement group when a connection is lost",
    ),
];

/// Settings with two copies: a loss is noticed within seconds.
pub(super) const REDUNDANT: &[Setting] = &[
    ("mds beacon interval", "0.3", "a lost metadata server is noticed"),
    ("mds beacon grace", "2", "a lost metadata server is noticed"),
    ("mds beacon mon down grace", "2", "also right after a monitor was lost"),
    (
        "mds reconnect timeout",
        "30",
        "a mount behind a link that is down is not excluded by the server that takes over. A fence ends the wait",
    ),
    ("mon lease", "1.5", "a lost monitor is noticed"),
    ("mon elector ping timeout", "1", "a lost monitor is noticed"),
    ("osd heartbeat interval", "1", "a lost node is noticed"),
    ("osd min pg log entries", "250", "an entry takes 11 KB of memory"),
    (
        "osd max pg log entries",
        "500",
        "a daemon that was away for seconds gets what it missed from them",
    ),
    ("osd pg log dups tracked", "500", "a request that is sent again is not carried out twice"),
    ("osd heartbeat grace", "4", "a lost node is noticed"),
    ("mon osd min down reporters", "1", "with two nodes, one reports the other"),
    ("mon osd adjust heartbeat grace", "false", "the limit of a lost node is the one stated"),
    ("mon client ping interval", "1", "a lost monitor is left"),
    ("mon client ping timeout", "3", "a lost monitor is left"),
    ("mon client hunt interval", "1", "a lost monitor is left"),
    ("objecter tick interval", "1", "a request to a lost node is sent again"),
    ("objecter timeout", "2", "a request to a lost node is sent again"),
];

/// Settings of a mount without the preload library. A cache that is flushed for another node is where the
/// client forgets to wake who waits (see `forebay-ceph-preload`); without the cache each write is a message.
const WITHOUT_PRELOAD: &[Setting] =
    &[("client oc", "false", "a write may never return once another node writes the file")];

/// The settings as lines of the section `[global]`.
pub(super) fn lines(is_redundant: bool, has_preload: bool) -> String {
    let more = if is_redundant { REDUNDANT } else { SINGLE };
    let mount = if has_preload { &[] } else { WITHOUT_PRELOAD };
    let all = SETTINGS.iter().chain(more).chain(mount);
    all.map(|(name, value, _)| format!("{name} = {value}\n")).collect()
}
