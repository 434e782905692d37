"""`forebay control metrics`: the numbers of the site, as the official parser of OpenMetrics reads them."""

from prometheus_client.openmetrics.parser import text_string_to_metric_families

from support.site_cluster import DW, MIB, SLOW, chown


def named(name, *labels):
    return (name, *sorted(labels))


def metrics(site):
    """The value of each sample, by its name and its labels."""
    text = site.control("metrics").stdout
    families = list(text_string_to_metric_families(text))
    assert families and all(family.name.startswith("forebay_") and family.documentation for family in families)
    return {named(sample.name, *sample.labels.values()): sample.value for one in families for sample in one.samples}


def test_numbers_of_pools_jobs_and_nodes_are_those_of_the_site(slurm_site, users):
    size = 28 * MIB
    (users.directory / "big").write_bytes(bytes(size))
    users.results.mkdir()
    chown(users.directory, users.user)
    before = metrics(slurm_site)
    assert before["forebay_pool_capacity_bytes", "flash"] == 24 * 16 * MIB
    assert before["forebay_pool_reserved_bytes", "flash"] == 16 * MIB
    assert [before["forebay_node_up", node] for node in ("n1", "n2")] == [1, 1]
    copy = "#DW stage_{} type=file source={} destination={}"
    users.script(
        "sleep 600",
        SLOW.replace("16MiB", "32MiB"),
        copy.format("in", "%d/big", "$DW_JOB_STRIPED/big"),
        copy.format("out", "$DW_JOB_STRIPED/big", "%d/results/big"),
    )
    job = users.submit()
    seen = []

    def is_copied():
        seen.append(metrics(slurm_site))
        return 0 < seen[-1].get(("forebay_staging_backlog_bytes", "in", "slow"), 0) < size

    slurm_site.wait(is_copied, lambda: seen[-1])
    assert seen[-1]["forebay_stagings", "in", "slow"] == 1
    assert seen[-1]["forebay_allocations", "nobody", "slow", "staging-in"] == 1
    assert seen[-1]["forebay_allocation_size_bytes", "nobody", "slow"] == 32 * MIB
    assert seen[-1]["forebay_pool_allocated_bytes", "slow"] == 32 * MIB
    assert seen[-1]["forebay_node_tasks", "n1", "running"] == 1
    users.wait(job, "RUNNING")
    users.run("scancel", job)
    users.wait_until_freed(job)
    after = metrics(slurm_site)

    def grown(*sample):
        return after[named(*sample)] - before[named(*sample)]

    for word in ("in", "out"):
        assert grown("forebay_node_staged_bytes_total", word, "n1") == size
        assert grown("forebay_node_staged_files_total", word, "n1") == 1
        assert grown("forebay_node_tasks_ended_total", "done", "n1", f"stage_{word}") == 1
    assert grown("forebay_node_tasks_ended_total", "done", "n1", "removal") == 1
    assert after["forebay_pool_allocated_bytes", "slow"] == after["forebay_staging_backlog_bytes", "in", "slow"] == 0


def test_failed_stagings_drained_pools_and_silent_nodes_show(slurm_site, users):
    users.results.mkdir()
    users.results.chmod(0o755)  # root's
    users.script(
        "echo a > $DW_JOB_STRIPED/a", DW, "#DW stage_out type=directory source=$DW_JOB_STRIPED/ destination=%d/results"
    )
    job = users.submit()
    users.waits_for(job, "Permission denied")
    slurm_site.control("drain", "flash")
    slurm_site.kill_noded("n2", hold=True)
    try:
        shown = metrics(slurm_site)
    finally:
        slurm_site.control("drain", "--undo", "flash")
        slurm_site.release("n2")
    assert shown["forebay_pool_drained", "flash"] == 1 and shown["forebay_node_up", "n2"] == 0
    assert shown["forebay_allocations_failing", "flash"] == shown["forebay_allocations_undelivered", "flash"] == 1
    node = slurm_site.allocation(job)["node"].partition(":")[0]
    if node == "n1":
        assert shown["forebay_node_tasks_ended_total", "failed", "n1", "stage_out"] >= 1
    slurm_site.wait_until_up_again("n2")
