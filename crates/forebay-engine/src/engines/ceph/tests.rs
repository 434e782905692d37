//! The plan, from a table of facts: no machine is looked at.

use std::collections::{BTreeMap, HashSet};

use forebay_ceph::{DATA_POOL, Programs};

use super::settings::{LEASE_RATIO_ALONE, REDUNDANT, SETTINGS, SINGLE, Setting};
use super::*;
use crate::host_facts::StoreFacts;
use crate::steps::{EngineStep, MissingServers, Role};
use crate::{Layout, Ready};

fn node(number: u8) -> HostFacts {
    let words = |name: &str| vec![format!("/usr/bin/{name}")];
    let programs = Programs {
        monitor: words("ceph-mon"),
        storage: words("ceph-osd"),
        metadata: words("ceph-mds"),
        mount: words("ceph-fuse"),
        monitor_map: words("monmaptool"),
        config_lines: Vec::new(),
        version: "16.2.15".to_owned(),
        library_directory: None,
        fusermount: None,
    };
    HostFacts {
        name: format!("n{number}"),
        hostname: format!("n{number}"),
        identity: number.to_string(),
        address: [10, 0, 0, number].into(),
        free_port: 3300,
        user_id: 1000,
        kernel: "6.1".to_owned(),
        processors: 2,
        has_fuse: true,
        can_mount_fuse: true,
        memory_available_bytes: 1 << 30,
        programs: BTreeMap::new(),
        ceph: Some(CephFacts::Found(Box::new(programs))),
        forebay: "/usr/bin/forebay".into(),
        ceph_preload: None,
        ceph_fuse_shows_waits: false,
        lacks_for_mount: None,
        store: StoreFacts {
            name: "memory".to_owned(),
            directory: "/dev/shm".into(),
            in_memory: true,
            usable_bytes: 1 << 30,
        },
        engine_bytes: None,
        unix_ms: 0,
    }
}

fn request(redundancy: u32) -> EngineRequest {
    EngineRequest {
        id: "7".to_owned(),
        directory: "/tmp/forebay-node-7".into(),
        capacity_bytes: 1 << 30,
        redundancy,
        layout: Layout::default(),
        user: "ada".to_owned(),
        metadata_servers: None,
        namespaces: vec!["striped".to_owned()],
        owner: (1000, 1000),
        seed: [[1; 16], [2; 16], [3; 16]],
        unix_s: 1_800_000_000,
    }
}

fn steps(redundancy: u32, nodes: u8) -> Vec<EngineStep> {
    let nodes: Vec<_> = (1..=nodes).map(node).collect();
    let plan = Ceph::default().plan(&request(redundancy), &nodes).expect("plan");
    plan.check(nodes.len()).expect("plan without contradictions");
    plan.steps
}

fn count(steps: &[EngineStep], program: &str) -> usize {
    let serves = |step: &&EngineStep| {
        step.ready != Ready::Ended && step.argv.iter().any(|word| word.ends_with(program))
    };
    steps.iter().filter(serves).count()
}

#[test]
fn servers_follow_from_nodes_and_redundancy() {
    // redundancy, nodes, monitors, metadata servers
    for (redundancy, nodes, monitors, metadata) in
        [(1, 1, 1, 1), (1, 2, 1, 1), (1, 4, 1, 1), (2, 2, 1, 2), (2, 3, 3, 2), (2, 4, 3, 2)]
    {
        let steps = steps(redundancy, nodes);
        assert_eq!(count(&steps, "ceph-mon"), monitors);
        assert_eq!(count(&steps, "ceph-mds"), metadata);
        assert_eq!(count(&steps, "ceph-osd"), usize::from(nodes));
        assert_eq!(count(&steps, "__mount"), usize::from(nodes));
    }
}

#[test]
fn no_node_listens_outside_of_the_network_of_the_job() {
    for step in steps(2, 3) {
        for file in step.files.iter().filter(|file| file.path.ends_with("ceph.conf")) {
            let own = format!("public addr = 10.0.0.{}", step.node + 1);
            assert!(file.text.contains(&own), "{}", file.text);
            assert!(file.text.contains("auth client required = cephx"));
        }
    }
}

