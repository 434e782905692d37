//! Scripts and what must come of them. The valid lines are the shapes that DataWarp's public
//! documentation and site talks show.

#![allow(clippy::expect_used)] // helpers of tests

use forebay_directive::{AccessMode, Request, StageKind, Symbols, parse};

fn symbols() -> Symbols {
    Symbols {
        job_id: "4711".into(),
        job_name: "btio".into(),
        user: "ada".into(),
        directory: "/scratch/ada/my run".into(),
        array_task: String::new(),
    }
}

fn good(script: &str) -> Request {
    parse(script, &symbols()).unwrap_or_else(|problems| panic!("{script}\n{problems:#?}"))
}

/// The one problem of a script, as `line:column message | hint`.
fn bad(script: &str) -> String {
    let problems = parse(script, &symbols()).expect_err(script);
    assert_eq!(problems.len(), 1, "{script}\n{problems:#?}");
    let p = &problems[0];
    format!(
        "{}:{} {} | {}",
        p.place.line, p.place.column, p.message, p.hint
    )
}

const JOBDW: &str = "#DW jobdw type=scratch access_mode=striped capacity=1TiB";

#[test]
fn a_script_without_directives_asks_for_nothing() {
    assert_eq!(good(""), Request::default());
    assert_eq!(good("#!/bin/bash\necho hi\n"), Request::default());
    assert_eq!(
        good("#!/bin/bash\n#dw jobdw\n #DW jobdw\n"),
        Request::default()
    );
}

#[test]
fn jobdw_takes_its_keys_in_any_order() {
    let job =
        good("#DW jobdw capacity=100GB access_mode=striped,private type=scratch pool=wlm_pool");
    let job = job.job.expect("jobdw");
    assert_eq!(job.capacity_bytes, 100_000_000_000);
    assert_eq!(job.access, [AccessMode::Striped, AccessMode::Private]);
    assert_eq!(job.pool.as_deref(), Some("wlm_pool"));
    assert_eq!(
        good("#DWjobdw access=private type=scratch capacity=1")
            .job
            .map(|j| j.access),
        Some(vec![AccessMode::Private])
    );
}

#[test]
fn stages_name_one_end_inside_and_one_outside() {
    let script = format!(
        "#!/bin/bash\n#SBATCH -n 4\n\n{JOBDW}\n\
         #DW stage_in type=file source=/g/in.dat destination=$DW_JOB_STRIPED/in.dat\n\
         #DW stage_in source=/lustre/file.dat destination=${{DW_JOB_STRIPED}}/ type=file\n\
         #DW stage_out type=directory destination=/back_up source=$DW_JOB_STRIPED/\n\
         srun ./x\n"
    );
    let request = good(&script);
    assert_eq!(request.stage_in[0].inner_path, "in.dat");
    assert_eq!(request.stage_in[0].pfs_path, "/g/in.dat");
    assert_eq!(request.stage_in[0].kind, StageKind::File);
    assert_eq!(request.stage_in[1].inner_path, "");
    assert_eq!(request.stage_out[0].inner_path, "");
    assert_eq!(request.stage_out[0].pfs_path, "/back_up");
    assert_eq!(request.stage_out[0].kind, StageKind::Directory);
    assert_eq!(request.stage_out[0].place.line, 7);
}

#[test]
fn symbols_are_replaced_and_their_blanks_belong_to_the_value() {
    let script = format!(
        "{JOBDW}\n#DW stage_out type=file source=$DW_JOB_STRIPED/%x destination=%d/%u-%j-%%-%q\n\
         #DW stage_out type=file source=$DW_JOB_STRIPED/a destination=/g/\\\\%j\n"
    );
    let request = good(&script);
    assert_eq!(request.stage_out[0].inner_path, "btio");
    assert_eq!(
        request.stage_out[0].pfs_path,
        "/scratch/ada/my run/ada-4711-%-%q"
    );
    assert_eq!(request.stage_out[1].pfs_path, "/g/%j");
}

