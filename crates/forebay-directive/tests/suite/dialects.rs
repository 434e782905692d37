//! Distinguishing DataWarp and NNF (Rabbit).

use forebay_directive::{AccessMode, Direction, Stage, StageKind, stages_of_list};

use crate::{JOBDW, all_bad, assert_begins, bad, good};

const NNF: &str = "#DW jobdw type=lustre capacity=10GiB name=my-data";

#[test]
fn nnf_allocation_is_one_striped_namespace_under_its_name() {
    for kind in ["xfs", "gfs2", "lustre"] {
        let made = good(&format!("#DW jobdw type={kind} capacity=10GiB name=my-data"));
        let job = made.job.expect("an allocation");
        assert_eq!(job.access, [AccessMode::Striped]);
        assert_eq!(job.capacity_bytes, Some(10 << 30));
        assert_eq!(job.variable(AccessMode::Striped), "DW_JOB_my_data");
        assert!(made.warnings.is_empty());
    }
    for line in [NNF, JOBDW] {
        let made = good(&format!("{line} profile=fast"));
        assert!(made.warnings.is_empty());
        assert_eq!(made.job.and_then(|job| job.profile).as_deref(), Some("fast"));
    }
    for (word, copies) in [("", None), (" redundancy=1", Some(1)), (" redundancy=2", Some(2))] {
        let made = good(&format!("{JOBDW}{word}"));
        assert!(made.warnings.is_empty());
        assert_eq!(made.job.and_then(|job| job.redundancy), copies);
    }
    bad(&format!("{JOBDW} redundancy=3"));
    for (words, layout) in [
        ("", (false, None)),
        (" placement=striped", (false, None)),
        (" placement=local stripe_bytes=4MiB", (true, Some(4 << 20))),
    ] {
        let job = good(&format!("{JOBDW}{words}")).job.expect("a job");
        assert_eq!((job.is_local, job.stripe_bytes), layout);
    }
    bad(&format!("{JOBDW} placement=near"));
    bad(&format!("{JOBDW} stripe_bytes=much"));
    let found = bad(&format!("{NNF}\n{}", NNF.replace("my-", "other-")));
    assert_begins(&found, "2:5 a second jobdw; the first is at line 1, column 5 | a job has one");
}

/// The only stage of a script with both kinds of NNF allocations.
fn copy(line: &str) -> Stage {
    let found = good(&format!("{NNF}\n#DW persistentdw name=proj-1\n#DW {line}"));
    match [found.stage_in, found.stage_out].concat().as_slice() {
        [stage] => stage.clone(),
        stages => panic!("{line}\n{stages:#?}"),
    }
}

#[test]
fn nnf_copies_become_stages_of_existing_sources() {
    for (line, kind, persistent, inner, pfs) in [
        (
            "copy_in source=/g/a destination=$DW_JOB_my_data/in/",
            StageKind::Path,
            None,
            "in/",
            "/g/a",
        ),
        ("copy_in source=/g/a destination=${DW_JOB_my-data}", StageKind::Path, None, "", "/g/a"),
        (
            "copy_out source=$DW_PERSISTENT_proj_1/b destination=%d/",
            StageKind::Path,
            Some("proj_1"),
            "b",
            "/scratch/ada/my run/",
        ),
        (
            "copy_out source=$DW_PERSISTENT_proj-1/b destination=/g/b",
            StageKind::Path,
            Some("proj-1"),
            "b",
            "/g/b",
        ),
    ] {
        let found = copy(line);
        let found = (
            found.kind,
            found.persistent.as_deref(),
            found.inner_path.as_str(),
            found.pfs_path.as_str(),
        );
        assert_eq!(found, (kind, persistent, inner, pfs), "{line}");
    }
}

#[test]
fn nnf_source_without_a_name_means_directory_contents() {
    for line in [
        "copy_in source=/g/a/ destination=$DW_JOB_my_data/in",
        "copy_in source=/g/a/. destination=$DW_JOB_my_data/in",
        "copy_in source=/g/a/.. destination=$DW_JOB_my_data/in",
        "copy_out source=$DW_JOB_my_data/out/ destination=/g",
        "copy_out source=$DW_JOB_my_data/ destination=/g",
        "copy_out source=$DW_JOB_my_data destination=/g",
        "copy_out source=$DW_PERSISTENT_proj_1 destination=/g",
    ] {
        assert_eq!(copy(line).kind, StageKind::Directory, "{line}");
    }
}

