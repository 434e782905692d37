"""Lists of nodes on the command line, as Slurm writes them."""

import click
import pytest

from forebay.cli.node_list import NodeList


@pytest.mark.parametrize(
    ("written", "names"),
    [
        ("n2,n1", "n2 n1"),
        ("n[1-3,7],login", "n1 n2 n3 n7 login"),
        ("n[08-11]-ib", "n08-ib n09-ib n10-ib n11-ib"),
        ("r[1-2]n[1,3]", "r1n1 r1n3 r2n1 r2n3"),
        ("n[1-2]:7000, n9", "n1:7000 n2:7000 n9"),
    ],
)
def test_list_stands_for_its_nodes_in_order(written, names):
    assert " ".join(NodeList().convert(written, None, None)) == names


@pytest.mark.parametrize("written", "n[1 n1] n[] n[a-b] n[3-1] n[1-2 n[1-9]] n[[1] n[1-] n[0000000001] n[+1]".split())
def test_wrong_list_is_named(written):
    with pytest.raises(click.BadParameter, match="is no list of nodes: write for example"):
        NodeList().convert(written, None, None)


@pytest.mark.parametrize("written", ["n[1-999999999]", "a[1-300]b[1-400]", "n[1-100000],login"])
def test_list_that_is_too_long_is_refused(written):
    with pytest.raises(click.BadParameter, match="names more than 100,000 nodes"):
        NodeList().convert(written, None, None)


def test_list_without_a_name_is_refused():
    with pytest.raises(click.BadParameter, match="' ,' names no node"):
        NodeList().convert(" ,", None, None)