#[test]
fn continuation_lines_repeat_the_prefix() {
    let request = good("#DW jobdw capacity=1000GB \\\n#DW   access_mode=striped type=scratch\n");
    assert_eq!(
        request.job.map(|j| j.capacity_bytes),
        Some(1_000_000_000_000)
    );
    let glued = good("#DW jobdw capa\\\n#DWcity=1K access_mode=striped type=scratch\n");
    assert_eq!(glued.job.map(|j| j.capacity_bytes), Some(1024));
}

#[test]
fn broken_continuations_are_named_where_they_break() {
    for follower in [
        "#BB x",
        "#SBATCH -n 1",
        "#   access_mode=striped type=scratch",
        "echo",
    ] {
        let script = format!("{JOBDW} \\\n{follower}\n");
        assert!(
            bad(&script).starts_with("2:1 the #DW line before ends in"),
            "{follower}"
        );
    }
    assert!(bad(&format!("{JOBDW} \\")).starts_with("2:1 the #DW line before"));
}

const BAD_LINES: &[(&str, &str)] = &[
    ("#DW", "1:1 #DW without a command | known commands: jobdw"),
    (
        "#DW jobwd x=1",
        "1:5 unknown command \"jobwd\" | known commands: jobdw",
    ),
    (
        "#BB jobdw",
        "1:1 jobdw is written with #DW, not #BB | write #DW jobdw",
    ),
    (
        "#DW persistentdw name=p",
        "1:5 persistentdw is refused: persistent alloc",
    ),
    (
        "#DW swap 10GiB",
        "1:5 swap is refused: swap space needs root",
    ),
    (
        "#BB create_persistent name=p",
        "1:5 create_persistent is refused",
    ),
    (
        "#DW jobdw type=scratch access_mode=striped",
        "1:5 jobdw needs capacity= | for example: #DW",
    ),
    (
        "#DW jobdw type=scratch capacity=1G",
        "1:5 jobdw needs access_mode=",
    ),
    (
        "#DW jobdw access_mode=striped capacity=1G",
        "1:5 jobdw needs type=",
    ),
    (
        "#DW jobdw type=scratch access_mode=striped capacity=0",
        "1:53 capacity=0 is no size: it is zero",
    ),
    (
        "#DW jobdw type=scratch access_mode=striped capacity=3X",
        "1:53 capacity=3X is no size: its unit",
    ),
    (
        "#DW jobdw type=cache access_mode=striped capacity=1G",
        "1:16 type=cache is refused | transparent",
    ),
    (
        "#DW jobdw type=tape access_mode=striped capacity=1G",
        "1:16 type=tape is not known | write type=scratch",
    ),
    (
        "#DW jobdw type= access_mode=striped capacity=1G",
        "1:11 type= has no value",
    ),
    (
        "#DW jobdw type=scratch access_mode=stripped capacity=1G",
        "1:36 unknown access_mode \"stripped\"",
    ),
    (
        "#DW jobdw type=scratch access_mode=striped,striped capacity=1G",
        "1:36 access_mode names striped twice",
    ),
    (
        "#DW jobdw type=scratch access_mode=striped(MFS=1G) capacity=1G",
        "1:36 the modifiers in access_mode",
    ),
    (
        "#DW jobdw type=scratch access_mode=striped capacity=1G hurry",
        "1:56 \"hurry\" is not of the form",
    ),
    (
        "#DW jobdw type=scratch access_mode=striped capacity=1G size=1",
        "1:56 unknown key \"size\" | jobdw knows type=",
    ),
    (
        "#DW jobdw type=scratch type=scratch access_mode=striped capacity=1G",
        "1:24 type is given twice",
    ),
];

#[test]
fn errors_carry_line_column_and_remedy() {
    for (script, expected) in BAD_LINES {
        let found = bad(script);
        assert!(
            found.starts_with(expected),
            "{script}\n  found    {found}\n  expected {expected}"
        );
    }
}

