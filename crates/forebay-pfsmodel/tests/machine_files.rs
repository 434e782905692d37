//! Machine files: valid ones are parsed, and invalid ones are rejected with clear messages.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use std::path::Path;

use forebay_pfsmodel::Model;

const SMALL: &str = include_str!("../../../machines/lustre-small.toml");

fn refusal(from: &str, to: &str) -> String {
    assert!(SMALL.contains(from), "the test is out of date: {from}");
    Model::from_toml(&SMALL.replace(from, to), "m.toml").unwrap_err().to_string()
}

#[test]
fn small_lustre_machine_file_is_read() {
    let model = Model::from_toml(SMALL, "lustre-small.toml").unwrap();
    assert_eq!(model.name, "lustre-small");
    assert_eq!(model.targets.count.value, 8);
    assert_eq!(model.targets.bandwidth_bytes_per_s.value, 62_500_000);
    assert_eq!(model.targets.latency_ns.value, 500_000);
    assert_eq!(model.client.bandwidth_bytes_per_s.value, 250_000_000);
    assert_eq!(model.layout.stripe_size_bytes.value, 1 << 20);
    assert!(model.targets.bandwidth_bytes_per_s.source.contains("CRAY12"));
}

/// All shipped machine files for emulation are valid. (Others in that folder describe burst buffers.)
#[test]
fn shipped_machine_files_are_sound() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../machines");
    for name in ["lustre-small.toml", "shaheen2-lustre.toml"] {
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        Model::from_toml(&text, name).unwrap();
    }
}

/// The replaced text in the small Lustre, its replacement, and parts of the error message.
const REFUSALS: &[(&str, &str, [&str; 3])] = &[
    ("\"62.5 MB/s\"", "\"62.5\"", ["targets.bandwidth = \"62.5\"", "unit is missing", "MB/s"]),
    ("\"62.5 MB/s\"", "62.5", ["targets.bandwidth = 62.5", "says no unit", "\"62.5 MB/s\""]),
    ("\"62.5 MB/s\"", "\"62.5 us\"", ["62.5 us", "\"us\" does not fit", "GiB/s"]),
    ("\"500 us\"", "\"-500 us\"", ["targets.latency = \"-500 us\"", "negative", "a time"]),
    ("\"500 us\"", "\"0 us\"", ["targets.latency = \"0 us\"", "zero", "a time"]),
    ("\"250 MB/s\"", "\"0 MB/s\"", ["client.bandwidth = \"0 MB/s\"", "zero", "a rate"]),
    ("\"1 MiB\"", "\"100 kB\"", ["layout.stripe_size = 100000 B", "multiples of 64 KiB", "1 MiB"]),
    (
        "= { value = 1,",
        "= { value = 9,",
        ["layout.stripe_count = 9", "more stripes than", "1 to 8"],
    ),
    ("= { value = 1,", "= { value = -1,", ["layout.stripe_count = -1", "cannot be used", "1 to"]),
    ("= { value = 8,", "= { value = 8.5,", ["targets.count = 8.5", "whole number", "1 to 2048"]),
    ("= { value = 8,", "= { value = 0,", ["targets.count = 0", "whole number", "1 to 2048"]),
    ("[client]", "[clients]", ["clients", "unknown field", "client"]),
    ("latency =", "lateny =", ["lateny", "unknown field", "latency"]),
];

#[test]
fn machine_file_errors_name_file_key_text_and_remedy() {
    for (from, to, words) in REFUSALS {
        let message = refusal(from, to);
        assert!(message.starts_with("m.toml: "), "{message}");
        for word in words {
            assert!(message.contains(word), "{to}: no \"{word}\" in: {message}");
        }
    }
}

#[test]
fn number_without_source_is_refused() {
    let message = refusal("source = \"Lustre's default\"", "source = \" \"");
    assert!(message.contains("layout.stripe_count has no source"), "{message}");
    let message = refusal(", source = \"Lustre's default\"", "");
    assert!(message.contains("missing field `source`"), "{message}");
}

const PLANNER: &str =
    "[compute]\nnodes = { value = 1, source = \"s\" }\n[storage.nvme]\nkind = \"directory\"\n";

#[test]
fn tables_of_the_planner_are_left_to_it() {
    Model::from_toml(&format!("{SMALL}\n{PLANNER}"), "m.toml").unwrap();
}

#[test]
fn file_for_the_planner_alone_is_refused_by_name() {
    let text = format!("name = \"m\"\nscale = \"s\"\n{PLANNER}");
    let message = Model::from_toml(&text, "m.toml").unwrap_err().to_string();
    assert!(message.starts_with("m.toml: ") && message.contains("forebay plan"), "{message}");
}

#[test]
fn penalty_can_be_zero() {
    let text = SMALL.replace("\"1 ms\"", "\"0 ms\"").replace("\"10 us\"", "\"0 us\"");
    let model = Model::from_toml(&text, "m.toml").unwrap();
    assert_eq!((model.targets.switch_penalty_ns.value, model.metadata.per_stripe_ns.value), (0, 0));
}
