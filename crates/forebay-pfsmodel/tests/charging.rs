//! The cost of each operation in virtual time, to the nanosecond.
#![allow(clippy::disallowed_methods)] // tests start threads directly
#![allow(clippy::unwrap_used)]

use forebay_pfsmodel::{Client, Layout, Model, Op, State, Striping};

/// 4 targets with 1 byte per ns and 1000 ns latency; a client transfers 2 bytes per ns.
const MACHINE: &str = r#"
name = "round numbers"
scale = "none"
[targets]
count = { value = 4, source = "test" }
latency = { value = "1 us", source = "test" }
bandwidth = { value = "1 GB/s", source = "test" }
switch_penalty = { value = "5 us", source = "test" }
[client]
bandwidth = { value = "2 GB/s", source = "test" }
[metadata]
operation = { value = "3 us", source = "test" }
per_stripe = { value = "100 ns", source = "test" }
[layout]
stripe_count = { value = 2, source = "test" }
stripe_size = { value = "64 KiB", source = "test" }
"#;

const UNIT: u64 = 65_536;

fn state() -> State {
    State::private(&Model::from_toml(MACHINE, "test").unwrap()).unwrap()
}

fn stripes(stripe_count: u32) -> Layout {
    Layout { stripe_count, stripe_size_bytes: UNIT, first_target: 0 }
}

#[test]
fn one_request_costs_latency_and_transfer() {
    let (state, client) = (state(), Client::new());
    assert_eq!(
        state.charge_data(100, &stripes(1), &client, Op::Write, 0, 10_000),
        100 + 1000 + 10_000
    );
    // The target is busy until 11,100; the next request waits for it.
    assert_eq!(state.charge_data(200, &stripes(1), &client, Op::Write, 10_000, 500), 11_100 + 1500);
    // After a pause the request starts at once.
    assert_eq!(state.charge_data(50_000, &stripes(1), &client, Op::Read, 0, 500), 51_500);
}

#[test]
fn targets_work_in_parallel_and_pieces_on_one_are_one_request() {
    let (state, client) = (state(), Client::new());
    // Four units on two targets: each gets one request of two units. The client needs as long for all.
    assert_eq!(state.charge_data(0, &stripes(2), &client, Op::Write, 0, 4 * UNIT), 1000 + 2 * UNIT);
    let counters = state.counters();
    assert_eq!(
        counters.targets.iter().map(|target| target.requests).collect::<Vec<_>>(),
        [1, 1, 0, 0]
    );
    assert_eq!(counters.targets[0].busy_ns, 1000 + 2 * UNIT);
    assert_eq!(counters.data_ops, 1);
}

#[test]
fn client_cap_limits_many_targets() {
    let (state, client) = (state(), Client::new());
    // Four targets could accept 4 bytes per ns; the client sends 2.
    assert_eq!(state.charge_data(0, &stripes(4), &client, Op::Write, 0, 4 * UNIT), 2 * UNIT);
    // The client's next request waits in its queue; another client has its own queue.
    assert_eq!(state.charge_data(0, &stripes(4), &client, Op::Read, 0, 4 * UNIT), 4 * UNIT);
    let other = state.charge_data(10 * UNIT, &stripes(4), &Client::new(), Op::Read, 0, 4 * UNIT);
    assert_eq!(other, 12 * UNIT);
}

#[test]
fn only_a_change_of_writer_costs_a_switch() {
    let (state, one, two) = (state(), Client::new(), Client::new());
    let layout = stripes(1);
    let mut now = 0;
    let mut cost = |client: &Client, op| {
        let finish = state.charge_data(now, &layout, client, op, 0, 1000);
        finish - std::mem::replace(&mut now, finish)
    };
    assert_eq!(cost(&one, Op::Write), 2000, "nobody wrote before");
    assert_eq!(cost(&one, Op::Write), 2000, "the same again");
    assert_eq!(cost(&two, Op::Write), 7000, "the lock moves");
    assert_eq!(cost(&one, Op::Read), 2000, "reads neither pay");
    assert_eq!(cost(&two, Op::Write), 2000, "nor move it");
    assert_eq!(cost(&one, Op::Write), 7000);
    assert_eq!(state.counters().target_switches, 2);
    assert_eq!(state.counters().targets[0].switches, 2);
}