#[test]
fn types_of_older_nnf_copies_are_used() {
    let of_type = |kind: &str, line: &str| copy(&format!("copy_{line} type={kind}")).kind;
    let into = "in source=/g/a destination=$DW_JOB_my_data/a";
    assert_eq!(of_type("file", into), StageKind::File);
    assert_eq!(of_type("directory", into), StageKind::Directory);
    assert_eq!(of_type("list", "in source=/g/list"), StageKind::List);
    let found = bad("#DW copy_in type=list source=/g/list");
    assert_begins(
        &found,
        "1:5 staging without an allocation | add a line such as: #DW jobdw type=xfs",
    );
    let list = copy("copy_out type=list source=/g/list");
    let lines = "$DW_JOB_my_data/a /g/a\n$DW_PERSISTENT_proj_1/b /g/b\n";
    let stages = stages_of_list(lines, Direction::Out, &list.naming).expect("right");
    assert_eq!(stages[1].persistent.as_deref(), Some("proj_1"));
    let other = stages_of_list("$DW_JOB_STRIPED/a /g/a", Direction::Out, &list.naming);
    assert_eq!(other.expect_err("DataWarp's").len(), 1);
}

#[test]
fn path_outside_the_nnf_allocation_is_refused_with_a_hint() {
    let ours = "begin it with $DW_JOB_my_data/, or $DW_PERSISTENT_NAME/ of a persistent";
    for (line, expected) in [
        (
            "copy_in source=/g/a destination=/g/b",
            &format!("2:37 destination=/g/b is not in the burst buffer | {ours}"),
        ),
        (
            "copy_in source=/g/a destination=$DW_JOB_other/b",
            &format!("2:37 destination=$DW_JOB_other/b is not in the burst buffer | {ours}"),
        ),
        (
            "copy_out source=$DW_JOB_STRIPED/a destination=/g/b",
            &format!("2:21 source=$DW_JOB_STRIPED/a is not in the burst buffer | {ours}"),
        ),
        (
            "copy_out source=$DW_PERSISTENT_STRIPED_x/a destination=/g/b",
            &format!("2:21 source=$DW_PERSISTENT_STRIPED_x/a is not in the burst buffer | {ours}"),
        ),
        (
            "copy_out source=$DW_JOB_my_data/../a destination=/g/b",
            &"2:21 source=$DW_JOB_my_data/../a leaves the burst buffer".to_owned(),
        ),
        (
            "copy_out source=$DW_PERSISTENT_none/a destination=/g/b",
            &"2:5 staging in the persistent allocation none, which the job does not use".to_owned(),
        ),
        (
            "copy_out source=$DW_JOB_my_data/a destination=$DW_PERSISTENT_x/a",
            &"2:51 destination=$DW_PERSISTENT_x/a is in the burst buffer, where".to_owned(),
        ),
        (
            "copy_in source= destination=$DW_JOB_my_data",
            &"2:13 source= has no value | write source=/PATH or $DW_JOB_NAME/PATH".to_owned(),
        ),
    ] {
        assert_begins(&bad(&format!("{NNF}\n#DW {line}")), expected);
    }
    let found = bad("#DW copy_in source=/g/a destination=$DW_JOB_x/b");
    assert!(found.ends_with("begin it with $DW_JOB_NAME/ of a #DW jobdw line, or $DW_PERSISTENT_NAME/ of a persistent allocation"));
}

#[test]
fn nnf_directives_are_validated_first() {
    for (line, expected) in [
        (
            "jobdw type=xfs capacity=10GiB",
            "1:5 jobdw needs name= | for example: #DW jobdw type=xfs",
        ),
        (
            "jobdw type=xfs capacity=1.5GiB name=ab",
            "1:29 capacity=1.5GiB is not digits with one of",
        ),
        ("jobdw type=xfs capacity=10gib name=ab", "1:29 capacity=10gib is not digits"),
        ("jobdw type=xfs capacity=1GiB name=Ab", "1:39 name=Ab is not of the form [a-z]"),
        ("jobdw type=xfs capacity=1GiB name=a", "1:39 name=a is not of the form"),
        ("jobdw type=xfs capacity=1GiB name=ab name=ab", "1:42 name is given twice"),
        ("jobdw type=xfs capacity=1GiB name=ab pool=p", "1:42 unknown key \"pool\""),
        (
            "jobdw type=xfs capacity=1GiB name=ab requires=copy-offload,x",
            "1:64 requires=x is not known | write requires=copy-offload or user-container-auth",
        ),
        ("container profile=cd name=ab DW_JOB_a=bc DW_JOB_a=bc", "1:46 DW_JOB_a is given twice"),
        ("copy_in source=/g", "1:5 copy_in needs destination="),
        (
            "jobdw type=raw capacity=1GiB name=ab",
            "1:16 type=raw is refused: an allocation is a tree of files",
        ),
        ("jobdw type=xfs capacity=0GiB name=ab", "1:29 capacity=0GiB is no size: "),
        (
            "jobdw type=xfs capacity=1GiB name=ab requires=copy-offload",
            "1:51 requires= is refused: there are no servers",
        ),
        (
            "container name=ab profile=cd DW_JOB_x=data DW_GLOBAL_home=/home",
            "1:5 container is refused: nothing here starts containers | start the container in",
        ),
        ("container profile=cd name=ab DW_JOB_=x", "1:34 unknown key \"DW_JOB_\""),
        ("container profile=cd name=ab DW_GLOBAL_a=x", "1:46 DW_GLOBAL_a=x is not an absolute"),
    ] {
        assert_begins(&bad(&format!("#DW {line}")), expected);
    }
}

