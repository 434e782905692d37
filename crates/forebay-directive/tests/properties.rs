//! Tests random texts: no panic, all positions within the text, and all names of a request at their
//! positions. For a long run: `PROPTEST_CASES=1000000 cargo test -p forebay-directive --test
//! properties`.

#![allow(clippy::expect_used)] // helpers of tests

use forebay_directive::{
    COMMANDS, Command, Direction, MODIFIERS, NNF_COMMANDS, Origin, Position, Problem, Request,
    Stage, StageKind, Symbols, VariableStyle, parse_size, parse_with_option, stages_of_list,
};
use proptest::prelude::*;
use proptest::sample::select;

/// Meaningful pieces, to combine in any order.
const PIECES: &[&str] = &[
    "#DW",
    "#BB",
    "#dw",
    "##DW",
    "#SBATCH -n 4",
    "#DW ",
    "#DW ",
    "#DW ",
    "#BB ",
    " ",
    " ",
    " ",
    "  ",
    "\t",
    "\n",
    "\n",
    "\n",
    "\r\n",
    "\r",
    "\\",
    "\\\n",
    "\\\n#DW ",
    "\\\n#BB ",
    "\\\n  ",
    "\\\\",
    "%j",
    "%d",
    "%%",
    "%q",
    "%",
    "%b",
    "'",
    "\"",
    "=",
    ",",
    "(",
    ")",
    "$",
    "{",
    "}",
    "/",
    "//",
    "..",
    "/..",
    ".",
    ":",
    "#",
    "é",
    "\u{a0}",
    "\u{2028}",
    "\u{1f4be}",
    "\0",
    "striped",
    "private",
    "ldbalance",
    "striped(MFS=1G,client_cache)",
    "scratch",
    "cache",
    "file",
    "directory",
    "list",
    "lustre",
    "yes",
    "1GiB",
    "10",
    "0",
    "3.5TB",
    "9999999999999999999999P",
    "4nodes",
    "1MiB:2MiB",
    "/g/in.dat",
    "in.dat",
    "$DW_JOB_STRIPED",
    "$DW_JOB_STRIPED/",
    "${DW_JOB_STRIPED}/a",
    "$DW_JOB_PRIVATE/",
    "${",
    "$HOME",
    "$DW_PERSISTENT_STRIPED_p/",
    "proj1",
    "1abc",
    "hurry",
    "swap=1",
    "cat <<EOF",
    "EOF",
    "echo hi",
    "#!/bin/bash\n",
    "tier_in",
    "access=striped",
    "destroy_persistent",
];

/// Valid or almost valid lines.
const LINES: &[&str] = &[
    "#DW jobdw type=scratch access_mode=striped capacity=1GiB",
    "#DW jobdw type=scratch access_mode=striped,private(MFC=3) capacity=1GiB max_mds=yes",
    "#DW jobdw capacity=1GiB \\\n  type=scratch \\\n#DW access_mode=striped",
    "#DW stage_in type=file source=/g/%x destination=$DW_JOB_STRIPED/in",
    "#DW stage_in type=list source=%d/list",
    "#DW stage_out type=directory source=$DW_JOB_STRIPED/a/b destination=/g/%j",
    "#DW stage_out type=file source=$DW_JOB_STRIPED/%u destination=/g/out",
    "#DW persistentdw name=proj1",
    "#DW copy_in source=/a destination=/b",
    "#DW jobdw type=xfs capacity=1GiB name=my-data",
    "#DW copy_in source=/a/.. destination=$DW_JOB_my-data/b",
    "#DW copy_out source=${DW_JOB_my_data}/%u destination=/b type=directory",
    "#DW copy_out source=$DW_PERSISTENT_proj1 destination=/b/",
    "",
];

fn symbols() -> Symbols {
    Symbols {
        job_id: "4711".into(),
        array_job_id: "4700".into(),
        array_task: "13".into(),
        job_name: "é name".into(),
        user: "../ada".into(),
        directory: "/scratch/my run/$x".into(),
    }
}

fn word() -> impl Strategy<Value = String> {
    let commands = || COMMANDS.iter().chain(NNF_COMMANDS);
    let keys = commands().flat_map(|command: &Command| command.keys).chain(MODIFIERS);
    let mut pieces: Vec<String> = PIECES.iter().map(|&piece| piece.to_owned()).collect();
    pieces.extend(commands().map(|command| format!("{} ", command.name)));
    pieces.extend(keys.map(|key| format!(" {}=", key.name)));
    select(pieces)
}

