//! The `mpiexec` and `mpirun` stand-in, with the options that matter on one machine.
//! Assumes that an unknown option has no separate value: it is handed on with a warning.
//! Drops known options that place ranks on nodes.

use std::ffi::{OsStr, OsString};

use forebay_terminal::print_warning;

use crate::mpi_launcher::{Launcher, check_ranks, no_program, tasks_of_the_job};

/// How the stand-in handles an option.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// The number of ranks.
    Count,
    /// The ranks of each node, used if no option gives the number of ranks.
    PerNode,
    /// One rank for each node.
    OnePerNode,
    /// Passed on with this number of values.
    Passed(usize),
    /// Passed on with a name and a value: two words, or one such as `NAME=VALUE` (Hydra).
    Pair,
    /// Dropped with this number of values: places ranks on nodes, but there is only one node.
    Dropped(usize),
}

/// Options of mpiexec from Open MPI, MPICH and Intel MPI, without dashes.
const OPTIONS: &[(&[&str], Fate)] = &[
    (&["n", "np", "c"], Fate::Count),
    (&["ppn", "perhost", "npernode", "N"], Fate::PerNode),
    (&["pernode"], Fate::OnePerNode),
    (
        &["x", "wdir", "wd", "path", "output-filename", "timeout", "stdin", "prefix"],
        Fate::Passed(1),
    ),
    (&["envlist", "genvlist", "gwdir", "gpath", "am", "tune", "outfile-pattern"], Fate::Passed(1)),
    (&["mca", "gmca", "prtemca"], Fate::Passed(2)),
    (&["env", "genv"], Fate::Pair),
    (
        &["v", "q", "verbose", "quiet", "tag-output", "timestamp-output", "l", "label"],
        Fate::Passed(0),
    ),
    (&["genvall", "genvnone", "envall", "envnone", "report-bindings"], Fate::Passed(0)),
    (&["oversubscribe", "allow-run-as-root", "merge-stderr-to-stdout"], Fate::Passed(0)),
    (&["V", "version", "h", "help", "info"], Fate::Passed(0)),
    (
        &["host", "hosts", "H", "hostfile", "machinefile", "f", "machine", "rf", "rankfile"],
        Fate::Dropped(1),
    ),
    (
        &["default-hostfile", "npersocket", "map-by", "bind-to", "rank-by", "hostlist"],
        Fate::Dropped(1),
    ),
    (
        &["launcher", "rmk", "bootstrap", "iface", "cpus-per-proc", "cpus-per-rank"],
        Fate::Dropped(1),
    ),
    (&["bynode", "byslot", "nolocal", "nooversubscribe"], Fate::Dropped(0)),
    (&["bind-to-core", "bind-to-socket", "bind-to-none", "use-hwthread-cpus"], Fate::Dropped(0)),
];
/// Options that request information about the launcher.
const QUESTIONS: &[&str] = &["-V", "--version", "-version", "-h", "--help", "-help", "-info"];

/// Runs `mpiexec` or `mpirun` in a job without a scheduler.
pub fn mpiexec(words: &[OsString]) -> i32 {
    let launcher = match Launcher::find() {
        Ok(launcher) => launcher,
        Err(status) => return status,
    };
    let tasks = tasks_of_the_job();
    let mut adapted: Vec<OsString> = Vec::new();
    let mut starts_something = false;
    let mut ranks: usize = 0;
    // A colon separates programs that run together.
    for context in words.split(|word| word == ":") {
        let (options, program) = split(context, tasks.as_ref());
        if !adapted.is_empty() {
            adapted.push(":".into());
        }
        adapted.extend(options.iter().map(|option| launcher.spell(option).to_owned()));
        adapted.extend_from_slice(program);
        starts_something |= !program.is_empty();
        // split puts the number first.
        let count = options.get(1).filter(|_| options.first().is_some_and(|first| first == "-n"));
        ranks += count.and_then(|count| count.to_str()?.parse::<usize>().ok()).unwrap_or(0);
    }
    let asks = words.iter().any(|word| QUESTIONS.iter().any(|question| word == question));
    if !starts_something && !asks {
        return no_program("mpiexec -n 4 ./a.out");
    }
    match check_ranks(ranks) {
        Ok(()) => launcher.start(&adapted, |_| {}),
        Err(status) => status,
    }
}

