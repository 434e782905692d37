//! Formats the table of `forebay compare` and its conclusions.
//! Never calls a variant faster if the ranges of both overlap.

use comfy_table::{Cell, CellAlignment, Table, TableComponent, presets};
use indicatif::HumanBytes;

use super::figures::{Block, IoTimeSource, Measured, Row};

/// All blocks, each with a table and conclusions.
pub fn text(blocks: &[Block]) -> String {
    let blocks: Vec<_> = blocks
        .iter()
        .map(|block| {
            let said: Vec<_> = sentences(block).iter().map(|s| format!("  {s}")).collect();
            format!("{}\n{}\n{}", block.label, table(block), said.join("\n"))
        })
        .collect();
    blocks.join("\n\n")
}

fn table(block: &Block) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_style(TableComponent::HeaderLines, '-');
    table.set_style(TableComponent::MiddleHeaderIntersections, '-');
    let names = ["", "job time, s", "I/O seen, s", "safe after, s", "bytes", "label"];
    table.set_header(names);
    for row in &block.rows {
        let bytes = row.runs.first().and_then(|run| run.bytes);
        let label = if block.emulated { "emulated" } else { "real" };
        let cells = [
            row.way.name().to_owned(),
            seconds(row, |run| Some(run.job_s)),
            seconds(row, |run| run.io_s),
            seconds(row, |run| Some(run.safe_s)),
            bytes.map_or("-".into(), |bytes| HumanBytes(bytes).to_string()),
            label.to_owned(),
        ];
        table.add_row(cells.into_iter().enumerate().map(|(column, text)| {
            let numeric = (1..5).contains(&column);
            let side = if numeric { CellAlignment::Right } else { CellAlignment::Left };
            Cell::new(text).set_alignment(side)
        }));
    }
    table
}

/// The median, with minimum and maximum if there are several runs.
fn seconds(row: &Row, of: impl Fn(&Measured) -> Option<f64>) -> String {
    let Some(sorted) = sorted(row, of) else {
        return "-".into();
    };
    let middle = median(&sorted);
    match sorted.as_slice() {
        [_] => format!("{middle:.2}"),
        [least, .., most] => format!("{middle:.2} ({least:.2}-{most:.2})"),
        [] => "-".into(),
    }
}

fn sorted(row: &Row, of: impl Fn(&Measured) -> Option<f64>) -> Option<Vec<f64>> {
    let mut values: Vec<f64> = row.runs.iter().map(of).collect::<Option<_>>()?;
    values.sort_by(f64::total_cmp);
    Some(values)
}

/// Median of sorted values; NaN if there are none.
fn median(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    match sorted {
        [] => f64::NAN,
        _ if sorted.len() % 2 == 1 => sorted[half],
        _ => f64::midpoint(sorted[half - 1], sorted[half]),
    }
}

/// Selects one value of a run.
type Figure = fn(&Measured) -> Option<f64>;

/// Compares the variants. Explains why the burst buffer is slower, if it is.
fn sentences(block: &Block) -> Vec<String> {
    let [file_system, burst_buffer] = &block.rows;
    let mut said = Vec::new();
    let columns: [(&str, Figure); 3] = [
        ("Job time", |run| Some(run.job_s)),
        ("I/O the application sees", |run| run.io_s),
        ("Time until the data are safe", |run| Some(run.safe_s)),
    ];
    let runs = file_system.runs.len().min(burst_buffer.runs.len());
    if let Some(unmodelled) = unmodelled_bytes(file_system, block.output_bytes) {
        said.push(unmodelled);
    } else if runs < RUNS_MIN {
        said.push(format!(
            "No verdict: {runs} of each is too few to tell a gain from noise; --repeat {RUNS_MIN} gives one."
        ));
    } else {
        for (what, of) in columns {
            if let (Some(there), Some(here)) = (sorted(file_system, of), sorted(burst_buffer, of)) {
                said.push(verdict(what, &there, &here));
            }
        }
        said.extend(why_it_loses(file_system, burst_buffer));
    }
    said.extend(io_time_sources(block));
    said.push(match block.same_output {
        Some(true) => {
            let bytes = block.output_bytes;
            format!("Output: the same in all runs, {} file(s), {bytes} bytes.", block.output_files)
        }
        Some(false) => "Output: THE RUNS DIFFER. Do not trust the figures.".into(),
        None => {
            "Output: not compared, since not every run wrote files where the script stages out to."
                .into()
        }
    });
    said
}

