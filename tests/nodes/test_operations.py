"""Random operations from several nodes answer as one POSIX directory tree does."""

import os
import random

import pytest

from support.strace import EVERY_POINT
from support.tree_operations import Agents, compare_times_with_model, compare_with_model

SEEDS, STEPS = 3, 400
#: One that renames a directory, which another node moved, to its own name.
FORMER_SEEDS = [2980410844]
TIMES_STEPS = 1000 if EVERY_POINT else 200
CUTS = 200 if EVERY_POINT else 60
VARIABLE = "FOREBAY_TEST_SEED"


def repeat(request, seed):
    return f"{VARIABLE}={seed} pytest 'tests/{request.node.nodeid}'"


def new_seeds(count):
    """New operations in every run; FOREBAY_TEST_SEED=NUMBER repeats those of a number."""
    given = os.environ.get(VARIABLE)
    return [int(given)] if given else random.SystemRandom().sample(range(1 << 32), count)


def test_operations_of_all_nodes_answer_as_one_tree(namespace, request):
    for seed in [*FORMER_SEEDS, *new_seeds(SEEDS)]:
        directory = namespace.make_directory(f"tree-{seed}")
        compare_with_model(namespace, directory, seed, STEPS, repeat(request, seed))


@pytest.mark.promise("times")
def test_each_operation_changes_the_times_that_posix_says_on_all_nodes(namespace, request):
    """A client alone may answer from what it knows, which it may not while others look."""
    (seed,) = new_seeds(1)
    for nodes in dict.fromkeys((namespace.nodes[:1], namespace.nodes)):
        directory = namespace.make_directory(f"times-{seed}-of-{len(nodes)}")
        compare_times_with_model(namespace, directory, nodes, seed, TIMES_STEPS, repeat(request, seed))


@pytest.mark.promise("cut")
def test_file_that_was_written_and_cut_is_empty_while_another_node_writes_it(namespace):
    """The write is on its way to a server while the file is cut."""
    here, there = namespace.nodes[0], namespace.nodes[-1]
    directory = namespace.make_directory("cut")
    with Agents(namespace, directory) as agents:
        for number in range(CUTS):
            file = f"file-{number % 40}"
            agents.ask(here, ["put", file, ["z", 10_000]])
            agents.ask(there, ["write", file, 4000, ["y", 1]])
            agents.ask(here, ["write", file, 20_000, ["y", 1_000_000]])
            agents.ask(here, ["put", file, ["x", 0]])
            agents.ask(there, ["write", file, 4000, ["u", 0]])
            agents.ask(there, ["open", "held", file, "plain"])
            found = [agents.ask(node, ["read", file]) for node in (here, there)]
            agents.ask(there, ["close", "held"])
            assert found == [["ok", []]] * 2, number


@pytest.mark.soak
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_cache_that_nobody_invalidates_is_found(incoherent_namespace, request, seed):
    directory = incoherent_namespace.make_directory("tree")
    with pytest.raises(AssertionError, match=f"found(.|\n)*seed {seed}: {VARIABLE}={seed} pytest '"):
        compare_with_model(incoherent_namespace, directory, seed, STEPS, repeat(request, seed))