#[test]
fn ambiguous_line_follows_the_dialect_of_the_script() {
    let of_nnf = |script: &str| good(script).persistent[0].of_nnf;
    assert!(of_nnf(
        "#DW persistentdw name=proj-1\n#DW copy_in source=/a destination=$DW_PERSISTENT_proj_1/b"
    ));
    assert!(!of_nnf("#DW persistentdw name=proj-1"));
    assert!(!of_nnf(&format!("{JOBDW}\n#DW persistentdw name=proj-1")));
    assert!(of_nnf(
        "#DW create_persistent type=xfs name=ab capacity=1GiB\n#DW persistentdw name=ab"
    ));
}

#[test]
fn nnf_persistent_allocations_are_read_like_those_of_datawarp() {
    let made = good("#DW create_persistent type=lustre name=proj-1 capacity=2GiB profile=fast");
    assert_eq!(made.create[0].name, "proj-1");
    assert_eq!(made.create[0].capacity_bytes, 2 << 30);
    assert_eq!(made.warnings.len(), 1, "the profile");
    let gone = good("#DW destroy_persistent name=ab");
    assert_eq!((gone.destroy[0].name.as_str(), gone.destroy[0].hurry), ("ab", false));
    for (line, expected) in [
        (
            "create_persistent type=raw name=ab capacity=1GiB",
            "1:28 type=raw is refused: an allocation is a tree of files",
        ),
        ("create_persistent type=xfs name=ab", "1:5 create_persistent needs capacity="),
        (
            "persistentdw name=ab requires=copy-offload",
            "1:35 requires= is refused: there are no servers",
        ),
        (
            "copy_in source=/a destination=$DW_PERSISTENT_ab\n#DW persistentdw name=ab\n#DW destroy_persistent name=AB",
            "3:29 name=AB is not of the form",
        ),
        ("destroy_persistent name=AB", "1:1 destroy_persistent is written with #BB"),
        ("destroy_persistent name=ab hurry", "1:1 destroy_persistent is written with #BB"),
    ] {
        assert_begins(&bad(&format!("#DW {line}")), expected);
    }
}

#[test]
fn mixed_dialects_are_reported_with_both_positions() {
    let copy = "#DW persistentdw name=ab requires=copy-offload";
    let problems = all_bad(&format!("#!/bin/bash\n{JOBDW}\n{copy}\n{copy}"));
    assert_begins(
        &problems[0],
        "3:1 this directive is NNF (Rabbit)'s, that of line 2, column 1 is DataWarp's: a script \
         has one dialect | stage_in and stage_out go with a jobdw that has access_mode=",
    );
    assert_eq!(problems.len(), 3, "and what is the matter with each line: {problems:#?}");
    let problems = all_bad(&format!("{JOBDW}\n#DW copy_in source=/a destination=$DW_JOB_STRIPED"));
    assert_begins(&problems[0], "2:1 this directive is NNF (Rabbit)'s");
    let problems = all_bad(&format!("{copy}\n{JOBDW}"));
    assert_begins(&problems[1], "2:1 this directive is DataWarp's, that of line 1, column 1 is");
}

#[test]
fn type_key_decides_the_dialect() {
    let found = bad("#DW jobdw name=ab type=scratch capacity=1G access_mode=striped");
    assert_begins(&found, "1:11 unknown key \"name\" | jobdw knows type= access_mode=");
    let found = bad("#DW jobdw access_mode=striped type=xfs capacity=1GiB name=ab");
    assert_begins(&found, "1:11 unknown key \"access_mode\" | jobdw knows type= capacity= name=");
}