/// Pieces, with some valid lines and random characters.
fn script() -> impl Strategy<Value = String> {
    let line = select(LINES).prop_map(|line| format!("\n{line}\n"));
    let piece = prop_oneof![20 => word(), 3 => line, 1 => any::<char>().prop_map(String::from)];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

/// A valid header with some bytes removed or inserted.
fn nearly_right() -> impl Strategy<Value = String> {
    let header = prop::collection::vec(select(LINES), 1..6).prop_map(|lines| lines.join("\n"));
    let edits = prop::collection::vec((any::<prop::sample::Index>(), word(), 0..3usize), 0..4);
    (header, edits).prop_map(|(mut text, edits)| {
        for (at, piece, struck) in edits {
            let mut chars: Vec<char> = text.chars().collect();
            let start = at.index(chars.len() + 1);
            let end = (start + struck).min(chars.len());
            chars.splice(start..end, piece.chars());
            text = chars.into_iter().collect();
        }
        text
    })
}

fn bytes_as_text() -> impl Strategy<Value = String> {
    prop::collection::vec(any::<u8>(), 0..200)
        .prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Lines of a list for one direction, most of them valid.
fn list() -> impl Strategy<Value = (String, Direction)> {
    let outer = select(&["/g/in.dat", "'/g/my run'", "/g/a\\ b", "/g/../h"][..]);
    let inner =
        select(&["$DW_JOB_STRIPED/a", "${DW_JOB_STRIPED}/b/", "\"$DW_JOB_STRIPED/c d\""][..]);
    let odd = select(
        &[
            "$DW_JOB_STRIPED/../e",
            "\"$DW_JOB_STRIPED/f/..\"",
            "$HOME/f",
            "in.dat",
            "# note",
            "'/g/",
            "",
            "\n",
        ][..],
    );
    let end = prop_oneof![4 => inner, 1 => odd];
    let line = (outer, end, select(&[" ", "\t"][..]), select(&["\n", "\r\n", " # x\n"][..]));
    (prop::collection::vec(line, 0..4), any::<bool>()).prop_map(|(lines, is_in)| {
        let line = |(outer, inner, gap, end)| match is_in {
            true => format!("{outer}{gap}{inner}{end}"),
            false => format!("{inner}{gap}{outer}{end}"),
        };
        (lines.into_iter().map(line).collect(), direction(is_in))
    })
}

fn direction(is_in: bool) -> Direction {
    if is_in { Direction::In } else { Direction::Out }
}

/// The number of cases from the environment, or 256.
fn config() -> ProptestConfig {
    let mut config = ProptestConfig {
        failure_persistence: None, // failures become named tests
        ..ProptestConfig::default()
    };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = 256;
    }
    config
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![2 => script(), 2 => nearly_right(), 1 => bytes_as_text()]
}

/// Asserts that a position is in its text, after a line's end, or on the line after the text.
fn assert_within(position: Position, text: &str) {
    let lines: Vec<&str> = text.lines().collect();
    assert!(position.line >= 1 && position.line <= lines.len() + 1, "{position:?}");
    let length = lines.get(position.line - 1).map_or(0, |line| line.len());
    assert!(position.column >= 1 && position.column <= length + 1, "{position:?}");
}

fn assert_problems(problems: &[Problem], texts: &[(Origin, &str)]) {
    for problem in problems {
        let of = |(origin, _): &&(Origin, &str)| *origin == problem.position.origin;
        let (_, text) = texts.iter().find(of).expect("a text of this origin");
        assert_within(problem.position, text);
        assert!(!problem.message.is_empty() && !problem.hint.is_empty());
    }
    assert!(problems.is_sorted_by_key(|problem| problem.position));
}

fn assert_stages(stages: &[Stage]) {
    for stage in stages {
        assert!(stage.pfs_path.starts_with('/'), "{stage:?}");
        assert!(!stage.inner_path.starts_with('/'), "{stage:?}");
        assert!(stage.inner_path.split('/').all(|part| part != ".."), "{stage:?}");
    }
}

fn assert_request(request: &Request) {
    assert_stages(&request.stage_in);
    assert_stages(&request.stage_out);
    let staged = !request.stage_in.is_empty() || !request.stage_out.is_empty();
    assert!(!staged || request.job.is_some() || !request.persistent.is_empty());
    if let Some(job) = &request.job {
        assert!(job.capacity_bytes > Some(0) && !job.access.is_empty());
    }
}

fn assert_parsed(script: &str, option: &str) {
    let texts = [(Origin::Script, script), (Origin::Option, option)];
    match parse_with_option(script, option, &symbols()) {
        Ok(request) => {
            assert_request(&request);
            assert_problems(&request.warnings, &texts);
        }
        Err(problems) => {
            assert!(!problems.is_empty());
            assert_problems(&problems, &texts);
        }
    }
}

/// The directives that the words of an option stand for.
fn directives_of(words: &[&str]) -> String {
    let (pool, rest): (Vec<&str>, Vec<&str>) =
        words.iter().partition(|word| word.starts_with("pool="));
    let (swaps, job): (Vec<&str>, Vec<&str>) =
        rest.into_iter().partition(|word| word.starts_with("swap="));
    let line = |command, words: &[&str]| {
        let words: Vec<_> = words.iter().chain(&pool).map(|word| format!(" {word}")).collect();
        format!("#DW {command}{}\n", words.concat())
    };
    let mut text = String::new();
    if !job.is_empty() || (swaps.is_empty() && !pool.is_empty()) {
        text += &line("jobdw", &job).replace("access=", "access_mode=");
    }
    if !swaps.is_empty() {
        text += &line("swap", &swaps).replace("swap=", "");
    }
    text
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_script_parses_or_gives_valid_problems(script in text()) {
        assert_parsed(&script, "");
    }

    #[test]
    fn any_option_parses_or_gives_valid_problems(script in nearly_right(), option in text()) {
        assert_parsed(&script, &option);
    }

    /// A `--bb` option means the same as its directives.
    #[test]
    fn option_words_mean_the_same_as_directives(
        words in prop::collection::vec(select(&[
            "capacity=1G", "access=striped", "access_mode=striped(MFS=1G,MFC=2)", "type=scratch",
            "type=cache", "pool=p", "swap=3", "swap=x", "capacity=0",
        ][..]), 0..6),
        separator in select(&[" ", ",", ", ", "\n"][..]),
    ) {
        let option = words.join(separator);
        let written = directives_of(&words);
        let direct = parse_with_option("", &option, &symbols());
        let through = parse_with_option("", &written, &symbols());
        let said = |problems: Vec<Problem>| {
            let mut said: Vec<_> = problems.into_iter().map(|p| p.message).collect();
            said.sort();
            said
        };
        match (direct, through) {
            (Ok(direct), Ok(through)) => {
                let capacity = |r: &Request| r.job.as_ref().and_then(|job| job.capacity_bytes);
                prop_assert_eq!(capacity(&direct), capacity(&through));
            }
            (Err(direct), Err(through)) => prop_assert_eq!(said(direct).len(), said(through).len()),
            (direct, through) => panic!("{direct:?}\n{through:?}"),
        }
    }

    #[test]
    fn any_list_parses_or_gives_valid_problems(
        (list, direction) in prop_oneof![
            list(),
            (text(), any::<bool>()).prop_map(|(text, is_in)| (text, direction(is_in))),
        ],
    ) {
        match stages_of_list(&list, direction, &VariableStyle::DataWarp) {
            Ok(stages) => {
                assert_stages(&stages);
                assert!(stages.iter().all(|stage| stage.kind == StageKind::File));
            }
            Err(problems) => assert_problems(&problems, &[(Origin::List, &list)]),
        }
    }

    /// A list accepts any quoted name.
    #[test]
    fn quoted_names_are_parsed_back(name in "[^\r\n]{1,20}") {
        let quoted = name.replace('\'', "'\\''");
        let list = format!("'/g/{quoted}' $DW_JOB_STRIPED/x");
        let stages = stages_of_list(&list, Direction::In, &VariableStyle::DataWarp).expect("a right line");
        prop_assert_eq!(&stages[0].pfs_path, &format!("/g/{name}"));
    }

    #[test]
    fn parsed_sizes_are_positive(text in "[0-9]{0,25}(\\.[0-9]{0,25})?([kKmMgGtTpP]?[iI]?[bB]?|\\PC{0,3})") {
        if let Ok(bytes) = parse_size(&text) {
            prop_assert!(bytes > 0);
        }
    }
}
