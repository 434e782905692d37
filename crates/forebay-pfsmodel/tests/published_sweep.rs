//! Compares the model in virtual time with a published sweep: BTIO on Shaheen II's Lustre, 1 to 128 OSTs.
//!
//! Workload: 1024 ranks stat and open one shared file of N stripes. For each of 10 dumps, N aggregators
//! (MPI-IO's default: one per stripe) on 32 nodes write the dump in pieces of one stripe. Each aggregator
//! writes only to its own OST (Cray's default alignment, CB_ALIGN 2). A client is a node.
//!
//! Three numbers of the machine file are fitted to this sweep (it names them). So agreement shows that
//! the model *can* have the published shape, and the canaries show that it needs its parts. It is no
//! prediction.

#![allow(clippy::unwrap_used)]

use forebay_pfsmodel::{Client, Counters, Layout, Model, Op, State};
use serde::Deserialize;

const DATA: &str = include_str!("data/shaheen2_btio_lustre.json");
const MACHINE: &str = include_str!("../../../machines/shaheen2-lustre.toml");
const UNIT_BYTES: u64 = 1 << 20;

/// The maximum factor between each point or ratio of neighbours and the published one.
const POINT_TOLERANCE: f64 = 1.08;
const RATIO_TOLERANCE: f64 = 1.13;

#[derive(Deserialize)]
struct Published {
    ranks: u64,
    ranks_per_node: u64,
    file_bytes: u64,
    dumps: u64,
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    osts: u32,
    seconds: f64,
}

/// The stripe units that an aggregator writes.
#[derive(Clone, Copy)]
enum Alignment {
    /// CB_ALIGN 2: every N-th unit, always on the same OST.
    Stripes,
    /// CB_ALIGN 0: an equal contiguous share of the dump, so all aggregators share all OSTs.
    EqualShares,
}

fn published() -> Published {
    serde_json::from_str(DATA).unwrap()
}

fn machine() -> Model {
    Model::from_toml(MACHINE, "shaheen2-lustre.toml").unwrap()
}

/// Runs the workload on `osts` targets. Returns seconds and counters.
fn btio(model: &Model, osts: u32, alignment: Alignment) -> (f64, Counters) {
    let (job, state) = (published(), State::private(model).unwrap());
    let layout = Layout { stripe_count: osts, stripe_size_bytes: UNIT_BYTES, first_target: 0 };
    let nodes: Vec<Client> = (0..job.ranks / job.ranks_per_node).map(|_| Client::new()).collect();
    let mut now_ns = open_by_all(&state, &nodes, &layout, job.ranks);
    let dump_units = job.file_bytes / job.dumps / UNIT_BYTES;
    for dump in 0..job.dumps {
        now_ns =
            write_dump(&state, &nodes, &layout, alignment, dump * dump_units, dump_units, now_ns);
    }
    (now_ns as f64 / 1e9, state.counters())
}

fn open_by_all(state: &State, nodes: &[Client], layout: &Layout, ranks: u64) -> u64 {
    let mut finish_ns = 0;
    for rank in 0..ranks {
        let client = &nodes[(rank % nodes.len() as u64) as usize];
        let seen_ns = state.charge_metadata(0, client);
        let opened_ns = state.charge_metadata(seen_ns, client);
        finish_ns = finish_ns.max(state.charge_open_stripes(opened_ns, layout));
    }
    finish_ns
}

/// One collective write: aggregators proceed independently, and all wait for the last one.
fn write_dump(
    state: &State,
    nodes: &[Client],
    layout: &Layout,
    alignment: Alignment,
    first_unit: u64,
    units: u64,
    start_ns: u64,
) -> u64 {
    let aggregators = u64::from(layout.stripe_count);
    let share = units / aggregators;
    let mut ready: Vec<(u64, u64, u64)> =
        (0..aggregators).map(|aggregator| (start_ns, 0, aggregator)).collect();
    let mut finish_ns = start_ns;
    // The aggregator whose last write ended first writes next, as in real time.
    while let Some(next) = (0..ready.len()).min_by_key(|index| (ready[*index].0, ready[*index].2)) {
        let (now_ns, done, aggregator) = ready[next];
        if done == share {
            finish_ns = finish_ns.max(now_ns);
            ready.swap_remove(next);
            continue;
        }
        let unit = first_unit
            + match alignment {
                Alignment::Stripes => done * aggregators + aggregator,
                Alignment::EqualShares => aggregator * share + done,
            };
        let client = &nodes[(aggregator % nodes.len() as u64) as usize];
        let end_ns =
            state.charge_data(now_ns, layout, client, Op::Write, unit * UNIT_BYTES, UNIT_BYTES);
        ready[next] = (end_ns, done + 1, aggregator);
    }
    finish_ns
}

