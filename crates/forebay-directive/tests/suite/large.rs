//! Large inputs. Each takes minutes if the work grows with the square of the input.

use super::{JOBDW, all_bad, good};

const COUNT: usize = 10_000;

/// The numbered texts, one after the other.
fn each(count: usize, text: impl Fn(usize) -> String) -> String {
    (0..count).map(text).collect()
}

#[test]
fn many_lines_of_persistent_allocations() {
    let stage = "#DW stage_in type=file source=/a destination=$DW_PERSISTENT_STRIPED";
    let request = good(&each(COUNT, |n| format!("#DW persistentdw name=a-{n}\n{stage}_a_{n}/b\n")));
    assert_eq!((request.persistent.len(), request.stage_in.len()), (COUNT, COUNT));
    let problems = all_bad(&"#BB destroy_persistent name=a\n".repeat(COUNT));
    assert_eq!(problems.len(), COUNT - 1);
    assert!(problems[COUNT - 2].contains("a is destroyed here and destroyed at line 1,"));
}

#[test]
fn many_lines_that_need_another_one() {
    let problems = all_bad(&"#DW swap 1GiB\n".repeat(COUNT * 4));
    assert_eq!(problems.len(), COUNT * 4);
    assert!(problems.iter().all(|problem| problem.contains("swap without jobdw")));
}

#[test]
fn long_lines() {
    let modes = "striped,".repeat(COUNT * 4) + &"private,".repeat(COUNT * 4);
    let script = format!("#DW jobdw type=scratch capacity=1G access_mode={modes}striped");
    assert_eq!(all_bad(&script).len(), COUNT * 8 - 1);
    let modifiers = "MFS=1G,".repeat(COUNT * 4) + &"MFC=1,".repeat(COUNT * 4);
    let script =
        format!("#DW jobdw type=scratch capacity=1G access_mode=striped({modifiers}client_cache)");
    assert_eq!(all_bad(&script).len(), COUNT * 8 - 2);
    let keys = each(COUNT * 4, |n| format!(" DW_JOB_{n}=ab"));
    let problems = all_bad(&format!("#DW container name=aa profile=aa{keys} DW_JOB_0=ab"));
    assert!(matches!(problems.as_slice(), [one] if one.contains("DW_JOB_0 is given twice")));
}

#[test]
fn long_name_and_many_stages() {
    let stages = "#DW copy_in source=/a destination=$DW_JOB_a/b\n".repeat(COUNT);
    let name = "a".repeat(COUNT * 4);
    let problems = all_bad(&format!("#DW jobdw type=xfs capacity=1GiB name={name}\n{stages}"));
    assert_eq!(problems.len(), COUNT + 1);
    assert!(problems[0].contains("is too long: it has 40000 characters, at most 64 can be"));
}

#[test]
fn long_line_of_variables() {
    let script = each(COUNT * 4, |n| format!("$DW_JOB_{n}/"));
    assert_eq!(forebay_directive::expanded_variables(&script).len(), COUNT * 4);
    let script = format!("{JOBDW}\necho {script}");
    assert!(good(&script).job.is_some());
}

#[test]
fn long_quotes_and_values_of_variables() {
    let uses = |script: &str| forebay_directive::expanded_variables(script).len();
    for repeated in ["DW_JOB_A ", "DW_JOB_A=/a ", "(DW_JOB_A=/a ", "[ \"$(DW_JOB_A=$DW_JOB_A "] {
        let long = repeated.repeat(COUNT / 8);
        for script in [format!("x '{long}'"), format!("sh -c '{long}'"), long] {
            assert_eq!(uses(&format!("{script}\ncd $DW_JOB_B")), 1 + uses(&script));
        }
    }
}
