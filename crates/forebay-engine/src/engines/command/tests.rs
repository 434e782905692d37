//! Plans from facts, without a machine.

use std::path::Path;

use super::*;
use crate::engine::{Coherence, Layout};
use crate::host_facts::StoreFacts;
use crate::profile::{Profile, ProfileEngine};

const TEXT: &str = r#"
engine = "command"
mount = "/flash/{{ user }}/{{ job }}"
programs = ["lfs"]
[promise]
coherence = "strict"
[environment]
POOL = "nvme"
[[start]]
on = "first"
command = "mkdir {{ mount | quote }} {{ capacity_bytes }}"
time_s_max = 7
[[start]]
on = "every"
command = "attach {{ node }}"
[[stop]]
on = "every"
command = "detach"
[[stop]]
on = "first"
command = "rmdir {{ mount }}"
[status]
on = "every"
command = "true"
[capacity]
on = "first"
command = "echo {{ nodes }}"
"#;

fn driver(text: &str) -> Command {
    let profile = Profile::parse("flash", Path::new("/p.toml"), text).expect("a profile");
    match profile.engine {
        ProfileEngine::Command(profile) => Command::new("flash", profile),
        ProfileEngine::Ceph(_) => panic!("another engine"),
    }
}

fn node(name: &str) -> HostFacts {
    HostFacts {
        name: name.to_owned(),
        hostname: name.to_owned(),
        identity: name.to_owned(),
        address: [10, 0, 0, 1].into(),
        free_port: 1,
        user_id: 1,
        kernel: String::new(),
        processors: 1,
        has_fuse: false,
        can_mount_fuse: false,
        memory_available_bytes: 0,
        programs: BTreeMap::new(),
        forebay: "/forebay".into(),
        ceph_preload: None,
        ceph_fuse_shows_waits: false,
        lacks_for_mount: None,
        store: StoreFacts {
            name: "/s".to_owned(),
            directory: "/s".into(),
            in_memory: false,
            usable_bytes: 1,
        },
        ceph: None,
        engine_bytes: None,
        unix_ms: 0,
    }
}

fn request() -> EngineRequest {
    EngineRequest {
        id: "7".to_owned(),
        directory: "/tmp/d".into(),
        capacity_bytes: 4096,
        redundancy: 1,
        layout: Layout::default(),
        user: "ada".to_owned(),
        metadata_servers: None,
        namespaces: vec!["striped".to_owned()],
        owner: (1, 1),
        seed: [[0; 16]; 3],
        unix_s: 0,
    }
}

#[test]
fn plan_notes_stops_before_it_starts_anything() {
    let nodes = [node("n1"), node("n2")];
    let plan = driver(TEXT).plan(&request(), &nodes).expect("a plan");
    assert_eq!(plan.check(2), Ok(()));
    let ids: Vec<_> = plan.steps.iter().map(|step| step.id.as_str()).collect();
    assert_eq!(
        ids,
        [
            "n1.prepare",
            "n2.prepare",
            "n1.stop-2",
            "n1.stop-1",
            "n2.stop-1",
            "n1.start-1",
            "n1.start-2",
            "n2.start-2",
            "n1.mount",
            "n2.mount",
            "n1.status",
            "n2.status"
        ]
    );
    let words = &plan.steps[5].argv;
    assert_eq!(words[..5], ["env", "POOL=nvme", "timeout", "--kill-after=5", "7"]);
    assert!(words[7].ends_with("mkdir '/flash/ada/7' 4096"), "{words:?}");
    assert!(plan.steps[7].argv[7].ends_with("attach n2"));
    assert!(
        matches!(&plan.steps[2].stop, Stop::Command(words) if words[7].ends_with("rmdir /flash/ada/7"))
    );
    assert!(plan.steps[8].argv.contains(&"/flash/ada/7".to_owned()));
    assert_eq!(plan.mount, Path::new("/tmp/d/mount"));
}

#[test]
fn capacity_command_runs_on_its_nodes_only() {
    let asked = |node| CapacityCommand { id: "7", user: "ada", names: &["n1", "n2"], node };
    let first = driver(TEXT).capacity(&asked(0)).expect("words").expect("a command");
    assert!(first[7].ends_with("echo n1,n2"), "{first:?}");
    assert_eq!(driver(TEXT).capacity(&asked(1)), Ok(None));
}

#[test]
fn driver_refuses_what_the_profile_does_not_keep() {
    let driver = driver(TEXT);
    assert_eq!(driver.promise(1, false, &[]).coherence, Coherence::Strict);
    let twice = EngineRequest { redundancy: 2, ..request() };
    let refused = driver.plan(&twice, &[node("n1"), node("n2")]).expect_err("refused");
    assert!(refused.contains("redundancy of 2"), "{refused}");
    assert_eq!(driver.missing(&node("n1"))[0].what, "lfs");
    assert!(driver.recover(&request(), &[node("n1")]).is_err());
}

#[test]
fn driver_enforces_and_mounts_only_what_the_profile_says() {
    let linked = driver(TEXT);
    assert_eq!((linked.enforces_capacity(), linked.mounts()), (false, false));
    let mount = "mount = \"/flash/{{ user }}/{{ job }}\"";
    let mounted = driver(&TEXT.replace(mount, "mounted = true\nquota = true"));
    assert_eq!((mounted.enforces_capacity(), mounted.mounts()), (true, true));
}
