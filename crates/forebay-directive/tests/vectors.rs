//! Single lines with expected results. The valid lines follow DataWarp's public documentation and
//! talks of sites.

use forebay_directive::{Request, Symbols, parse};

/// The expected result for a script.
enum Outcome {
    /// The job can start.
    Good,
    /// No directive, so a request of nothing, perhaps with a warning.
    Nothing,
    /// Valid but not supported: the start of the problem.
    Refused(&'static str),
    /// Invalid: the start of the problem.
    Wrong(&'static str),
}
use Outcome::{Good, Nothing, Refused, Wrong};

/// Lines tested alone.
const ALONE: &[(&str, Outcome)] = &[
    ("#DW jobdw type=scratch access_mode=striped capacity=1TiB", Good),
    ("#DW jobdw capacity=100GB access_mode=striped,private type=scratch pool=wlm_pool", Good),
    ("#DW jobdw type=scratch access_mode=striped(client_cache=yes) capacity=50GiB", Good),
    ("#DW jobdw type=scratch access_mode=striped capacity=3.5TB", Good),
    ("#DWjobdw access=private type=scratch capacity=1", Good),
    (
        "#DW jobdw type=cache access_mode=striped pfs=/lus/global capacity=100TiB",
        Refused("1:16 type=cache is refused: transparent caching"),
    ),
    (
        "#DW jobdw type=cache access_mode=striped(MFS=10GiB,client_cache) pfs=/lus/global \\\n\
         #DW       capacity=100TiB write_window_multiplier=5 write_window_length=43200",
        Refused("1:16 type=cache is refused: transparent caching"),
    ),
    (
        "#DW jobdw type=cache access_mode=striped pfs=/g capacity=1T modifiedthreshold=1G \
         read_ahead=1MiB:8MiB sync_on_close=yes max_mds=no optimization_strategy=wear",
        Refused("1:16 type=cache is refused: transparent caching"),
    ),
    (
        "#DW jobdw type=cache access_mode=striped capacity=1GiB",
        Wrong("1:5 type=cache needs pfs= |"),
    ),
    (
        "#DW jobdw type=cache access_mode=striped capacity=1GiB pfs=lus",
        Wrong("1:60 pfs=lus is not an absolute path"),
    ),
    (
        "#DW jobdw type=cache access_mode=striped capacity=1G pfs=/g read_ahead=1MiB",
        Wrong("1:72 read_ahead=1MiB is no pair of sizes | write for example read_ahead=1MiB:8MiB"),
    ),
    (
        "#DW jobdw type=cache access_mode=striped capacity=1G pfs=/g sync_on_close=1",
        Wrong("1:75 sync_on_close=1 is not known | write sync_on_close=yes or no"),
    ),
    (
        "#DW jobdw type=cache access_mode=striped capacity=1G pfs=/g modified_threshold=x",
        Wrong("1:80 modified_threshold=x is no size"),
    ),
    (
        "#DW jobdw type=scratch access_mode=striped capacity=1GiB pfs=/lus",
        Wrong("1:62 pfs= belongs to type=cache | remove it, or write type=cache"),
    ),
    (
        "#DW jobdw type=scratch access_mode=striped capacity=1GiB sync_on_close=yes",
        Wrong("1:72 sync_on_close= belongs to type=cache"),
    ),
    (
        "#DW jobdw type=scratch access_mode=striped",
        Wrong("1:5 jobdw needs capacity= | for example: #DW"),
    ),
    (
        "#DW jobdw type=scratch access_mode=striped capacity=0",
        Wrong("1:53 capacity=0 is no size: it is zero"),
    ),
    (
        "#DW jobdw type=scratch access_mode=striped capacity=3X",
        Wrong("1:53 capacity=3X is no size: its unit"),
    ),
    ("#DW jobdw type=scratch capacity=1G", Wrong("1:5 jobdw needs access_mode=")),
    ("#DW jobdw access_mode=striped capacity=1G", Wrong("1:5 jobdw needs type=")),
    (
        "#DW jobdw type=tape access_mode=striped capacity=1G",
        Wrong("1:16 type=tape is not known | write type=scratch"),
    ),
    ("#DW jobdw type= access_mode=striped capacity=1G", Wrong("1:11 type= has no value")),
    (
        "#DW jobdw type=scratch access_mode=stripped capacity=1G",
        Wrong("1:36 unknown access_mode \"stripped\""),
    ),
    (
        "#DW jobdw type=scratch access_mode=striped,striped capacity=1G",
        Wrong("1:44 access_mode names striped twice"),
    ),
    (
        "#DW jobdw type=scratch access_mode=striped,ldbalance(MFS=1G) capacity=1G",
        Refused("1:44 access_mode=ldbalance is refused: copies of read-only files"),
    ),
    (
        "#DW jobdw type=scratch access_mode=striped(MFS=1G capacity=1G",
        Wrong("1:36 \"striped(MFS=1G\" is no access mode with modifiers"),
    ),
    (
        "#DW jobdw type=scratch access_mode=private,striped(MFC=0) capacity=1G",
        Wrong("1:56 MFC=0 is no whole number above zero | write for example MFC=10"),
    ),
    (
        "#DW jobdw type=scratch access_mode=striped(MFS) capacity=1G",
        Wrong("1:44 MFS= has no value | write MFS=10GiB"),
    ),
    (
        "#DW jobdw type=scratch access_mode=striped(client_cache=on) capacity=1G",
        Wrong("1:57 client_cache=on is not known | write for example client_cache=yes"),
    ),
    (
        "#DW jobdw type=scratch access_mode=striped(MFC=1,MFC=2) capacity=1G",
        Wrong("1:50 MFC is given twice"),
    ),
    (
        "#DW jobdw type=scratch access_mode=striped(speed=1) capacity=1G",
        Wrong("1:44 unknown modifier \"speed\" | known are MFS= MFC= client_cache="),
    ),
    (
        "#DW jobdw type=scratch access_mode=striped capacity=1G hurry",
        Wrong("1:56 \"hurry\" is not of the form"),
    ),
    (
        "#DW jobdw type=scratch access_mode=striped capacity=1G \\ ",
        Wrong("1:56 \"\\\" is not of the form key=value | a line goes on in the next one"),
    ),
    (
        "#DW jobdw type=scratch access_mode=striped capacity=1G size=1",
        Wrong("1:56 unknown key \"size\" | jobdw knows type= access_mode="),
    ),
    (
        "#DW jobdw type=scratch type=scratch access_mode=striped capacity=1G",
        Wrong("1:24 type is given twice"),
    ),
    ("#DW persistentdw name=proj1", Good),
    (
        "#DW persistentdw",
        Wrong("1:5 persistentdw needs name= | for example: #DW persistentdw name="),
    ),
    ("#DW persistentdw name=1a", Wrong("1:23 name=1a is no name: it begins with a letter")),
    (
        "#DW swap 10GiB",
        Wrong("1:5 swap without jobdw | it takes its space from the job's allocation"),
    ),
    ("#BB create_persistent name=proj1 capacity=1TiB", Good),
    ("#BB create_persistent name=george_test capacity=600G access=striped type=scratch", Good),
    ("#BB create_persistent name=a capacity=1G access_mode=striped(group=team)", Good),
    (
        "#BB create_persistent name=a capacity=1G access_mode=striped(group)",
        Wrong("1:62 group= has no value"),
    ),
    (
        "#DW jobdw type=scratch access_mode=striped(group=team) capacity=1G",
        Wrong(
            "1:5 (group=) in a jobdw: the allocation of a job is its owner's alone | write (group=",
        ),
    ),
    (
        "#BB create_persistent name=a capacity=1G access_mode=striped,private",
        Wrong("1:5 a persistent allocation with access_mode=private"),
    ),
    (
        "#BB create_persistent name=a capacity=1G type=cache",
        Refused("1:47 type=cache is refused: transparent caching"),
    ),
    (
        "#BB create_persistent name=a23456789012345678901234567890123456789012345678901234567890\
         12345 capacity=1G",
        Wrong(
            "1:28 name=a23456789012345678901234567890123456789012345678901234567890\
               12345 is too long: it has 65 characters, at most 64",
        ),
    ),
    (
        "#BB create_persistent name=1abc capacity=1TiB",
        Wrong("1:28 name=1abc is no name: it begins with a letter"),
    ),
    ("#BB create_persistent name=a capacity=0", Wrong("1:39 capacity=0 is no size: it is zero")),
    ("#BB create_persistent name=a", Wrong("1:5 create_persistent needs capacity=")),
    (
        "#DW create_persistent name=a capacity=1G access=striped",
        Wrong(
            "1:1 create_persistent is written with #BB, not #DW | write #BB create_persistent ...",
        ),
    ),
    ("#BB destroy_persistent name=proj1 hurry", Good),
    ("#BB destroy_persistent name=proj1", Good),
    (
        "#BB destroy_persistent name=proj1 slowly",
        Wrong(
            "1:35 \"slowly\" is not of the form key=value | destroy_persistent knows name= hurry",
        ),
    ),
    ("#DW", Wrong("1:1 #DW without a command | known commands: jobdw, stage_in")),
    (
        "#DW jobwd x=1",
        Wrong("1:5 unknown command \"jobwd\" | did you mean jobdw? known commands: jobdw"),
    ),
    (
        "#DW jobdw tpye=scratch type=scratch access_mode=striped capacity=1G",
        Wrong("1:11 unknown key \"tpye\" | did you mean type? jobdw knows type="),
    ),
    (
        "#DW jobdw type=scrach access_mode=striped capacity=1G",
        Wrong("1:16 type=scrach is not known | did you mean scratch? write type=scratch"),
    ),
    (
        "#DW jobdw type=scratch access_mode=stripped capacity=1G",
        Wrong("1:36 unknown access_mode \"stripped\" | did you mean striped?"),
    ),
    (
        "#BB destroy_persistent name=proj1 hury",
        Wrong("1:35 \"hury\" is not of the form key=value | did you mean hurry?"),
    ),
    ("#DW copy_oot source=/a", Wrong("1:5 unknown command \"copy_oot\" | did you mean copy_out?")),
    ("#BB jobdw", Wrong("1:1 jobdw is written with #DW, not #BB | write #DW jobdw")),
    ("#DW tier_in source=/a", Wrong("1:5 unknown command \"tier_in\" | older DWS had it")),
    ("#BB_LUA pool=p capacity=1K", Wrong("1:4 unknown command \"_LUA\" | #BB_LUA lines are for")),
    (
        "#DW destroy_persistent name=My_buf3",
        Wrong("1:1 destroy_persistent is written with #BB, not #DW"),
    ),
    ("#DW destroy_persistent name=buf3", Good),
    ("#dw jobdw type=scratch", Nothing),
    (" #DW jobdw type=scratch", Nothing),
    ("##DW jobdw type=scratch", Nothing),
    ("#SBATCH --bb=x", Nothing),
];

/// Lines tested after the line of an allocation.
const BESIDE_JOBDW: &[(&str, Outcome)] = &[
    (
        "#DW stage_in type=file source=\"/g/a\" destination=$DW_JOB_STRIPED/",
        Wrong("2:31 source=\"/g/a\" begins with a quote | directives have no quotes"),
    ),
    (
        "#DW stage_out type=file source=$DW_JOB_STRIPED/*.dat destination=/g/",
        Wrong(
            "2:32 source=$DW_JOB_STRIPED/*.dat has the pattern *, and no shell expands it | name the directory",
        ),
    ),
    (
        "#DW stage_in type=file source=/g/a[12] destination=$DW_JOB_STRIPED/",
        Wrong("2:31 source=/g/a[12] has the pattern [12]"),
    ),
    (
        "#DW stage_in type=file source=/g/{a,b} destination=$DW_JOB_STRIPED/",
        Wrong("2:31 source=/g/{a,b} has the pattern {a,b}"),
    ),
    ("#DW stage_out type=file source=${DW_JOB_STRIPED}/a destination=/g/", Good),
    ("#DW swap 10GiB", Refused("2:5 swap is refused: swap space needs root on the compute nodes")),
    ("#DW swap 10 pool=p", Refused("2:5 swap is refused")),
    ("#DW swap", Wrong("2:5 swap needs SIZE | for example: #DW swap 10GiB")),
    ("#DW swap much", Wrong("2:10 swap much is no size: it does not begin with a number")),
    (
        "#DW stage_in type=file source=/g destination=$DW_JOB_STRIPED # all of it",
        Wrong("2:62 a directive has no comment | write the comment into a line of its own"),
    ),
    ("#DW swap 1 #", Wrong("2:12 a directive has no comment")),
    (
        "#DW destroy_persistent name=buf3",
        Wrong("2:1 destroy_persistent is written with #BB, not #DW"),
    ),
    ("#DW swap 1 2", Wrong("2:12 \"2\" is not of the form key=value | swap knows SIZE pool=")),
    ("#DW stage_in type=file source=/g/in.dat destination=$DW_JOB_STRIPED/in.dat", Good),
    ("#DW stage_in type=list source=/g/list", Good),
    ("#DW stage_out type=list source=/g/list", Good),
    (
        "#DW stage_in type=directory source=/g/in destination=$DW_JOB_PRIVATE/in",
        Wrong("2:54 destination=$DW_JOB_PRIVATE/in is private to each node"),
    ),
    (
        "#DW stage_out type=file source=/a destination=/b",
        Wrong("2:32 source=/a is not in the burst buffer | begin it with $DW_JOB_STRIPED/"),
    ),
    (
        "#DW stage_in type=file source=in destination=$DW_JOB_STRIPED/in",
        Wrong("2:31 source=in is not an absolute path"),
    ),
    (
        "#DW stage_in type=file source=$HOME/in destination=$DW_JOB_STRIPED/in",
        Wrong("2:31 source=$HOME/in holds a variable"),
    ),
    (
        "#DW stage_in type=file source=$DW_JOB_STRIPED/a destination=$DW_JOB_STRIPED/in",
        Wrong("2:31 source=$DW_JOB_STRIPED/a is in the burst buffer, where a path of"),
    ),
    (
        "#DW stage_in type=file source=/g destination=$DW_JOB_STRIPEDx",
        Wrong("2:46 destination=$DW_JOB_STRIPEDx is not in"),
    ),
    (
        "#DW stage_in type=file source=/g destination=$DW_JOB_STRIPED/$USER/in",
        Wrong("2:46 destination=$DW_JOB_STRIPED/$USER/in holds another variable"),
    ),
    (
        "#DW stage_in type=directory source=/g destination=$DW_PERSISTENT_STRIPED_george_test",
        Wrong("2:5 staging in the persistent allocation george_test, which the job does not use"),
    ),
    (
        "#DW stage_out type=file source=$DW_JOB_STRIPED/../x destination=/g",
        Wrong("2:32 source=$DW_JOB_STRIPED/../x leaves the burst buffer"),
    ),
    (
        "#DW stage_out type=list source=$DW_JOB_STRIPED/list",
        Wrong("2:32 source=$DW_JOB_STRIPED/list is in the burst buffer"),
    ),
    ("#DW stage_in type=list", Wrong("2:5 stage_in needs source=")),
    ("#DW stage_in source=/g destination=$DW_JOB_STRIPED", Wrong("2:5 stage_in needs type=")),
    ("#DW stage_in type=file source=/g", Wrong("2:5 stage_in needs destination=")),
    (
        "#DW stage_in type=tree source=/g destination=$DW_JOB_STRIPED",
        Wrong("2:19 type=tree is not known | write type=file or directory or list"),
    ),
];

#[test]
fn each_line_parses_to_the_result_of_the_table() {
    for (script, outcome) in ALONE {
        check(script, outcome);
    }
    for (line, outcome) in BESIDE_JOBDW {
        let script = format!("#DW jobdw type=scratch access_mode=striped capacity=1TiB\n{line}");
        check(&script, outcome);
    }
}

fn check(script: &str, outcome: &Outcome) {
    let parsed = parse(script, &Symbols::default());
    let expected = match (outcome, &parsed) {
        (Good, Ok(request)) if *request != Request::default() => return,
        (Nothing, Ok(request)) if requests_nothing(request) => return,
        (Refused(expected), Err(_)) => {
            assert!(expected.contains(" is refused"), "{expected}");
            expected
        }
        (Wrong(expected), Err(_)) => {
            assert!(!expected.contains(" is refused"), "{expected}");
            expected
        }
        _ => panic!("{script}\n{parsed:#?}"),
    };
    let problems = parsed.err().unwrap_or_default();
    assert_eq!(problems.len(), 1, "{script}\n{problems:#?}");
    let p = &problems[0];
    let found = format!("{}:{} {} | {}", p.position.line, p.position.column, p.message, p.hint);
    assert!(found.starts_with(expected), "{script}\n  found    {found}\n  expected {expected}");
}

fn requests_nothing(request: &Request) -> bool {
    *request == Request { warnings: request.warnings.clone(), ..Request::default() }
}