/// The source of the I/O time; none without I/O times.
fn io_time_sources(block: &Block) -> Option<String> {
    let runs = || block.rows.iter().flat_map(|row| &row.runs);
    let is_source = |source| runs().any(|run| run.io_from == Some(source));
    let who = match (is_source(IoTimeSource::Program), is_source(IoTimeSource::Record)) {
        (true, false) => "as the program itself tells",
        (false, true) => "from the record of the programs' calls",
        (true, true) => "as the program tells in some runs, from the record of its calls in others",
        (false, false) => return None,
    };
    Some(format!("I/O seen: {who}."))
}

/// Runs of each variant for a verdict. Of three and three equal ones all of the one are faster than all of the other in one
/// of 20 cases.
const RUNS_MIN: usize = 3;

/// A ratio of medians below this counts as equal.
const NOISE: f64 = 1.05;

/// Compares the sorted times of both variants. There is no clear difference if the ranges overlap.
fn verdict(what: &str, file_system: &[f64], burst_buffer: &[f64]) -> String {
    let gain = median(file_system) / median(burst_buffer);
    if gain >= NOISE && below(burst_buffer, file_system) {
        format!("{what}: the burst buffer is {gain:.1} times as fast.")
    } else if gain * NOISE <= 1.0 && below(file_system, burst_buffer) {
        let loss = 1.0 / gain;
        format!("{what}: the burst buffer LOSES, it takes {loss:.1} times as long.")
    } else {
        format!("{what}: no clear difference between the two.")
    }
}

/// True if all times of `one` are below all times of `other`. Both are sorted.
fn below(one: &[f64], other: &[f64]) -> bool {
    matches!((one.last(), other.first()), (Some(most), Some(least)) if most < least)
}

/// The emulation does not see all kinds of writes (docs/explanation/emulation.md). If it missed output of the
/// job, the variants are not comparable.
fn unmodelled_bytes(file_system: &Row, output_bytes: u64) -> Option<String> {
    let runs = file_system.runs.iter();
    let seen = runs.filter_map(|run| run.emulated_bytes?.checked_sub(run.staged_bytes)).min()?;
    (seen < output_bytes).then(|| {
        format!(
            "NOT COMPARABLE: the emulation saw only {seen} of the {output_bytes} bytes that the job wrote to the \
             file system; what goes through stdio, mmap or under an LD_PRELOAD of the job's own is not delayed."
        )
    })
}

