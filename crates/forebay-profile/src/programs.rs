//! Summarizes the files that programs wrote to a record.
//! Assumes that the clocks of a job's nodes agree: start times tell which programs overlap.

use std::path::Path;

use forebay_host::files;
use serde::Deserialize;

/// The summary of a record.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ProgramSummary {
    /// The number of programs, with or without MPI.
    pub programs: usize,
    /// Time in I/O calls: for each program, the time of its slowest rank. Of programs that overlap,
    /// only the one with the largest share counts. None if a program has no time.
    pub io_s: Option<f64>,
}

/// The members used from a step or a process.
#[derive(Debug, Deserialize)]
struct Program {
    started_unix_s: f64,
    wall_s: Option<f64>,
    io_s: Option<IoSeconds>,
    recovered: Option<Recovered>,
}

/// What a killed program left: its run time counts until its last call.
#[derive(Debug, Deserialize)]
struct Recovered {
    until_s: f64,
}

#[derive(Debug, Deserialize)]
struct IoSeconds {
    slowest: f64,
}

/// Summarizes a record. A damaged file counts as a program without times.
pub fn summarize(directory: &Path) -> ProgramSummary {
    let names = files::names_in(directory).unwrap_or_default();
    let names = names.iter().filter_map(|name| name.to_str());
    let is_program = |name: &&str| {
        name.ends_with(".json") && (name.starts_with("step-") || name.starts_with("process-"))
    };
    let texts =
        names.filter(is_program).map(|name| files::read_record(&directory.join(name), None));
    let programs: Vec<Option<Span>> =
        texts.map(|text| Span::of(&serde_json::from_str(&text.ok()?).ok()?)).collect();
    let all: Option<Vec<Span>> = programs.iter().copied().collect();
    ProgramSummary {
        programs: programs.len(),
        io_s: all.filter(|spans| !spans.is_empty()).map(|spans| io_seconds(&spans)),
    }
}

/// The run time of a program, and the share of I/O in it.
#[derive(Debug, Clone, Copy)]
struct Span {
    begin_s: f64,
    end_s: f64,
    share: f64,
}

impl Span {
    fn of(program: &Program) -> Option<Self> {
        let until_s = program.recovered.as_ref().map(|recovered| recovered.until_s);
        let (wall_s, io_s) = (program.wall_s.or(until_s)?, program.io_s.as_ref()?.slowest);
        Some(Self {
            begin_s: program.started_unix_s,
            end_s: program.started_unix_s + wall_s,
            share: if wall_s > 0.0 { (io_s / wall_s).min(1.0) } else { 0.0 },
        })
    }
}

/// At each time, the largest share among the running programs counts.
fn io_seconds(spans: &[Span]) -> f64 {
    let mut moments: Vec<f64> = spans.iter().flat_map(|span| [span.begin_s, span.end_s]).collect();
    moments.sort_by(f64::total_cmp);
    let mut waiting: Vec<&Span> = spans.iter().collect();
    waiting.sort_by(|a, b| b.begin_s.total_cmp(&a.begin_s));
    let mut running: Vec<&Span> = Vec::new();
    let mut seconds = 0.0;
    for pair in moments.windows(2) {
        let (from_s, to_s) = (pair[0], pair[1]);
        running.retain(|span| span.end_s > from_s);
        while let Some(span) = waiting.pop_if(|span| span.begin_s <= from_s) {
            running.push(span);
        }
        let largest = running.iter().map(|span| span.share).fold(0.0, f64::max);
        seconds += largest * (to_s - from_s);
    }
    seconds
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(programs: &[&str]) -> ProgramSummary {
        let scratch = tempfile::tempdir().expect("tempdir");
        for (number, text) in programs.iter().enumerate() {
            let name = scratch.path().join(format!("step-{number}-1.json"));
            files::write_atomically(&name, &scratch.path().join("fresh"), text.as_bytes())
                .expect("write");
        }
        summarize(scratch.path())
    }

    #[test]
    fn consecutive_programs_add_up_and_concurrent_ones_count_once() {
        let first =
            r#"{"started_unix_s": 100.0, "wall_s": 10.0, "io_s": {"sum": 8.0, "slowest": 2.0}}"#;
        let later =
            r#"{"started_unix_s": 120.0, "wall_s": 4.0, "io_s": {"sum": 9.0, "slowest": 3.0}}"#;
        let overlapping =
            r#"{"started_unix_s": 105.0, "wall_s": 10.0, "io_s": {"sum": 5.0, "slowest": 5.0}}"#;
        assert_eq!(written(&[first, later]).io_s, Some(5.0));
        // 5 s with a share of 0.2, 10 s with a share of 0.5.
        assert_eq!(written(&[first, overlapping]).io_s, Some(6.0));
    }

    #[test]
    fn killed_program_counts_until_its_last_call() {
        let killed = r#"{"started_unix_s": 1.0, "wall_s": null, "finished": false,
            "io_s": {"sum": 3.0, "slowest": 3.0}, "recovered": {"ranks": 1, "until_s": 4.0}}"#;
        assert_eq!(written(&[killed]).io_s, Some(3.0));
    }

    #[test]
    fn program_without_times_makes_the_time_unknown() {
        let known = r#"{"started_unix_s": 1.0, "wall_s": 1.0, "io_s": {"slowest": 0.5}}"#;
        let unknown = r#"{"started_unix_s": 1.0, "finished": false}"#;
        let programs = 2;
        assert_eq!(written(&[known, unknown]), ProgramSummary { programs, io_s: None });
        assert_eq!(written(&[known, "{"]), ProgramSummary { programs, io_s: None });
        assert_eq!(written(&[]), ProgramSummary::default());
    }
}
