"""Random operations from several nodes answer as one POSIX directory tree does."""

import os
import random

import pytest

from support.tree_operations import compare_with_model

SEEDS, STEPS = 3, 400
VARIABLE = "FOREBAY_TEST_SEED"


def repeat(request, seed):
    return f"{VARIABLE}={seed} pytest 'tests/{request.node.nodeid}'"


def test_operations_of_all_nodes_answer_as_one_tree(namespace, request):
    """New operations in every run; FOREBAY_TEST_SEED=NUMBER repeats those of a number."""
    given = os.environ.get(VARIABLE)
    seeds = [int(given)] if given else random.SystemRandom().sample(range(1 << 32), SEEDS)
    for seed in seeds:
        directory = namespace.make_directory(f"tree-{seed}")
        compare_with_model(namespace, directory, seed, STEPS, repeat(request, seed))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_cache_that_nobody_invalidates_is_found(incoherent_namespace, request, seed):
    directory = incoherent_namespace.make_directory("tree")
    with pytest.raises(AssertionError, match=f"found(.|\n)*seed {seed}: {VARIABLE}={seed} pytest '"):
        compare_with_model(incoherent_namespace, directory, seed, STEPS, repeat(request, seed))
