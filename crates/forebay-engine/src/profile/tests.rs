use super::*;

const RIGHT: &str = "engine = 'command'\nmount = '/x/{{ job }}'\n[promise]\ncoherence = 'strict'\n\
    [[start]]\non = 'first'\ncommand = 'a {{ mount }}'\n[[stop]]\non = 'every'\ncommand = 'b'\n";

fn error(text: &str) -> String {
    Profile::parse("p", Path::new("/p.toml"), text).expect_err(text)
}

#[test]
fn options_of_ceph_are_read() {
    let text = "engine = 'ceph'\nredundancy = 2\nstripe_bytes = 65536\nstore = '/nvme'";
    let profile = Profile::parse("p", Path::new("/p.toml"), text).expect("a profile");
    assert_eq!((profile.redundancy, profile.stripe_bytes), (Some(2), Some(65536)));
    assert_eq!(profile.store.as_deref(), Some(Path::new("/nvme")));
    assert_eq!(profile.driver().name(), "ceph");
    assert_eq!(profile.engine, ProfileEngine::Ceph(Ceph::default()));
    for client in MountClient::ALL {
        let text = format!("engine = 'ceph'\nclient = '{}'", client.name());
        let profile = Profile::parse("p", Path::new("/p.toml"), &text).expect("a profile");
        let ceph = Ceph { client: Some(client), ..Ceph::default() };
        assert_eq!(profile.engine, ProfileEngine::Ceph(ceph));
    }
}

#[test]
fn layouts_are_read() {
    let text = "engine = 'ceph'\n[[layouts]]\nnames = '*.h5'\nstripe_bytes = 4194304\n\
        [[layouts]]\ndirectories = 'ckpt*'\nplacement = 'local'";
    let profile = Profile::parse("p", Path::new("/p.toml"), text).expect("a profile");
    let layouts = vec![
        NamedLayout {
            named: LayoutScope::Files,
            pattern: "*.h5".to_owned(),
            stripe_unit_bytes: Some(4 << 20),
            placement: Placement::Striped,
        },
        NamedLayout {
            named: LayoutScope::Directories,
            pattern: "ckpt*".to_owned(),
            stripe_unit_bytes: None,
            placement: Placement::Local,
        },
    ];
    assert_eq!(profile.engine, ProfileEngine::Ceph(Ceph { layouts, ..Ceph::default() }));
}

#[test]
fn installed_profiles_enforce_the_capacity_only_with_a_quota() {
    for (text, enforces) in [
        (include_str!("../../../../profiles/beeond.toml"), false),
        (include_str!("../../../../profiles/cephfs-directory.toml"), true),
        (include_str!("../../../../profiles/daos.toml"), false),
        (include_str!("../../../../profiles/flash-directory.toml"), false),
        (include_str!("../../../../profiles/lod.toml"), false),
    ] {
        let profile = Profile::parse("p", Path::new("/p.toml"), text).expect(text);
        assert_eq!(profile.driver().enforces_capacity(), enforces, "{text}");
    }
}

#[test]
fn errors_name_file_line_and_key() {
    assert!(Profile::parse("p", Path::new("/p.toml"), RIGHT).is_ok());
    for (text, place, part) in [
        ("engine = 'cephh'".to_owned(), "/p.toml:1:", "did you mean ceph?"),
        ("engine = 'ceph'\nredundncy = 2".to_owned(), "/p.toml:2:", "did you mean redundancy?"),
        ("engine = 'ceph'\nmount = '/x'".to_owned(), "/p.toml:2:", "not of ceph"),
        (
            "engine = 'ceph'\nclient = 'ceph-fus'".to_owned(),
            "/p.toml:2:",
            "did you mean ceph-fuse?",
        ),
        (format!("client = 'ceph-fuse'\n{RIGHT}"), "/p.toml:1:", "not of command"),
        (
            "engine = 'ceph'\n[[layouts]]\nnames = '[x'\nstripe_bytes = 65536".to_owned(),
            "/p.toml:3:",
            "layouts: names: invalid range pattern",
        ),
        (
            "engine = 'ceph'\n[[layouts]]\nnames = 'out/*'\nstripe_bytes = 65536".to_owned(),
            "/p.toml:3:",
            "without /",
        ),
        ("engine = 'ceph'\n[[layouts]]\nnames = '*'".to_owned(), "/p.toml:3:", "or placement"),
        (
            "engine = 'ceph'\n[[layouts]]\nnames = '*'\ndirectories = '*'".to_owned(),
            "/p.toml:2:",
            "either names or directories",
        ),
        (
            "engine = 'ceph'\n[[layouts]]\nnames = '*'\nplacement = 'lokal'".to_owned(),
            "/p.toml:4:",
            "did you mean local?",
        ),
        (
            format!("{RIGHT}[[layouts]]\nnames = '*'\nstripe_bytes = 65536"),
            "/p.toml:",
            "not of command",
        ),
        ("engine = 'ceph'\nstore = 'x'".to_owned(), "/p.toml:2:", "relative"),
        ("engine = 'command'".to_owned(), "/p.toml:1:", "coherence is missing"),
        (RIGHT.replace("/x/{{ job }}", "/x/{{ jbo }}"), "/p.toml:2:", "did you mean job?"),
        (RIGHT.replace("'a {{ mount }}'", "'a {{ mout }}'"), "/p.toml:7:", "did you mean mount?"),
        (RIGHT.replace("strict", "strickt"), "/p.toml:4:", "did you mean strict?"),
        (RIGHT.replace("'b'", "'b'\ntime_s_max = 111"), "/p.toml:11:", "from 1 to 110"),
        (RIGHT.replace("'b'", "'b'\ninterval_s = 1"), "/p.toml:11:", "a key of status"),
        (RIGHT.replace("every", "evry"), "/p.toml:9:", "did you mean every?"),
        (RIGHT.replace("[promise]", "quota = true\n[promise]"), "/p.toml:3:", "capacity_bytes"),
        ("engine =".to_owned(), "/p.toml:1:", ""),
    ] {
        let message = error(&text);
        assert!(message.starts_with(place) && message.contains(part), "{text}: {message}");
    }
}