#[test]
fn stages_that_cannot_be_are_refused() {
    for (stage, expected) in [
        (
            "stage_out type=file source=/a destination=/b",
            "2:32 source=/a is not in the burst buffer",
        ),
        (
            "stage_in type=file source=in destination=$DW_JOB_STRIPED/in",
            "2:31 source=in is not an absolute path",
        ),
        (
            "stage_in type=file source=$HOME/in destination=$DW_JOB_STRIPED/in",
            "2:31 source=$HOME/in holds a variable",
        ),
        (
            "stage_in type=directory source=/g destination=$DW_JOB_PRIVATE/in",
            "2:51 destination=$DW_JOB_PRIVATE/in is private",
        ),
        (
            "stage_in type=file source=/g destination=$DW_JOB_STRIPEDx",
            "2:46 destination=$DW_JOB_STRIPEDx is not in",
        ),
        (
            "stage_out type=file source=$DW_JOB_STRIPED/../x destination=/g",
            "2:32 source=$DW_JOB_STRIPED/../x leaves",
        ),
        (
            "stage_in type=list source=/g destination=$DW_JOB_STRIPED",
            "2:19 type=list is refused | lists of files",
        ),
        (
            "stage_in source=/g destination=$DW_JOB_STRIPED",
            "2:5 stage_in needs type=",
        ),
    ] {
        let found = bad(&format!("{JOBDW}\n#DW {stage}\n"));
        assert!(
            found.starts_with(expected),
            "{stage}\n  found    {found}\n  expected {expected}"
        );
    }
}

#[test]
fn the_script_as_a_whole_must_make_sense() {
    let stage = "#DW stage_in type=file source=/g destination=$DW_JOB_STRIPED/in";
    assert!(bad(stage).starts_with("1:5 staging without an allocation | add a line such as"));
    let private = "#DW jobdw type=scratch access_mode=private capacity=1G";
    assert!(
        bad(&format!("{private}\n{stage}")).starts_with("2:5 staging needs access_mode=striped")
    );
    assert!(
        bad(&format!("{JOBDW}\n{JOBDW}")).starts_with("2:5 a second jobdw; the first is on line 1")
    );
}

#[test]
fn a_directive_behind_the_header_is_an_error_not_a_comment() {
    for gap in ["echo hi", "   "] {
        let found = bad(&format!("#!/bin/bash\n{gap}\n{JOBDW}\n"));
        assert!(
            found.starts_with("3:1 #DW behind the header, which ended at line 2"),
            "{found}"
        );
        assert!(
            found.ends_with("or write ##DW to keep it as a comment"),
            "{found}"
        );
    }
}

#[test]
fn a_script_may_write_another_one() {
    for word in ["EOF", "-EOF", " 'EOF'", "\"EOF\""] {
        let script = format!("#!/bin/bash\ncat > inner.sh <<{word}\n{JOBDW}\n\tEOF\n");
        assert_eq!(good(&script).job, None, "{word}");
        let found = bad(&format!("{script}{JOBDW}\n"));
        assert!(found.starts_with("5:1 #DW behind the header"), "{found}");
    }
}

#[test]
fn a_dollar_in_what_a_symbol_stands_for_is_no_variable() {
    let mut symbols = symbols();
    symbols.directory = "/scratch/$cash".into();
    let script =
        format!("{JOBDW}\n#DW stage_out type=file source=$DW_JOB_STRIPED/a destination=%d/a\n");
    let request = parse(&script, &symbols).expect("good");
    assert_eq!(request.stage_out[0].pfs_path, "/scratch/$cash/a");
}

#[test]
fn all_problems_are_reported_in_the_order_of_the_lines() {
    let problems =
        parse("#DW jobdw capacity=0\n#DW what\n#DW swap 1\n", &symbols()).expect_err("bad");
    let lines: Vec<_> = problems.iter().map(|p| p.place.line).collect();
    assert_eq!(lines, [1, 1, 1, 2, 3], "{problems:#?}");
}

#[test]
fn no_text_makes_it_panic() {
    for script in [
        "#DW \u{0}é=",
        "#DW jobdw é=%",
        "#DW jobdw type=%",
        "#DWé",
        "#\u{e9}",
        "#DW \\\\",
        "#D",
        "#DW jobdw capacity=\u{202e}1",
    ] {
        let job = parse(script, &symbols())
            .ok()
            .and_then(|request| request.job);
        assert_eq!(job, None, "{script:?}");
    }
}