fn why_it_loses(file_system: &Row, burst_buffer: &Row) -> Option<String> {
    let job: Figure = |run| Some(run.job_s);
    let safe: Figure = |run| Some(run.safe_s);
    let loses = |of: Figure| {
        let (there, here) = (sorted(file_system, of)?, sorted(burst_buffer, of)?);
        let more = median(&here) - median(&there);
        (median(&here) >= median(&there) * NOISE && below(&there, &here)).then_some(more)
    };
    if let Some(more) = loses(job) {
        return Some(format!(
            "Why: the script itself ran {more:.2} s longer. This file system answers as fast as the store, \
             so there is nothing to gain, and memory that is touched first costs more than memory in use."
        ));
    }
    let more = loses(safe)?;
    let stage_out = median(&sorted(burst_buffer, |run| Some(run.stage_out_s))?);
    let saved = stage_out - more;
    Some(format!(
        "Why: stage-out moves the same bytes once more ({stage_out:.2} s) after the job, which is more than \
         the {saved:.2} s the job saved. What is closed while the job computes can go meanwhile: forebay run --drain."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::figures::Variant;

    fn block(file_system: &[f64], burst_buffer: &[f64], stage_out_s: f64) -> Block {
        let run = |job_s: f64, stage_out_s: f64| Measured {
            job_s,
            io_s: Some(job_s / 2.0),
            safe_s: job_s + stage_out_s,
            stage_out_s,
            bytes: Some(1 << 20),
            emulated_bytes: None,
            staged_bytes: 0,
            io_from: Some(IoTimeSource::Program),
            profile: None,
        };
        let row = |way, jobs: &[f64], stage_out_s| Row {
            way,
            runs: jobs.iter().map(|&job_s| run(job_s, stage_out_s)).collect(),
        };
        Block {
            label: "real: ext4".into(),
            emulated: false,
            rows: [
                row(Variant::FileSystem, file_system, 0.0),
                row(Variant::BurstBuffer, burst_buffer, stage_out_s),
            ],
            same_output: Some(true),
            output_files: 1,
            output_bytes: 1 << 20,
        }
    }

    #[test]
    fn medians_are_shown_with_their_range() {
        let shown = table(&block(&[3.0, 1.0, 2.0], &[1.0, 4.0], 0.0)).to_string();
        assert!(shown.contains("2.00 (1.00-3.00)"), "{shown}");
        assert!(shown.contains("2.50 (1.00-4.00)"), "{shown}");
        assert!(shown.contains("1.00 MiB"), "{shown}");
    }

    #[test]
    fn gain_is_called_a_gain() {
        let said = sentences(&block(&[4.0; 3], &[1.0; 3], 1.0)).join("\n");
        assert!(said.contains("Job time: the burst buffer is 4.0 times as fast."), "{said}");
        assert!(said.contains("safe: the burst buffer is 2.0 times as fast."), "{said}");
        assert!(!said.contains("Why"), "{said}");
    }

    #[test]
    fn loss_is_called_a_loss_with_its_reason() {
        let said = sentences(&block(&[2.0; 3], &[1.0; 3], 3.0)).join("\n");
        assert!(
            said.contains("safe: the burst buffer LOSES, it takes 2.0 times as long."),
            "{said}"
        );
        assert!(said.contains("stage-out moves the same bytes once more (3.00 s)"), "{said}");
        let said = sentences(&block(&[1.0; 3], &[2.0; 3], 1.0)).join("\n");
        assert!(
            said.contains("Job time: the burst buffer LOSES, it takes 2.0 times as long."),
            "{said}"
        );
        assert!(said.contains("the script itself ran 1.00 s longer"), "{said}");
    }

    #[test]
    fn near_equality_is_neither_gain_nor_loss() {
        let said = sentences(&block(&[1.00; 3], &[1.02; 3], 0.0)).join("\n");
        assert!(said.contains("Job time: no clear difference between the two."), "{said}");
        assert!(!said.contains("LOSES"), "{said}");
    }

    #[test]
    fn few_runs_have_no_winner() {
        for runs in [1, 2] {
            let said = sentences(&block(&vec![4.0; runs], &vec![1.0; runs], 1.0)).join("\n");
            assert!(said.contains(&format!("No verdict: {runs} of each")), "{said}");
            assert!(!said.contains("fast") && !said.contains("LOSES"), "{said}");
        }
    }

    #[test]
    fn runs_that_overlap_have_no_winner() {
        let said = sentences(&block(&[2.0, 3.0, 4.0], &[1.0, 1.5, 2.1], 0.0)).join("\n");
        assert!(said.contains("Job time: no clear difference"), "{said}");
        let said = sentences(&block(&[1.0, 1.1, 2.0], &[1.9, 2.0, 2.1], 0.0)).join("\n");
        assert!(said.contains("Job time: no clear difference"), "{said}");
        assert!(!said.contains("Why") && !said.contains("LOSES"), "{said}");
    }

    #[test]
    fn io_outside_the_emulation_is_not_compared() {
        let mut block = block(&[1.0], &[2.0], 0.0);
        block.rows[0].runs[0].emulated_bytes = Some(7);
        let said = sentences(&block).join("\n");
        assert!(
            said.contains("NOT COMPARABLE: the emulation saw only 7 of the 1048576 bytes"),
            "{said}"
        );
        assert!(!said.contains("Why") && !said.contains("LOSES"), "{said}");
    }

    #[test]
    fn differing_output_is_reported() {
        let mut block = block(&[1.0], &[1.0], 0.0);
        block.same_output = Some(false);
        assert!(sentences(&block).join("\n").contains("THE RUNS DIFFER"));
    }
}