#[test]
fn keys_are_in_private_files_and_in_no_command_line() {
    let steps = steps(1, 2);
    let texts = steps.iter().flat_map(|step| &step.files).map(|file| &file.text);
    let keys: HashSet<_> = texts
        .flat_map(|text| text.lines())
        .filter_map(|line| line.trim().strip_prefix("key = "))
        .collect();
    assert_eq!(keys.len(), 2, "one for daemons, one for mounts");
    for word in steps.iter().flat_map(|step| &step.argv) {
        assert!(!keys.iter().any(|key| word.contains(key)), "{word}");
    }
}

#[test]
fn mounts_may_set_layouts_but_not_the_capacity() {
    let steps = steps(1, 2);
    let keyring =
        steps.iter().flat_map(|step| &step.files).find(|file| file.path.ends_with("keyring"));
    let (_, mount) = keyring.and_then(|file| file.text.split_once("[client.job]")).expect("key");
    let rights = "allow rw path=/allocation, allow rwp path=/allocation/striped, allow rwp path=/allocation/.forebay-probes\"";
    assert!(mount.contains(rights), "{mount}");
}

#[test]
fn each_mount_has_a_fence_on_its_node() {
    for step in steps(1, 2).iter().filter(|step| step.role == Role::Mount) {
        let written = step.argv.iter().skip_while(|word| *word != "--addresses").nth(1);
        let fence = step.fence.as_deref().expect("a fence");
        assert_eq!(fence.node, step.node);
        assert!(fence.files[0].text.contains(&format!("\"addresses\":{:?}", written.unwrap())));
    }
}

/// A placement group that moves between running storage daemons sometimes never answers again.
#[test]
fn placement_groups_have_their_place_before_a_storage_daemon_runs() {
    for (redundancy, nodes) in [(1, 1), (1, 4), (2, 3)] {
        let steps = steps(redundancy, nodes);
        let place = steps.iter().find(|step| step.id == "n1.file-system").expect("step");
        let commands = &place.files.first().expect("commands").text;
        let at = |what: &str| commands.find(what).unwrap_or_else(|| panic!("no {what}"));
        assert!(at("osd crush add") < at("osd pool create") && at("osd in") < at("pg-upmap"));
        for daemon in steps.iter().filter(|step| step.id.ends_with(".storage")) {
            assert!(daemon.after.contains(&place.id), "{daemon:?}");
        }
        let elsewhere = steps.iter().filter(|step| step.id != place.id);
        let mut texts = elsewhere.flat_map(|step| &step.files).map(|file| &file.text);
        assert!(!texts.any(|text| text.contains("pg-upmap")));
    }
}

fn local(named: LayoutScope) -> Ceph {
    let layout = NamedLayout {
        named,
        pattern: "ckpt*".to_owned(),
        stripe_unit_bytes: None,
        placement: Placement::Local,
    };
    Ceph { layouts: vec![layout], ..Ceph::default() }
}