fn sweep(model: &Model) -> Vec<f64> {
    published().rows.iter().map(|row| btio(model, row.osts, Alignment::Stripes).0).collect()
}

fn apart(a: f64, b: f64) -> f64 {
    (a / b).max(b / a)
}

/// The differences between `seconds` and the published shape; empty if they agree.
fn differences(seconds: &[f64]) -> Vec<String> {
    let rows = published().rows;
    let mut found = Vec::new();
    for (row, got) in rows.iter().zip(seconds) {
        if apart(*got, row.seconds) > POINT_TOLERANCE {
            found.push(format!("{} OSTs: {got:.2} s, published {} s", row.osts, row.seconds));
        }
    }
    for (pair, got) in rows.windows(2).zip(seconds.windows(2)) {
        let (ours, theirs) = (got[0] / got[1], pair[0].seconds / pair[1].seconds);
        if apart(ours, theirs) > RATIO_TOLERANCE {
            found.push(format!(
                "{} -> {} OSTs: gain {ours:.2}, published {theirs:.2}",
                pair[0].osts, pair[1].osts
            ));
        }
    }
    let order = |times: &[f64]| {
        let mut order: Vec<usize> = (0..times.len()).collect();
        order.sort_by(|a, b| times[*a].total_cmp(&times[*b]));
        order
    };
    let theirs: Vec<f64> = rows.iter().map(|row| row.seconds).collect();
    if order(seconds) != order(&theirs) {
        found.push(format!("order of the times differs: {seconds:.2?}"));
    }
    found
}

#[test]
fn sweep_has_the_published_shape() {
    let seconds = sweep(&machine());
    println!("osts published model");
    for (row, got) in published().rows.iter().zip(&seconds) {
        println!(
            "{:4} {:9.2} {got:8.2} {:+.1} %",
            row.osts,
            row.seconds,
            (got / row.seconds - 1.0) * 100.0
        );
    }
    assert_eq!(differences(&seconds), Vec::<String>::new());
}

/// Canary: without the client limit, the times at 64 and 128 OSTs keep halving.
#[test]
fn sweep_without_client_cap_loses_the_shape() {
    let mut model = machine();
    model.client.bandwidth_bytes_per_s.value = 1_000_000_000_000;
    assert_ne!(differences(&sweep(&model)), Vec::<String>::new());
}

/// Canary: with half the client limit, more targets stop helping too early.
#[test]
fn sweep_with_a_tight_client_cap_loses_the_shape() {
    let mut model = machine();
    model.client.bandwidth_bytes_per_s.value /= 2;
    assert_ne!(differences(&sweep(&model)), Vec::<String>::new());
}

/// Canary: with very fast targets, the clients limit everything.
#[test]
fn sweep_without_target_bandwidth_loses_the_shape() {
    let mut model = machine();
    model.targets.bandwidth_bytes_per_s.value *= 100;
    assert_ne!(differences(&sweep(&model)), Vec::<String>::new());
}

/// Canary: if aligned writers paid for lock switches, the sweep would miss the published points.
#[test]
fn sweep_with_a_penalty_on_every_request_loses_the_shape() {
    let mut model = machine();
    model.targets.latency_ns.value += model.targets.switch_penalty_ns.value;
    assert_ne!(differences(&sweep(&model)), Vec::<String>::new());
}

/// CRAY12: one writer per OST at a time; aggregators that share stripes pay for the locks. The order is
/// published (in figures without numbers), the size of the effect is assumed in the machine file.
#[test]
fn sharing_targets_costs_lock_switches_and_aligning_avoids_them() {
    let model = machine();
    let (aligned_s, aligned) = btio(&model, 16, Alignment::Stripes);
    let (shared_s, shared) = btio(&model, 16, Alignment::EqualShares);
    assert_eq!(aligned.target_switches, 0);
    assert!(shared.target_switches > shared.data_ops / 2, "{shared:?}");
    assert!(shared_s > 1.2 * aligned_s, "{shared_s:.2} s shared, {aligned_s:.2} s aligned");

    let mut free = machine();
    free.targets.switch_penalty_ns.value = 0;
    let (free_s, _) = btio(&free, 16, Alignment::EqualShares);
    assert!(
        free_s < 1.1 * aligned_s,
        "{free_s:.2} s shared without penalty, {aligned_s:.2} s aligned"
    );
}
