//! DataWarp and NNF (Rabbit) told apart.

use crate::{JOBDW, all_bad, assert_begins, bad};

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
            "create_persistent type=raw name=proj1",
            "DataWarp has #BB create_persistent",
        ),
        (
            "persistentdw name=proj-1 requires=copy-offload",
            "DataWarp has the same word",
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
    assert!(all_bad(nnf)[0].contains("persistentdw is refused: it is of the NNF"));
    let datawarp = format!("{JOBDW}\n#DW persistentdw name=proj-1");
    assert!(bad(&datawarp).contains("persistentdw is refused: allocations that outlive"));
    assert_begins(
        &bad("#DW destroy_persistent name=ab"),
        "1:1 destroy_persistent is written with",
    );
    let nnf = "#DW destroy_persistent name=ab\n#DW copy_in source=/a destination=/b";
    assert!(all_bad(nnf)[0].contains("destroy_persistent is refused: it is of the NNF"));
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
