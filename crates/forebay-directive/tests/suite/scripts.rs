//! Scripts and their expected requests.

use forebay_directive::{AccessMode, Request, StageKind, parse, parse_for_site};

use crate::{JOBDW, all_bad, assert_begins, bad, good, symbols, warned};

#[test]
fn script_without_directives_requests_nothing() {
    assert_eq!(good(""), Request::default());
    assert_eq!(good("#!/bin/bash\necho hi\n"), Request::default());
}

#[test]
fn comment_that_looks_like_a_directive_is_a_warning() {
    for line in
        ["# DW stage_out a=b", "#dw jobdw", " #DW jobdw", "# bb Create_persistent x", "#Dw copy_in"]
    {
        let found = warned(&format!("#!/bin/bash\n#\n{line}\n#\necho\n"));
        let words = line.trim_end_matches(" a=b").trim_end_matches(" x");
        let start = format!("3:1 \"{words}\" is a comment: it does not begin with #");
        assert_begins(&found, &start);
    }
    for line in ["##DW jobdw", "# DW lines", "echo\n# DW jobdw", "#", "#D", "#ÄÖ jobdw"] {
        assert_eq!(good(&format!("#!/bin/bash\n{line}\n")), Request::default(), "{line}");
    }
}

#[test]
fn jobdw_takes_its_keys_in_any_order() {
    let job =
        good("#DW jobdw capacity=100GB access_mode=striped,private type=scratch pool=wlm_pool");
    let job = job.job.expect("jobdw");
    assert_eq!(job.capacity_bytes, Some(100_000_000_000));
    assert_eq!(job.access, [AccessMode::Striped, AccessMode::Private]);
    assert_eq!(job.pool.as_deref(), Some("wlm_pool"));
    assert_eq!(
        good("#DWjobdw access=private type=scratch capacity=1").job.map(|j| j.access),
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
    assert_eq!(request.stage_out[0].position.line, 7);
}

#[test]
fn symbols_that_slurm_replaced_are_not_replaced_again() {
    let script = format!(
        "{JOBDW}\n#DW stage_in type=file source=/g/5%j%%\\\\%a destination=$DW_JOB_STRIPED/%u\n"
    );
    let request = parse_for_site(&script, None).expect("good");
    assert_eq!(request.stage_in[0].pfs_path, "/g/5%j%%%a");
    assert_eq!(request.stage_in[0].inner_path, "%u");
}

#[test]
fn private_namespace_is_staged_for_a_site_only() {
    let script = "#DW jobdw type=scratch access_mode=private capacity=1G\n\
                  #DW stage_out type=file source=$DW_JOB_PRIVATE/a destination=/g/a\n";
    let request = parse_for_site(script, None).expect("good");
    assert_eq!(request.stage_out[0].inner_path, "a");
    assert!(bad(script).contains("$DW_JOB_PRIVATE/a is private to each node and cannot be staged"));
    let striped = parse_for_site(&script.replace("_PRIVATE", "_STRIPED"), None).expect_err("no");
    assert!(striped[0].message.contains("is not in the burst buffer"), "{striped:?}");
    assert!(striped[0].hint.starts_with("begin it with $DW_JOB_PRIVATE/"), "{striped:?}");
    parse_for_site(&script.replace("private", "striped,private"), None).expect_err("both");
}

#[test]
fn symbols_are_replaced_and_keep_their_blanks() {
    let script = format!(
        "{JOBDW}\n#DW stage_out type=file source=$DW_JOB_STRIPED/%x destination=%d/%u-%j-%%-%q\n\
         #DW stage_out type=file source=$DW_JOB_STRIPED/a destination=/g/\\\\%j\n"
    );
    let request = good(&script);
    assert_eq!(request.stage_out[0].inner_path, "btio");
    assert_eq!(request.stage_out[0].pfs_path, "/scratch/ada/my run/ada-4711-%-%q");
    assert_eq!(request.stage_out[1].pfs_path, "/g/%j");
}

#[test]
fn continuation_lines_repeat_the_prefix() {
    let request = good("#DW jobdw capacity=1000GB \\\n#DW   access_mode=striped type=scratch\n");
    assert_eq!(request.job.and_then(|j| j.capacity_bytes), Some(1_000_000_000_000));
    let glued = good("#DW jobdw capa\\\n#DWcity=1K access_mode=striped type=scratch\n");
    assert_eq!(glued.job.and_then(|j| j.capacity_bytes), Some(1024));
}

#[test]
fn broken_continuations_are_named_where_they_break() {
    for follower in ["#BB x", "#SBATCH -n 1", "#   access_mode=striped type=scratch", "echo"] {
        let script = format!("{JOBDW} \\\n{follower}\n");
        assert!(bad(&script).starts_with("2:1 the #DW line before ends in"), "{follower}");
    }
    assert!(bad(&format!("{JOBDW} \\")).starts_with("2:1 the #DW line before"));
}

#[test]
fn script_with_contradictory_directives_is_refused() {
    let stage = "#DW stage_in type=file source=/g destination=$DW_JOB_STRIPED/in";
    assert!(bad(stage).starts_with("1:5 staging without an allocation | add a line such as"));
    let private = "#DW jobdw type=scratch access_mode=private capacity=1G";
    assert!(
        bad(&format!("{private}\n{stage}")).starts_with("2:5 staging needs access_mode=striped")
    );
    assert!(
        bad(&format!("{JOBDW}\n{JOBDW}"))
            .starts_with("2:5 a second jobdw; the first is at line 1, column 5")
    );
}

#[test]
fn directive_after_the_header_is_a_warning() {
    for gap in ["echo hi", "   "] {
        let found = warned(&format!("#!/bin/bash\n{gap}\n{JOBDW}\n"));
        assert!(found.starts_with("3:1 #DW behind the header, which ended at line 2"), "{found}");
        let is_blank = gap.trim().is_empty();
        let remedy = if is_blank { "line 2 holds only blanks" } else { "move it above the first" };
        assert!(found.contains(remedy), "{found}");
        assert!(found.ends_with("or write ##DW to keep it as a comment"), "{found}");
    }
}

#[test]
fn staging_after_the_header_of_an_allocation_is_an_error() {
    let line = "#DW stage_out type=file source=$DW_JOB_STRIPED/a destination=/g/a";
    let found = bad(&format!("#!/bin/bash\n{JOBDW}\necho hi\n{line}\n"));
    assert_begins(&found, "4:1 #DW behind the header");
    assert_begins(&warned(&format!("#!/bin/bash\necho hi\n{line}\n")), "3:1 #DW behind the header");
}

#[test]
fn script_that_writes_another_script_is_read() {
    for word in ["EOF", "-EOF", " 'EOF'", "\"EOF\""] {
        let script = format!("#!/bin/bash\ncat > inner.sh <<{word}\n{JOBDW}\n\tEOF\n");
        assert_eq!(good(&script).job, None, "{word}");
        let found = warned(&format!("{script}{JOBDW}\n"));
        assert!(found.starts_with("5:1 #DW behind the header"), "{found}");
    }
}

#[test]
fn double_angle_bracket_is_not_always_a_here_document() {
    for line in [
        "x=$((1<<n))",
        "(( x = y<<n ))",
        "  # x << n",
        "grep x <<<word",
        "x<<2",
        "echo \"<< start >>\"",
        "echo '<<n'",
        "let \"x = 1 << n\"; n\nn",
        "x=$(((1 << k)))\nk",
        "let x=1<<n",
    ] {
        let found = warned(&format!("#!/bin/bash\n{line}\n{JOBDW}\n"));
        let number = line.lines().count() + 2;
        assert_begins(&found, &format!("{number}:1 #DW behind the header"));
    }
}

#[test]
fn directive_in_quotes_over_several_lines_is_text() {
    let line = "#DW stage_out type=file source=$DW_JOB_STRIPED/a destination=/g/a";
    let written = format!("{JOBDW}\necho \"\n{line}\n\" > next.sh\n");
    assert_eq!(good(&written).warnings, []);
    assert_begins(&warned(&written.replace("> next.sh", "| sh")), "3:1 #DW in quotes behind");
    let continued = format!("{JOBDW}\necho a \\\n# don't\n{line}\necho b \\\n# isn't\n");
    assert_begins(&bad(&continued), "4:1 #DW behind the header");
    for unclosed in ["echo it's\n", "x=${y#'}\n# don't\n", "case x in\n(a) ;; esac; ( a\n"] {
        let found = bad(&format!("{JOBDW}\n{unclosed}{line}\n"));
        assert!(found.contains("#DW behind the header"), "{unclosed}: {found}");
    }
    let python = format!("#!/usr/bin/python3\n{JOBDW}\nx = \"\"\"\n{line}\n\"\"\"\n");
    assert_begins(&bad(&python), "4:1 #DW behind the header");
}

#[test]
fn dollar_in_the_value_of_a_symbol_is_no_variable() {
    let mut symbols = symbols();
    symbols.directory = "/scratch/$cash".into();
    let script =
        format!("{JOBDW}\n#DW stage_out type=file source=$DW_JOB_STRIPED/a destination=%d/a\n");
    let request = parse(&script, &symbols).expect("good");
    assert_eq!(request.stage_out[0].pfs_path, "/scratch/$cash/a");
}

#[test]
fn all_problems_are_reported_in_line_order() {
    let problems = all_bad("#DW jobdw capacity=0\n#DW what\n#DW swap 1\n");
    let lines: Vec<_> = problems.iter().map(|p| &p[..2]).collect();
    assert_eq!(lines, ["1:", "1:", "1:", "2:", "3:"], "{problems:#?}");
}

#[test]
fn errors_are_reported_before_unsupported_features() {
    let cache = "#DW jobdw type=cache access_mode=striped,ldbalance capacity=x";
    let problems = all_bad(cache);
    assert_eq!(problems.len(), 2, "{problems:#?}");
    assert_begins(&problems[0], "1:5 type=cache needs pfs=");
    assert_begins(&problems[1], "1:61 capacity=x is no size");
    let right = cache.replace("capacity=x", "capacity=1G pfs=/g");
    assert_eq!(all_bad(&right).len(), 2, "type=cache, and ldbalance");
}

#[test]
fn symbols_of_arrays_are_replaced() {
    let stage = "#DW stage_out type=file source=$DW_JOB_STRIPED/a destination=/g/%A_%a_%b";
    let script = format!("{JOBDW}\n{stage}");
    let mut symbols = symbols();
    symbols.array_job_id = "4700".into();
    symbols.array_task = "137".into();
    let request = parse(&script, &symbols).expect("good");
    assert_eq!(request.stage_out[0].pfs_path, "/g/4700_137_7");
}

#[test]
fn symbol_of_an_array_task_is_an_error_in_another_job() {
    let stage = "#DW stage_in type=directory source=/in/%% destination=$DW_JOB_STRIPED/";
    for symbol in ["%a", "%b"] {
        let found = bad(&format!("{JOBDW}\n{}", stage.replace("%%", symbol)));
        assert_begins(&found, &format!("2:40 {symbol} has no value: this job is no task"));
        assert!(found.contains("SLURM_ARRAY_TASK_ID=N forebay run"), "{found}");
    }
    let request = good(&format!("{JOBDW}\n{}", stage.replace("%%", "%A%%a\\\\%a")));
    assert_eq!(request.stage_in[0].pfs_path, "/in/4711%a%a");
}

#[test]
fn large_job_stages_its_directory_in_and_out() {
    let request = good(
        "#!/bin/bash\n#SBATCH --partition=workq\n#SBATCH -t 10\n#SBATCH --nodes=32\n\
         #SBATCH --ntasks=1024\n#SBATCH -o out_%j\n\
         #DW jobdw type=scratch access_mode=striped capacity=2TiB\n\
         #DW stage_in type=directory source=/scratch/ada/for_bb destination=$DW_JOB_STRIPED\n\
         #DW stage_out type=directory destination=/scratch/ada/back_up source=$DW_JOB_STRIPED/\n\
         cd $DW_JOB_STRIPED\nchmod +x executable\nsrun -n 1024 ./executable\n",
    );
    assert_eq!(request.job.expect("jobdw").capacity_bytes, Some(2 << 40));
    assert_eq!(request.stage_in[0].inner_path, "");
    assert_eq!(request.stage_out[0].pfs_path, "/scratch/ada/back_up");
    assert_eq!(request.warnings, []);
}
