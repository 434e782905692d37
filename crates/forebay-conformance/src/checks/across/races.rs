//! Checks of several nodes that do the same thing at the same time.
//! Nothing forces the steps to overlap, so one repetition that passes proves little.

use crate::bytes::Data;
use crate::check::{Check, check};
use crate::operation::{Answer, LockKind, Loop};
use crate::trial::{Trial, Verdict, broken, expect_zero, numbers, same};

/// Names that all nodes compete for.
const COUNT: usize = 40;

pub(super) const CHECKS: &[Check] = &[
    check("exclusive_race", "of all nodes that create a name with O_EXCL, one succeeds", |t| {
        let loops = vec![Loop::CreateExclusive { prefix: "f".into(), count: COUNT }; t.count()];
        one_winner_each(&t.together(loops)?)
    }),
    check(
        "create_race",
        "nodes that create one name with O_CREAT get one file, and lose no byte",
        |t| {
            const FILES: usize = 20;
            const BYTES: usize = 100;
            let seed = |node: usize| 1_000_000 * (node as u64 + 1);
            let loops = t.all().map(|node| Loop::CreateShared {
                prefix: "f".into(),
                count: FILES,
                offset: (node * BYTES) as u64,
                seed: seed(node),
                bytes: BYTES,
            });
            let answers = t.together(loops.collect())?;
            for answer in &answers[1..] {
                same("inodes", numbers(answer)?, numbers(&answers[0])?)?;
            }
            for number in 0..FILES {
                let patterns =
                    t.all().map(|node| Data::pattern(seed(node) + number as u64, BYTES).contents());
                let expected = patterns.collect::<Vec<_>>().concat();
                for node in t.all() {
                    let read = t.on(node).read_file(&format!("f{number}"))?;
                    let wrong = crate::bytes::first_difference(&read, &expected);
                    same("first differing node's data", wrong.map(|offset| offset / BYTES), None)?;
                }
            }
            Ok(())
        },
    ),
    check(
        "append_race",
        "of records that all nodes append at the same time none is lost or torn",
        |t| {
            const RECORDS: usize = 50;
            const BYTES: usize = 120;
            let loops = t.all().map(|writer| Loop::Append {
                path: "log".into(),
                count: RECORDS,
                writer,
                record_bytes: BYTES,
            });
            t.together(loops.collect())?;
            let mut expected: Vec<_> = (t.all())
                .flat_map(|writer| {
                    (0..RECORDS).map(move |number| crate::worker::record(writer, number, BYTES))
                })
                .collect();
            expected.sort_unstable();
            for node in t.all() {
                let read = t.on(node).read_file("log")?;
                same("size", read.len(), expected.len() * BYTES)?;
                let mut records: Vec<_> = read.chunks(BYTES).collect();
                records.sort_unstable();
                let wrong = records
                    .iter()
                    .zip(&expected)
                    .filter(|(one, other)| **one != &other[..])
                    .count();
                same("records lost or torn", wrong, 0)?;
            }
            Ok(())
        },
    ),
    check(
        "append_order",
        "the records that one node appends stay in their order among the others'",
        |t| {
            const BYTES: usize = 40;
            let loops = t.all().map(|writer| Loop::Append {
                path: "log".into(),
                count: 30,
                writer,
                record_bytes: BYTES,
            });
            t.together(loops.collect())?;
            let read = t.on(0).read_file("log")?;
            for writer in t.all() {
                let prefix = format!("{writer:03} ").into_bytes();
                let own: Vec<_> =
                    read.chunks(BYTES).filter(|record| record.starts_with(&prefix)).collect();
                same("number of records", own.len(), 30)?;
                same("records in order", own.is_sorted(), true)?;
            }
            Ok(())
        },
    ),
    check(
        "rename_race",
        "of all nodes that rename one file to a name of their own, one succeeds",
        |t| {
            t.on(0).run(Loop::Create { prefix: "f".into(), count: COUNT })?;
            let own = |node| Loop::RenameOwn {
                from: "f".into(),
                to: format!("n{node}.").into(),
                count: COUNT,
            };
            one_winner_each(&t.together(t.all().map(own).collect())?)?;
            for node in t.all() {
                same("number of names", t.on(node).list(".")?.len(), COUNT)?;
            }
            Ok(())
        },
    ),
    check(
        "replace_race",
        "who opens a file that another node replaces by rename reads one whole version",
        |t| {
            let (seed, count, bytes) = (t.seed(), 30, 5000);
            t.on(0).write_file("f", Data::pattern(seed, bytes))?;
            let reading =
                Loop::ReadReplaced { path: "f".into(), count, seed, patterns: count, bytes };
            let mut loops =
                vec![Loop::Replace { from: "new".into(), to: "f".into(), count, seed, bytes }];
            loops.resize(t.count(), reading);
            let answers = t.together(loops)?;
            answers[1..].iter().try_for_each(|answer| expect_zero("wrong reads", answer))
        },
    ),
    check(
        "record_lock_count",
        "nodes that count in a file under an fcntl lock lose no count",
        |t| count_race(t, LockKind::Record),
    ),
    check("file_lock_count", "nodes that count in a file under a flock lose no count", |t| {
        count_race(t, LockKind::File)
    }),
];

/// The answers are the numbers that each node won.
fn one_winner_each(answers: &[Answer]) -> Verdict {
    let mut winners = [0; COUNT];
    for answer in answers {
        for number in numbers(answer)? {
            let number = usize::try_from(*number).unwrap_or_default();
            winners[number.min(COUNT - 1)] += 1;
        }
    }
    same("winners of each name", winners, [1; COUNT])
}

fn count_race(t: &mut Trial<'_>, kind: LockKind) -> Verdict {
    const STEPS: usize = 25;
    t.on(0).write_file("f", "00000000000000000000")?;
    let loops = vec![Loop::Count { path: "f".into(), count: STEPS, kind }; t.count()];
    match t.together(loops) {
        Err(crate::trial::Failure::Broken(reason)) if reason.ends_with("ENOLCK") => {
            return Err(crate::trial::Failure::NotSupported("ENOLCK".to_owned()));
        }
        other => other?,
    };
    let expected = format!("{:020}", STEPS * t.count()).into_bytes();
    for node in t.all() {
        let read = t.on(node).read_file("f")?;
        if read != expected {
            return broken(format!(
                "the count is {} and not {}",
                read.escape_ascii(),
                expected.escape_ascii()
            ));
        }
    }
    Ok(())
}
