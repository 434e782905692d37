//! Persistent allocations.

use forebay_directive::{Direction, VariableStyle, matches_variable, stages_of_list};

use crate::{JOBDW, all_bad, assert_begins, bad, good};

#[test]
fn job_uses_several_persistent_allocations_and_its_own() {
    let request = good(&format!(
        "#!/bin/bash\n#DW persistentdw name=proj1\n{JOBDW}\n#DW persistentdw name=a-b.c\n\
         #DW stage_in type=directory source=/g/in destination=$DW_PERSISTENT_STRIPED_proj1\n\
         #DW stage_in type=file source=/g/x destination=$DW_JOB_STRIPED/x\n\
         #DW stage_out type=file source=${{DW_PERSISTENT_STRIPED_a-b.c}}/d/x destination=/g/x\n\
         #DW stage_out type=file source=$DW_PERSISTENT_STRIPED_a_b_c/y destination=/g/y\n"
    ));
    let names: Vec<_> = request.persistent.iter().map(|one| one.variables()).collect();
    assert_eq!(names[0], ["DW_PERSISTENT_STRIPED_proj1"]);
    assert_eq!(names[1], ["DW_PERSISTENT_STRIPED_a-b.c", "DW_PERSISTENT_STRIPED_a_b_c"]);
    let ends = |stages: &[forebay_directive::Stage]| -> Vec<_> {
        let end =
            |stage: &forebay_directive::Stage| (stage.persistent.clone(), stage.inner_path.clone());
        stages.iter().map(end).collect()
    };
    let named = |name: &str, path: &str| (Some(name.to_owned()), path.to_owned());
    let expected = [named("proj1", ""), (None, "x".to_owned())];
    assert_eq!(ends(&request.stage_in), expected);
    let expected = [named("a-b.c", "d/x"), named("a_b_c", "y")];
    assert_eq!(ends(&request.stage_out), expected);
    assert!(matches_variable("a-b.c", "a-b.c") && matches_variable("a-b.c", "a_b_c"));
    assert!(!matches_variable("a_b_c", "a-b.c"));
}

#[test]
fn job_that_only_creates_or_destroys_is_valid() {
    let made = good(
        "#BB create_persistent name=a capacity=1GiB pool=p\n\
         #BB create_persistent name=b capacity=1 access=striped(group=team,MFC=3)",
    );
    assert_eq!(made.create.len(), 2);
    assert_eq!(made.create[0].pool.as_deref(), Some("p"));
    let groups: Vec<_> = made.create.iter().map(|create| create.group.as_deref()).collect();
    assert_eq!(groups, [None, Some("team")]);
    assert!(made.job.is_none());
    let gone = good("#BB destroy_persistent name=a hurry\n#BB destroy_persistent name=b");
    assert_eq!([gone.destroy[0].hurry, gone.destroy[1].hurry], [true, false]);
}

#[test]
fn script_names_each_persistent_allocation_once() {
    let create = "#BB create_persistent name=a capacity=1";
    let destroy = "#BB destroy_persistent name=a";
    let used = "#DW persistentdw name=a";
    assert_eq!(good(&format!("{create}\n{used}")).create.len(), 1);
    for (first, second, expected) in [
        (create, create, "2:5 a is made here and made at line 1, column 5"),
        (create, destroy, "2:5 a is destroyed here and made at"),
        (used, destroy, "2:5 a is destroyed here and used at"),
        (used, used, "2:5 a is used here and used at"),
    ] {
        assert_begins(&bad(&format!("{first}\n{second}")), expected);
    }
    assert_begins(
        &bad("#DW persistentdw name=a-b\n#DW persistentdw name=a.b"),
        "2:5 a-b and a.b have one variable, $DW_PERSISTENT_STRIPED_a_b",
    );
}

#[test]
fn staging_needs_an_allocation_the_job_uses() {
    let stage = "#DW stage_in type=file source=/g/x destination=$DW_PERSISTENT_STRIPED_b/x";
    assert_begins(
        &bad(&format!("#DW persistentdw name=a\n{stage}")),
        "2:5 staging in the persistent allocation b, which the job does not use | add the line: \
         #DW persistentdw name=b",
    );
    let own = "#DW stage_out type=file source=$DW_JOB_STRIPED/x destination=/g/x";
    assert_begins(
        &bad(&format!("#DW persistentdw name=a\n{own}")),
        "2:5 staging without an allocation",
    );
    let out = "#DW stage_out type=file source=$DW_PERSISTENT_STRIPED_a/../x destination=/g/x";
    let problems = all_bad(&format!("#DW persistentdw name=a\n{out}"));
    assert!(problems[0].contains("leaves the burst buffer"), "{problems:?}");
    good("#DW persistentdw name=a\n#DW stage_in type=list source=/g/list");
}

#[test]
fn list_can_name_persistent_allocations() {
    let list = "/g/x $DW_PERSISTENT_STRIPED_my-a/in/\n/g/y $DW_JOB_STRIPED/y\n";
    let stages = stages_of_list(list, Direction::In, &VariableStyle::DataWarp).expect("right");
    assert_eq!(stages[0].persistent.as_deref(), Some("my-a"));
    assert_eq!((stages[0].inner_path.as_str(), stages[1].persistent.as_ref()), ("in/", None));
}