#[test]
fn local_pools_have_their_first_copy_on_their_node() {
    let nodes: Vec<_> = (1..=3).map(node).collect();
    for (redundancy, daemons) in [(1, "[2]"), (2, "[2,0]")] {
        let plan = local(LayoutScope::Files).plan(&request(redundancy), &nodes).expect("a plan");
        let make = plan.steps.iter().find(|step| step.id == "n1.file-system").expect("step");
        let commands = &make.files.first().expect("commands").text;
        // The pools get the numbers 1 to 6: names, data, local, local.1, local.2, local.3.
        let of_third = format!(r#""id":{daemons},"pgid":"6.f","prefix":"osd pg-upmap""#);
        assert!(commands.contains(&of_third), "{commands}");
        assert!(!commands.contains(r#""pgid":"6.10""#) && !commands.contains(r#""pgid":"7."#));
        let orders = ["\"data\"", "\"local\"", "\"local.1\"", "\"local.2\"", "\"local.3\""]
            .map(|pool| commands.find(&format!(r#""pool":{pool}"#)).expect(pool));
        assert!(orders.is_sorted(), "{commands}");
        assert_eq!(commands.matches("fs add_data_pool").count(), 4);
    }
    let striped = steps(1, 3);
    assert!(!striped.iter().flat_map(|step| &step.files).any(|file| file.text.contains("local")));
}

#[test]
fn mounts_know_the_pool_of_their_node_and_the_layouts() {
    let nodes: Vec<_> = (1..=2).map(node).collect();
    for (named, word) in [(LayoutScope::Files, "names"), (LayoutScope::Directories, "directories")]
    {
        let plan = local(named).plan(&request(1), &nodes).expect("a plan");
        let mounts = plan.steps.iter().filter(|step| step.role == Role::Mount);
        for (number, mount) in (1..).zip(mounts) {
            let words = mount.argv.join(" ");
            let expected =
                format!("--layout {word}:local:1048576:ckpt* --local-pool local.{number}");
            assert!(words.contains(&expected), "{words}");
        }
    }
}

#[test]
fn all_other_files_are_local_where_the_job_asks_for_it() {
    let nodes: Vec<_> = (1..=2).map(node).collect();
    for (which, count) in [(LocalFiles::All, 1), (LocalFiles::OnRequest, 0)] {
        let engine = local(LayoutScope::Directories).with_local_files(which).expect("it can");
        let plan = engine.plan(&request(1), &nodes).expect("a plan");
        let files = plan.steps.iter().flat_map(|step| &step.files);
        let of_namespace = "stripe_unit=1048576 stripe_count=1 object_size=1048576 pool=local";
        assert_eq!(files.filter(|file| file.text.contains(of_namespace)).count(), count);
        let is_named = engine.choices(&nodes).iter().any(|choice| choice.starts_with("files are"));
        assert_eq!(is_named, which == LocalFiles::All);
    }
    let fuse = Ceph { client: Some(MountClient::CephFuse), ..Ceph::default() };
    let plan = |which| fuse.with_local_files(which).expect("it can").plan(&request(1), &nodes);
    let error = plan(LocalFiles::All).expect_err("ceph-fuse");
    assert!(error.starts_with("placement=local needs the client forebay-mount"), "{error}");
    let steps = plan(LocalFiles::OnRequest).expect("a plan").steps;
    assert!(!steps.iter().flat_map(|step| &step.files).any(|file| file.text.contains("local.1")));
}

/// With files that stay on their node, one node may have all of them.
#[test]
fn each_node_takes_the_whole_capacity_as_far_as_its_store_has_room() {
    let mut nodes: Vec<_> = (1..=2).map(node).collect();
    nodes[1].store.usable_bytes = 700 << 20;
    let request = request(1);
    let of = |engine: &Ceph| {
        let plan = engine.plan(&request, &nodes).expect("a plan");
        let files = plan.steps.iter().flat_map(|step| &step.files);
        let lines = files.flat_map(|file| file.text.lines());
        let bytes = lines.filter_map(|line| line.strip_prefix("memstore device bytes = "));
        bytes.map(|bytes| bytes.parse::<u64>().expect("a number") >> 20).collect::<Vec<_>>()
    };
    // 512 MiB each, a quarter more, and 512 MiB; the first has the names of both.
    assert_eq!(of(&Ceph::default()), [1663, 1151]);
    assert_eq!(of(&local(LayoutScope::Files)), [2303, 1387]); // 1 GiB and 700 MiB
}

#[test]
fn files_that_stay_on_their_node_are_named() {
    let nodes = [node(1)];
    let of_files = local(LayoutScope::Files).choices(&nodes);
    assert_eq!(of_files[1], "files named ckpt* are stored on the node that creates them");
    let of_directories = local(LayoutScope::Directories).choices(&nodes);
    assert!(of_directories[1].starts_with("files below directories named ckpt* are stored"));
    assert_eq!(Ceph::default().choices(&nodes).len(), 1);
}

#[test]
fn mounts_come_last_and_stop_first() {
    let steps = steps(1, 2);
    let first = steps.iter().position(|step| step.role == Role::Mount).expect("mount");
    assert!(steps[first..].iter().all(|step| step.role == Role::Mount));
}

#[test]
fn requests_that_cannot_be_kept_are_named() {
    let all: Vec<_> = (1..=2).map(node).collect();
    let wide = Layout { stripe_count: Some(3), ..Layout::default() };
    let odd = Layout { stripe_unit_bytes: 100_000, ..Layout::default() };
    let large = Layout { stripe_unit_bytes: 256 << 20, ..Layout::default() };
    for (request, nodes, part) in [
        (request(3), &all[..], "redundancy of 3"),
        (request(2), &all[..1], "needs two nodes"),
        (EngineRequest { layout: wide, ..request(1) }, &all[..], "stripe count of 3"),
        (EngineRequest { capacity_bytes: 0, ..request(1) }, &all[..], "of node n1 has no space"),
        (with_servers(0, 1), &all[..], "write 1 to 16"),
        (with_servers(3, 1), &all[..], "3 metadata servers need 3 nodes, and the job has 2"),
        (with_servers(2, 2), &all[..], "one that takes over, need 3 nodes, and the job has 2"),
        (EngineRequest { layout: odd, ..request(1) }, &all[..], "a multiple of 65536"),
        (EngineRequest { layout: large, ..request(1) }, &all[..], "at most 134217728"),
    ] {
        let error = Ceph::default().plan(&request, nodes).expect_err(part);
        assert!(error.contains(part), "{error}");
    }
    let local = HostFacts { address: [127, 0, 0, 1].into(), ..node(2) };
    let error = Ceph::default().plan(&request(1), &[node(1), local]).expect_err("loopback");
    assert!(error.contains("n2"), "{error}");
    let of_ipv6 = HostFacts { address: [0xfd00_u16, 0, 0, 0, 0, 0, 0, 2].into(), ..node(2) };
    let error = Ceph::default().plan(&request(1), &[node(1), of_ipv6]).expect_err("IPv6");
    assert!(error.contains("n2") && error.contains("fd00::2"), "{error}");
}

fn with_servers(servers: u32, redundancy: u32) -> EngineRequest {
    EngineRequest { metadata_servers: Some(servers), ..request(redundancy) }
}

/// One more takes over if there are copies, and one may be lost.
#[test]
fn metadata_servers_share_the_directories_of_the_namespace() {
    let nodes: Vec<_> = (1..=3).map(node).collect();
    for (servers, redundancy, started, losses_max) in [(1, 1, 1, 0), (2, 1, 2, 0), (2, 2, 3, 1)] {
        let request = with_servers(servers, redundancy);
        let plan = Ceph::default().plan(&request, &nodes).expect("plan");
        plan.check(3).expect("plan without contradictions");
        assert_eq!(count(&plan.steps, "ceph-mds"), started);
        let group = plan.servers.iter().find(|group| group.servers[0].1.ends_with("metadata"));
        assert_eq!(group.map(|group| group.losses_max), Some(losses_max));
        let files = || plan.steps.iter().flat_map(|step| &step.files);
        let has = |text: &str| files().any(|file| file.text.contains(text));
        assert_eq!(has("max_mds"), servers > 1);
        assert_eq!(has("ceph.dir.pin.distributed"), servers > 1);
    }
}

/// `forebay run` is on the first node. Nothing is fenced before the loss of its storage daemon is proven.
#[test]
fn all_nodes_but_the_first_can_be_fenced_if_there_are_copies() {
    let nodes: Vec<_> = (1..=3).map(node).collect();
    let fences =
        |redundancy| Ceph::default().plan(&request(redundancy), &nodes).expect("a plan").fences;
    assert_eq!(fences(1), []);
    let fences = fences(2);
    let witnesses: Vec<_> = fences.iter().map(|fence| fence.witness.as_str()).collect();
    assert_eq!(witnesses, ["n2.storage", "n3.storage"]);
    for fence in &fences {
        assert_eq!(fence.step.node, 0);
        let text = &fence.step.files[0].text;
        let loss = text.find("wait_for_storage_loss").expect("proof of the loss");
        let address = format!("{}:0/0", nodes[fence.node].address);
        assert!(loss < text.find(&address).expect("the address of the node"), "{text}");
    }
}

#[test]
fn data_in_memory_without_copies_are_given_up_where_no_name_is() {
    let nodes: Vec<_> = (1..=3).map(node).collect();
    let losses = |request: &EngineRequest, nodes: &[HostFacts]| {
        let losses = Ceph::default().plan(request, nodes).expect("a plan").losses;
        losses.into_iter().map(|loss| loss.server).collect::<Vec<_>>()
    };
    assert_eq!(losses(&request(1), &nodes), ["n2.storage", "n3.storage"]);
    assert_eq!(losses(&request(2), &nodes), [""; 0]);
    let two_servers = EngineRequest { metadata_servers: Some(2), ..request(1) };
    assert_eq!(losses(&two_servers, &nodes), ["n3.storage"]);
    let mut one_disk = nodes.clone();
    one_disk[2].store.in_memory = false;
    assert_eq!(losses(&request(1), &one_disk), ["n2.storage"]);
    let old = Ceph { client: Some(MountClient::CephFuse), ..Ceph::default() };
    assert_eq!(old.plan(&request(1), &nodes).expect("a plan").losses, []);
}

/// Names that another node had would be lost with it.
#[test]
fn one_copy_of_the_names_is_on_the_first_node() {
    let commands = |redundancy| {
        let steps = steps(redundancy, 3);
        let make = steps.iter().find(|step| step.id == "n1.file-system").expect("step");
        make.files[0].text.clone()
    };
    let place = |group: &str, daemons: &str| {
        format!(r#""id":{daemons},"pgid":"1.{group}","prefix":"osd pg-upmap""#)
    };
    let one = commands(1);
    assert!(one.contains(&place("0", "[0]")) && one.contains(&place("f", "[0]")), "{one}");
    assert!(commands(2).contains(&place("1", "[1,2]")));
}

#[test]
fn mounts_know_what_is_lost_before_it_is_replaced() {
    let nodes: Vec<_> = (1..=3).map(node).collect();
    let plan = Ceph::default().plan(&request(1), &nodes).expect("a plan");
    let loss = &plan.losses[0];
    let text = |step: &EngineStep| step.files[0].text.clone();
    let (prepare, finish) = (text(&loss.prepare), text(&loss.finish));
    let at = |text: &str, what: &str| text.find(what).unwrap_or_else(|| panic!("no {what}"));
    assert!(at(&prepare, "note_lost_groups") < at(&prepare, "osd set"), "requests pause");
    assert!(!prepare.contains("osd out"), "no other daemon has the groups yet");
    assert!(at(&finish, "replace_lost_groups") < at(&finish, "osd out"));
    assert!(at(&finish, "osd out") < at(&finish, "wait_for_groups"));
    assert!(at(&finish, "wait_for_groups") < at(&finish, "osd unset"));
    assert_eq!(plan.announce_loss.iter().map(|step| step.node).collect::<Vec<_>>(), [0, 1, 2]);
    let file = "/tmp/forebay-node-7/ceph/lost-groups.json";
    assert!(plan.announce_loss.iter().all(|step| text(step).contains(file)));
    let mounts = plan.steps.iter().filter(|step| step.role == Role::Mount);
    assert!(mounts.map(|step| &step.argv).all(|words| words.contains(&file.to_owned())));
    assert!(text(&loss.fence).contains("10.0.0.2:0/0"));
}

/// Ceph 16.2.15 may keep requests for ever that reach a daemon without copies after its lease: the grace of heartbeats,
/// which is 20 s, times this ratio.
#[test]
fn daemon_that_stops_as_long_as_a_mount_may_hang_keeps_its_lease() {
    let number = |settings: &[Setting], name| {
        let value =
            settings.iter().find_map(|(found, value, _)| (*found == name).then_some(*value));
        value.expect(name).parse::<u32>().expect(name)
    };
    assert!(number(SINGLE, "osd pool default read lease ratio") * 20 > crate::HANG_S_MAX);
    let alone: u32 = LEASE_RATIO_ALONE.parse().expect("a ratio");
    assert!(alone * number(REDUNDANT, "osd heartbeat grace") > crate::HANG_S_MAX);
}

/// The monitor would make only the first 1,024 groups of a pool, and refuse the places of the others.
#[test]
fn pool_of_a_thousand_nodes_has_all_its_groups_from_the_beginning() {
    let initial = SETTINGS.iter().find(|(name, ..)| *name == "mon osd max initial pgs");
    let groups_max: usize = initial.expect("a setting").1.parse().expect("a number");
    assert!([256, 1000].map(striped_groups).iter().all(|&groups| groups <= groups_max));
}

fn striped_groups(nodes: usize) -> usize {
    let pools = placement::pools(nodes, false, 1);
    pools.iter().find(|pool| pool.name == DATA_POOL).expect("a pool").groups
}

/// A monitor on two busy processors needed 41 s, and 148 s while other programs ran there.
#[test]
fn monitor_has_the_time_for_the_places_of_a_thousand_nodes() {
    assert!(placement::placement_s_more(1000) >= 148);
    assert_eq!(placement::placement_s_more(4), 0);
}

#[test]
fn no_daemon_has_more_than_a_quarter_more_groups_than_the_average() {
    for nodes in 1..=1100 {
        let groups = striped_groups(nodes);
        assert!(groups.div_ceil(nodes) * nodes * 4 <= groups * 5, "{nodes} nodes: {groups} groups");
    }
}

/// The lease is long after a loss, and short again when all daemons are started again.
#[test]
fn daemons_with_copies_get_a_longer_lease_after_a_loss() {
    let nodes: Vec<_> = (1..=3).map(node).collect();
    let mut on_disk = nodes.clone();
    on_disk.iter_mut().for_each(|node| node.store.in_memory = false);
    for (redundancy, is_set) in [(1, false), (2, true)] {
        let plan = Ceph::default().plan(&request(redundancy), &nodes).expect("a plan");
        let storage =
            plan.servers.iter().find(|group| group.servers[0].1 == "n1.storage").expect("a group");
        let gone = |steps: &[&str]| MissingServers {
            ended: steps.iter().map(|&step| step.to_owned()).collect(),
            ..MissingServers::default()
        };
        assert_eq!(storage.due(&gone(&[])), None);
        assert_eq!(storage.due(&gone(&["n2.storage"])).is_some(), is_set);
        assert_eq!(storage.due(&gone(&["n2.storage", "n3.storage"])), None);
        let restart = Ceph::default().recover(&request(redundancy), &on_disk).expect("a plan");
        let mut files = restart.steps.iter().flat_map(|step| &step.files);
        assert!(files.any(|file| file.text.contains("config rm")));
    }
}

/// A name that was written before all daemons were up had one copy for some seconds.
#[test]
fn names_have_all_copies_from_the_beginning() {
    for redundancy in [1, 2] {
        let steps = steps(redundancy, 3);
        let mut servers = steps.iter().filter(|step| step.id.ends_with(".metadata"));
        let waits = servers.all(|step| step.after.iter().any(|id| id == "n1.storage-up"));
        assert_eq!(waits, redundancy > 1);
    }
}

#[test]
fn one_file_may_fill_the_allocation() {
    let all: Vec<_> = (1..=2).map(node).collect();
    for (capacity_bytes, is_set) in [(1 << 40, false), (8 << 40, true)] {
        let plan = Ceph::default().plan(&EngineRequest { capacity_bytes, ..request(1) }, &all);
        let plan = plan.expect("plan");
        let mut files = plan.steps.iter().flat_map(|step| &step.files);
        assert_eq!(files.any(|file| file.text.contains("max_file_size")), is_set);
    }
}

#[test]
fn different_versions_are_refused() {
    let mut newer = node(2);
    if let Some(CephFacts::Found(programs)) = &mut newer.ceph {
        programs.version = "18.2.4".to_owned();
    }
    let error = Ceph::default().plan(&request(1), &[node(1), newer]).expect_err("versions");
    assert!(error.contains("n1 has Ceph 16.2.15, and node n2 has 18.2.4"), "{error}");
}

#[test]
fn data_in_memory_cannot_be_recovered() {
    Ceph::default().recover(&request(1), &[node(1)]).expect_err("in memory");
    let mut on_disk = node(1);
    on_disk.store.in_memory = false;
    let plan = Ceph::default().recover(&request(1), &[on_disk]).expect("plan");
    plan.check(1).expect("plan without contradictions");
    assert!(!plan.steps.iter().any(|step| step.argv.iter().any(|word| word == "--mkfs")));
}

/// Nothing in it has a part for each pair of nodes.
#[test]
fn plan_grows_with_the_nodes_and_not_with_their_square() {
    let size = |count: u8| {
        let nodes: Vec<_> = (1..=count).map(node).collect();
        let plan = Ceph::default().plan(&request(1), &nodes).expect("plan");
        serde_json::to_string(&plan).expect("JSON").len()
    };
    let (few, many) = (size(50), size(200));
    assert!(many < 5 * few, "{few} and {many} bytes");
}

#[test]
fn what_a_node_lacks_is_named_with_its_package() {
    let mut bare = HostFacts { has_fuse: false, can_mount_fuse: false, ..node(2) };
    bare.ceph = Some(CephFacts::Missing(vec![("ceph-osd".to_owned(), "ceph-osd".to_owned())]));
    let missing = Ceph::default().missing(&bare);
    let names: Vec<_> = missing.iter().map(|one| one.what.as_str()).collect();
    assert_eq!(names, ["ceph-osd", "/dev/fuse that you can open", "fusermount3"]);
    assert!(missing.iter().all(|one| one.remedy.contains("n2")), "{missing:?}");
    assert_eq!(Ceph::default().missing(&node(1)), []);
}

/// All nodes have the same client: the two lock files in different ways.
#[test]
fn older_library_of_one_node_gives_all_nodes_ceph_fuse() {
    let reason = "libcephfs.so.2 has no function ceph_ll_setlk";
    let old = HostFacts { lacks_for_mount: Some(reason.to_owned()), ..node(2) };
    let nodes = [node(1), old];
    let best = Ceph::default();
    let plan = best.plan(&request(1), &nodes).expect("plan");
    assert_eq!(count(&plan.steps, "ceph-fuse"), 2);
    assert_eq!(count(&plan.steps, "__mount"), 0);
    let choice = best.choices(&nodes).join(" ");
    assert!(choice.contains("ceph-fuse") && choice.contains("n2") && choice.contains(reason));
    let promise = best.promise(1, true, &nodes);
    assert!(!promise.atomic_append && !promise.shared_mmap && promise.deviations.len() == 11);
    let own = Ceph { client: Some(MountClient::ForebayMount), ..Ceph::default() };
    let error = own.plan(&request(1), &nodes).expect_err("cannot run");
    assert!(error.contains("n2") && error.contains(reason), "{error}");
}

#[test]
fn client_follows_the_profile() {
    let fuse = Ceph { client: Some(MountClient::CephFuse), ..Ceph::default() };
    let nodes = [node(1), node(2)];
    let steps = fuse.plan(&request(1), &nodes).expect("plan").steps;
    assert_eq!(count(&steps, "ceph-fuse"), 2);
    assert!(!fuse.promise(1, true, &nodes).atomic_append);
    let promise = Ceph::default().promise(1, true, &nodes);
    assert!(promise.atomic_append && promise.shared_mmap && promise.locks);
    assert_eq!(Ceph::default().choices(&nodes), ["the mounts use forebay-mount"]);
}

#[test]
fn client_finds_the_libraries_of_a_bundle() {
    let mut bundled = node(1);
    if let Some(CephFacts::Found(programs)) = &mut bundled.ceph {
        programs.library_directory = Some("/bundle/lib".into());
    }
    let steps = Ceph::default().plan(&request(1), &[bundled]).expect("plan").steps;
    let mount = steps.iter().find(|step| step.role == Role::Mount).expect("mount");
    assert!(mount.argv.windows(2).any(|pair| pair == ["--libraries", "/bundle/lib"]));
    assert!(!mount.environment.contains_key("LD_PRELOAD"));
}

#[test]
fn mount_that_may_not_be_woken_has_no_cache() {
    let library = std::path::PathBuf::from("/usr/lib/forebay/libforebay_ceph_preload.so");
    let with = |ceph_fuse_shows_waits| HostFacts {
        ceph_preload: Some(library.clone()),
        ceph_fuse_shows_waits,
        ..node(1)
    };
    let own = Some(MountClient::ForebayMount);
    let fuse = Some(MountClient::CephFuse);
    for (client, node, has_cache) in [
        (fuse, with(true), true),
        (fuse, with(false), false),
        (fuse, node(1), false),
        (own, with(false), true),
        (own, node(1), false),
    ] {
        let plan = Ceph { client, ..Ceph::default() }.plan(&request(1), &[node]).expect("plan");
        let mut files = plan.steps.iter().flat_map(|step| &step.files);
        let config = files.find(|file| file.path.ends_with("ceph.conf")).expect("configuration");
        assert_eq!(config.text.contains("client oc = false"), !has_cache, "{client:?}");
        let mount = plan.steps.iter().find(|step| step.role == Role::Mount).expect("mount");
        let preload = mount.environment.get("LD_PRELOAD").map(String::as_str);
        assert_eq!(preload, has_cache.then(|| library.to_str().expect("text")));
    }
}
