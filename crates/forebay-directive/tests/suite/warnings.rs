//! Directives accepted with a warning.

use crate::{JOBDW, all_bad, assert_begins, bad, good, lines_of};

#[test]
fn key_without_effect_is_named_and_the_job_continues() {
    let request = good(
        "#DW jobdw type=scratch capacity=1GiB max_mds=yes optimization_strategy=bandwidth \\\n\
         #DW write_window_multiplier=5 access_mode=striped(MFS=10GiB,client_cache),\
         private(MFC=3,client_cache=no,write_window_length=43200)",
    );
    let job = request.job.expect("jobdw");
    assert_eq!(job.access.len(), 2);
    assert_eq!(job.capacity_bytes, Some(1 << 30));
    let found = lines_of(&request.warnings);
    let expected = [
        "1:46 max_mds= has no effect here: the node has one store | it may stay",
        "1:72 optimization_strategy= has no effect here",
        "2:29 write_window_multiplier= has no effect here: nothing counts",
        "2:55 MFS= has no effect here: the size of a file is not limited",
        "2:87 MFC= has no effect here",
        "2:125 write_window_length= has no effect here",
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert_begins(found, expected);
    }
}

#[test]
fn value_without_effect_is_still_checked() {
    let jobdw = JOBDW.replace("striped", "striped(MFS=big)");
    assert_begins(&bad(&jobdw), "1:48 MFS=big is no size");
    let jobdw = format!("{JOBDW} max_mds=maybe optimization_strategy=fast");
    assert_eq!(all_bad(&jobdw).len(), 2);
}

/// A form printed in a published talk.
#[test]
fn continued_line_without_prefix_is_accepted_with_a_warning() {
    let request = good(
        "#!/bin/bash\n#DW jobdw capacity=1000GB \\\n    access_mode=striped type=scratch\n\
         #DW stage_in source=/lustre/inputs destination=$DW_JOB_STRIPED/inputs type=directory\n\
         #DW stage_in source=/lustre/file.dat destination=$DW_JOB_STRIPED/ type=file\n\
         #DW stage_out source=$DW_JOB_STRIPED/outputs destination=/lustre/outputs type=directory\n\
         srun my.x --indir=$DW_JOB_STRIPED/inputs\n",
    );
    assert_eq!(request.stage_in.len() + request.stage_out.len(), 3);
    assert_eq!(
        lines_of(&request.warnings),
        ["3:1 the continued line does not begin with #DW: taken here, ignored by Slurm \
             | put #DW in front of it"]
    );
}

#[test]
fn bare_line_keeps_its_columns_and_can_be_continued() {
    let found = bad("#DW jobdw type=scratch \\\ncapacity=x \\\n  access_mode=striped\n");
    assert_begins(&found, "2:10 capacity=x is no size");
}

#[test]
fn bare_line_of_another_kind_ends_the_continuation() {
    for line in ["echo x=1", "   ", "X=1", "--a=b", "./run mode=1"] {
        let found = bad(&format!("{JOBDW} \\\n{line}\n"));
        assert_begins(&found, "2:1 the #DW line before ends in \"\\\", but no #DW line follows it");
    }
}

#[test]
fn destination_of_a_list_is_a_warning() {
    for (stage, at) in [
        ("stage_in type=list source=/g/list destination=$DW_JOB_STRIPED", "2:51"),
        ("stage_out type=list source=/g/list destination=/g/out", "2:52"),
    ] {
        let request = good(&format!("{JOBDW}\n#DW {stage}"));
        let stages = [request.stage_in, request.stage_out].concat();
        assert_eq!(stages[0].pfs_path, "/g/list");
        assert_eq!(stages[0].inner_path, "");
        let expected = format!("{at} destination= has no effect with type=list");
        assert_begins(&lines_of(&request.warnings).concat(), &expected);
    }
    let wrong = "#DW stage_in type=list source=/g/list destination=/elsewhere";
    assert_begins(
        &bad(&format!("{JOBDW}\n{wrong}")),
        "2:51 destination=/elsewhere is not in the burst buffer",
    );
}