#[test]
fn metadata_operations_queue_for_everybody() {
    let state = state();
    let finishes: Vec<u64> = (0..4).map(|_| state.charge_metadata(0, &Client::new())).collect();
    assert_eq!(finishes, [3000, 6000, 9000, 12_000]);
    assert_eq!(state.charge_open_stripes(20_000, &stripes(4)), 20_400);
    let counters = state.counters();
    assert_eq!(
        (counters.metadata_ops, counters.metadata_busy_ns, counters.clients),
        (4, 12_400, 4)
    );
}

#[test]
fn sync_waits_for_queued_requests() {
    let (state, client) = (state(), Client::new());
    state.charge_data(0, &stripes(1), &client, Op::Write, 0, 10_000);
    assert_eq!(state.charge_sync(0, &stripes(2), &client), 12_000);
    assert_eq!(state.counters().sync_ops, 1);
}

#[test]
fn empty_request_costs_nothing() {
    let (state, client) = (state(), Client::new());
    assert_eq!(state.charge_data(77, &stripes(2), &client, Op::Read, 5, 0), 77);
    assert_eq!(
        (state.counters().data_ops, state.counters().clients, state.counters().makespan_ns),
        (0, 0, 0)
    );
}

#[test]
fn span_is_from_first_start_to_last_finish() {
    let (state, client) = (state(), Client::new());
    state.charge_data(5000, &stripes(1), &client, Op::Write, 0, 1000);
    state.charge_data(4000, &stripes(1), &client, Op::Write, 3 * UNIT, 1000);
    assert_eq!(state.counters().makespan_ns, 9000 - 4000);
}

#[test]
fn huge_numbers_saturate_instead_of_wrapping() {
    let (state, client) = (state(), Client::new());
    let finish =
        state.charge_data(u64::MAX - 10, &stripes(4), &client, Op::Write, u64::MAX - 5, u64::MAX);
    assert_eq!(finish, u64::MAX);
}

#[test]
fn stripings_are_completed_from_the_machine() {
    let state = state();
    let striping =
        |stripe_count, first_target| Striping { stripe_count, stripe_size_bytes: 0, first_target };
    assert_eq!(
        state.complete(striping(0, 3)),
        Layout { stripe_count: 2, stripe_size_bytes: UNIT, first_target: 3 }
    );
    assert_eq!(state.complete(striping(-1, 0)).stripe_count, 4);
    assert_eq!(state.complete(striping(100, 0)).stripe_count, 4, "no more than there are");
    let firsts: Vec<u32> = (0..4).map(|_| state.complete(striping(2, -1)).first_target).collect();
    assert_eq!(firsts, [0, 2, 0, 2]);
    assert_eq!(state.unbound_layout(7).first_target, 3);
    assert_eq!(
        state.complete(striping(2, -1)).first_target,
        0,
        "asking for unbound layouts takes no turn"
    );
}

/// Charges from many threads: no byte, request or nanosecond of service is lost.
#[test]
fn concurrent_charges_add_up() {
    let state = state();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let client = Client::new();
                for _ in 0..2000 {
                    state.charge_data(0, &stripes(1), &client, Op::Write, 0, 100);
                }
            });
        }
    });
    let counters = state.counters();
    assert_eq!(
        (counters.bytes_written, counters.clients, counters.targets[0].requests),
        (800_000, 4, 8000)
    );
    assert_eq!(counters.targets[0].busy_ns, 8000 * 1100 + counters.target_switches * 5000);
    assert_eq!(
        counters.makespan_ns, counters.targets[0].busy_ns,
        "the queue never idled and never overlapped"
    );
}
