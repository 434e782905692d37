//! Lists of files.

use forebay_directive::{Direction, Stage, StageKind, VariableStyle, stages_of_list};

use crate::{assert_begins, lines_of};

fn pairs(text: &str, direction: Direction) -> Vec<(String, String)> {
    let stages = stages_of_list(text, direction, &VariableStyle::DataWarp)
        .unwrap_or_else(|p| panic!("{text}\n{p:#?}"));
    let pair = |stage: Stage| {
        assert_eq!(stage.kind, StageKind::File);
        (stage.pfs_path, stage.inner_path)
    };
    stages.into_iter().map(pair).collect()
}

fn pair(pfs: &str, inner: &str) -> (String, String) {
    (pfs.into(), inner.into())
}

#[test]
fn list_line_names_source_and_destination() {
    let text = "# what the run reads\n\n/g/a.dat $DW_JOB_STRIPED/a.dat\r\n  \
                /g/b\t${DW_JOB_STRIPED}/sub/ # into a directory\n";
    assert_eq!(pairs(text, Direction::In), [pair("/g/a.dat", "a.dat"), pair("/g/b", "sub/")]);
    assert_eq!(pairs("$DW_JOB_STRIPED/out /g/out", Direction::Out), [pair("/g/out", "out")]);
    assert_eq!(pairs("", Direction::Out), []);
}

#[test]
fn names_with_blanks_are_quoted_as_in_a_shell() {
    for line in [
        "'/g/my run/$x' $DW_JOB_STRIPED/\"my run\"",
        "/g/my\\ run/\\$x \"$DW_JOB_STRIPED/my run\"",
        "\"/g/my run/\\$x\" '$DW_JOB_STRIPED/my run'",
    ] {
        let expected = [pair("/g/my run/$x", "my run")];
        assert_eq!(pairs(line, Direction::In), expected, "{line}");
    }
    assert_eq!(
        pairs("/g/é#1 $DW_JOB_STRIPED/é\\'\\\"\\\\", Direction::In),
        [pair("/g/é#1", "é'\"\\")]
    );
}

#[test]
fn every_wrong_line_is_named_with_its_place() {
    let text = "/g/a\n\
                /g/a $DW_JOB_STRIPED/a /g/c\n\
                a $DW_JOB_STRIPED/a\n\
                /g/a b\n\
                /g/a $DW_JOB_STRIPED/../a\n\
                /g/a $DW_JOB_PRIVATE/a\n\
                /g/$USER $DW_JOB_STRIPED/a\n\
                /g/a $DW_PERSISTENT_p/a\n\
                /g/a 'x\n\
                /g/a $DW_JOB_STRIPED/x\\\n\
                $DW_JOB_STRIPED/a /g/a\n";
    let problems =
        stages_of_list(text, Direction::In, &VariableStyle::DataWarp).expect_err("wrong");
    let found = lines_of(&problems);
    let expected = [
        "1:1 /g/a has no destination | write source and destination",
        "2:24 \"/g/c\" is one word too many",
        "3:1 a is not an absolute path",
        "4:6 b is not in the burst buffer",
        "5:6 $DW_JOB_STRIPED/../a leaves the burst buffer",
        "6:6 $DW_JOB_PRIVATE/a is private to each node",
        "7:1 /g/$USER holds a variable | lists are not expanded",
        "8:6 $DW_PERSISTENT_p/a is not in the burst buffer",
        "9:6 a quotation or a backslash is not finished",
        "10:6 a quotation or a backslash is not finished",
        "11:1 $DW_JOB_STRIPED/a is in the burst buffer",
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert_begins(found, expected);
    }
    assert_eq!(problems[0].to_string(), "line 1, column 1: /g/a has no destination");
}