/// Splits words into options to pass on and the program with its arguments. Adds the job's `tasks`
/// if no option sets the number of ranks, as in a scheduler's job.
fn split<'a>(words: &'a [OsString], tasks: Option<&OsString>) -> (Vec<OsString>, &'a [OsString]) {
    let mut kept = Vec::new();
    let mut count: Option<OsString> = None;
    let mut per_node: Option<OsString> = None;
    let mut at = 0;
    while let Some((text, name)) = words.get(at).and_then(|word| option_name(word)) {
        let (name, attached) = match name.split_once('=') {
            Some((name, value)) => (name, Some(OsString::from(value))),
            None => (name, None),
        };
        let known = OPTIONS.iter().find(|(names, _)| names.contains(&name));
        let fate = known.map_or(Fate::Passed(0), |(_, fate)| *fate);
        if known.is_none() {
            print_warning(&format!("mpiexec: unknown option {text} is handed on as it is"));
        }
        let values = match fate {
            _ if attached.is_some() => 0,
            Fate::Count | Fate::PerNode => 1,
            Fate::OnePerNode => 0,
            Fate::Pair => {
                let next = words.get(at + 1).and_then(|word| word.to_str());
                if next.is_some_and(|word| word.contains('=')) { 1 } else { 2 }
            }
            Fate::Passed(values) | Fate::Dropped(values) => values,
        };
        let end = (at + 1 + values).min(words.len());
        match fate {
            Fate::Count => count = attached.or_else(|| words.get(at + 1).cloned()),
            Fate::PerNode => per_node = attached.or_else(|| words.get(at + 1).cloned()),
            Fate::OnePerNode => per_node = Some("1".into()),
            Fate::Passed(_) | Fate::Pair => kept.extend_from_slice(&words[at..end]),
            Fate::Dropped(_) => {}
        }
        at = end;
    }
    let program = words.get(at..).unwrap_or_default();
    let count = count.or(per_node).or_else(|| tasks.cloned());
    if let Some(count) = count.filter(|_| !program.is_empty()) {
        kept.splice(0..0, ["-n".into(), count]);
    }
    (kept, program)
}

/// An option with its dashes and without them.
fn option_name(word: &OsStr) -> Option<(&str, &str)> {
    let text = word.to_str()?;
    let name = text.strip_prefix('-')?;
    Some((text, name.strip_prefix('-').unwrap_or(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn splits_into(line: &str, options: &str, program: &str) {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let (kept, rest) = split(&words, Some(&"4".into()));
        let text = |words: &[OsString]| words.join(OsStr::new(" ")).into_string().expect("utf-8");
        assert_eq!(text(&kept), options, "{line}");
        assert_eq!(text(rest), program, "{line}");
    }

    #[test]
    fn placement_options_are_dropped_and_the_rest_forwarded() {
        splits_into("-n 3 ./a.out -n 5", "-n 3", "./a.out -n 5");
        splits_into("-np 3 --map-by ppr:2:node -x A=b ./a.out", "-n 3 -x A=b", "./a.out");
        splits_into("--hostfile=h -ppn 32 --np=2 a b", "-n 2", "a b");
        splits_into("-genv A b -mca io romio321 -n 1 a", "-n 1 -genv A b -mca io romio321", "a");
        splits_into("-genv A=b -env C=d -n 1 a b=c", "-n 1 -genv A=b -env C=d", "a b=c");
        splits_into("--frobnicate -n 1 a", "-n 1 --frobnicate", "a");
        splits_into("--version", "--version", "");
    }

    #[test]
    fn number_of_ranks_defaults_to_that_of_the_job() {
        splits_into("./a.out", "-n 4", "./a.out");
        splits_into("-N 3 --host a ./a.out", "-n 3", "./a.out");
        splits_into("-pernode ./a.out", "-n 1", "./a.out");
    }
}
