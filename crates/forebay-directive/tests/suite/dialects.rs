//! DataWarp and NNF (Rabbit) told apart.

use crate::{JOBDW, all_bad, assert_begins, bad, good};

#[test]
fn nnf_directives_are_refused_with_datawarps_equivalent() {
    for (line, hint) in [
        (
            "jobdw type=lustre capacity=10GiB name=scratch profile=fast",
            "write #DW jobdw type=",
        ),
        (
            "jobdw name=ab type=xfs capacity=1TB requires=copy-offload,user-container-auth",
            "write",
        ),
        (
            "copy_in source=/g/a destination=$DW_JOB_scratch/a",
            "write #DW stage_in type=file",
        ),
        (
            "copy_out source=$DW_JOB_s/a destination=/g/a profile=default",
            "write #DW stage_out",
        ),
        (
            "copy_in type=directory source=/g/a destination=$DW_JOB_s",
            "write #DW stage_in",
        ),
        (
            "container name=ab profile=cd DW_JOB_x=data DW_GLOBAL_home=/home",
            "DataWarp has no",
        ),
    ] {
        let found = bad(&format!("#DW {line}"));
        let command = line.split(' ').next().expect("a command");
        let reason = "it is of the NNF (Rabbit) dialect, and Forebay carries out DataWarp's";
        assert_begins(
            &found,
            &format!("1:5 {command} is refused: {reason} | {hint}"),
        );
    }
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
        (
            "jobdw type=xfs capacity=10gib name=ab",
            "1:29 capacity=10gib is not digits",
        ),
        (
            "jobdw type=xfs capacity=1GiB name=Ab",
            "1:39 name=Ab is not of the form [a-z]",
        ),
        (
            "jobdw type=xfs capacity=1GiB name=a",
            "1:39 name=a is not of the form",
        ),
        (
            "jobdw type=xfs capacity=1GiB name=ab name=ab",
            "1:42 name is given twice",
        ),
        (
            "jobdw type=xfs capacity=1GiB name=ab pool=p",
            "1:42 unknown key \"pool\"",
        ),
        (
            "jobdw type=xfs capacity=1GiB name=ab requires=copy-offload,x",
            "1:64 requires=x is not known | write requires=copy-offload or user-container-auth",
        ),
        (
            "container profile=cd name=ab DW_JOB_a=bc DW_JOB_a=bc",
            "1:46 DW_JOB_a is given twice",
        ),
        ("copy_in source=/g", "1:5 copy_in needs destination="),
        (
            "container profile=cd name=ab DW_JOB_=x",
            "1:34 unknown key \"DW_JOB_\"",
        ),
        (
            "container profile=cd name=ab DW_GLOBAL_a=x",
            "1:46 DW_GLOBAL_a=x is not an absolute",
        ),
    ] {
        assert_begins(&bad(&format!("#DW {line}")), expected);
    }
}

#[test]
fn what_could_be_either_follows_the_rest_of_the_script() {
    let nnf = "#DW persistentdw name=proj-1\n#DW copy_in source=/a destination=/b";
    assert_begins(&bad(nnf), "2:5 copy_in is refused: it is of the NNF");
    let of_nnf = |script: &str| good(script).persistent[0].of_nnf;
    assert!(!of_nnf("#DW persistentdw name=proj-1"));
    assert!(!of_nnf(&format!("{JOBDW}\n#DW persistentdw name=proj-1")));
    assert!(of_nnf(
        "#DW create_persistent type=xfs name=ab capacity=1GiB\n#DW persistentdw name=ab"
    ));
}

#[test]
fn persistent_allocations_of_nnf_are_datawarps_in_other_words() {
    let made = good("#DW create_persistent type=lustre name=proj-1 capacity=2GiB profile=fast");
    assert_eq!(made.create[0].name, "proj-1");
    assert_eq!(made.create[0].capacity_bytes, 2 << 30);
    assert_eq!(made.warnings.len(), 1, "the profile");
    let gone = good("#DW destroy_persistent name=ab");
    assert_eq!(
        (gone.destroy[0].name.as_str(), gone.destroy[0].hurry),
        ("ab", false)
    );
    for (line, expected) in [
        (
            "create_persistent type=raw name=ab capacity=1GiB",
            "1:28 type=raw is refused: an allocation is a tree of files",
        ),
        (
            "create_persistent type=xfs name=ab",
            "1:5 create_persistent needs capacity=",
        ),
        (
            "persistentdw name=ab requires=copy-offload",
            "1:35 requires= is refused: there are no servers",
        ),
        (
            "destroy_persistent name=AB",
            "1:29 name=AB is not of the form",
        ),
        (
            "destroy_persistent name=ab hurry",
            "1:1 destroy_persistent is written with #BB",
        ),
    ] {
        assert_begins(&bad(&format!("#DW {line}")), expected);
    }
}

#[test]
fn a_script_that_mixes_dialects_hears_of_both_places() {
    let copy = "#DW copy_in source=/a destination=/b";
    let problems = all_bad(&format!("#!/bin/bash\n{JOBDW}\n{copy}\n{copy}"));
    assert_begins(
        &problems[0],
        "3:1 this directive is NNF (Rabbit)'s, that of line 2, column 1 is DataWarp's: a script \
         has one dialect | write all of them as DataWarp has them",
    );
    assert_eq!(
        problems.len(),
        3,
        "and each line's equivalent: {problems:#?}"
    );
    let problems = all_bad(&format!("{copy}\n{JOBDW}"));
    assert_begins(
        &problems[1],
        "2:1 this directive is DataWarp's, that of line 1, column 1 is",
    );
}

#[test]
fn the_type_tells_more_than_the_keys() {
    let found = bad("#DW jobdw name=ab type=scratch capacity=1G access_mode=striped");
    assert_begins(
        &found,
        "1:11 unknown key \"name\" | jobdw knows type= access_mode=",
    );
    let found = bad("#DW jobdw access_mode=striped type=xfs capacity=1GiB name=ab");
    assert_begins(
        &found,
        "1:11 unknown key \"access_mode\" | jobdw knows type= capacity= name=",
    );
}
