//! The text of `--bb`.

use forebay_directive::{Origin, Problem, Request, parse_with_option};

use crate::{JOBDW, assert_begins, lines_of, symbols};

fn with(option: &str, script: &str) -> Result<Request, Vec<Problem>> {
    parse_with_option(script, option, &symbols())
}

#[test]
fn option_words_mean_the_same_as_directives() {
    for (text, directives) in [
        (
            "capacity=1G access=striped type=scratch",
            "#DW jobdw capacity=1G access_mode=striped type=scratch\n",
        ),
        (
            " type=scratch,access_mode=striped(MFS=1G,client_cache),capacity=1G, pool=p",
            "#DW jobdw type=scratch access_mode=striped(MFS=1G,client_cache) capacity=1G pool=p\n",
        ),
        ("", ""),
        (" , ", ""),
        ("\n#DW persistentdw name=a\n", "#DW persistentdw name=a\n"),
    ] {
        let job = |request: &Request| {
            request.job.as_ref().map(|job| (job.capacity_bytes, job.access.clone()))
        };
        let names = |request: &Request| {
            request.persistent.iter().map(|used| used.name.clone()).collect::<Vec<_>>()
        };
        let (option, script) = (with(text, "").expect(text), with("", directives).expect(text));
        assert_eq!((job(&option), names(&option)), (job(&script), names(&script)), "{text}");
        assert_eq!(option.warnings.len(), script.warnings.len(), "{text}");
    }
}

#[test]
fn unsupported_words_of_the_option_are_named() {
    for (text, expected) in [
        (
            "capacity=1G access=striped,private type=scratch",
            "1:28 --bb does not know \"private\" | --bb takes capacity= access=",
        ),
        ("create_persistent", "1:1 create_persistent cannot be asked for with --bb"),
        ("capacity=1G\ndestroy_persistent", "2:1 destroy_persistent cannot be asked"),
        ("capacity=1G pfs=/g", "1:13 --bb does not know \"pfs=/g\""),
        ("swap=", "1:1 --bb does not know \"swap=\""),
        (" #DW jobdw=", "1:2 --bb does not know \"#DW\""),
    ] {
        let problems = with(text, "").expect_err(text);
        let lines = lines_of(&problems);
        assert!(lines.iter().any(|line| line.starts_with(expected)), "{lines:?}");
        assert_eq!(problems[0].position.origin, Origin::Option);
    }
}

#[test]
fn option_and_script_are_read_together() {
    let stage = "#!/bin/bash\n#DW stage_in type=file source=/g/a destination=$DW_JOB_STRIPED/a\n";
    for option in ["capacity=1G access=striped type=scratch", JOBDW] {
        let request = with(option, stage).expect("good");
        assert_eq!(request.stage_in.len(), 1);
        assert_eq!(request.job.expect("jobdw").position.origin, Origin::Option);
    }
    let problems = with(JOBDW, &format!("#!/bin/bash\n{JOBDW}")).expect_err("two");
    assert_eq!(
        problems[0].to_string(),
        "line 2, column 5: a second jobdw; the first is at --bb, line 1, column 5"
    );
}

#[test]
fn error_positions_refer_to_the_text_of_the_user() {
    for (option, expected) in [
        ("type=scratch,access=striped,capacity=3X", "--bb, line 1, column 38: capacity=3X is no"),
        ("access=striped type=scratch", "--bb, line 1, column 1: jobdw needs capacity="),
        ("pool=p", "--bb, line 1, column 1: jobdw needs type="),
        ("swap=0 capacity=1 access=private type=scratch", "--bb, line 1, column 6: swap 0 is no"),
        ("#BB create_persistent name=1", "--bb, line 1, column 5: create_persistent needs"),
        ("#DW persistentdw name=a capacity=1", "--bb, line 1, column 25: unknown key"),
        (&format!("{JOBDW}\nrm -rf"), "--bb, line 2, column 1: \"rm -rf\" is no directive"),
        (&format!("{JOBDW} \\\n"), "--bb, line 2, column 1: the #DW line before ends in"),
    ] {
        let problems = with(option, "").expect_err(option);
        assert_begins(&problems[0].to_string(), expected);
    }
}
