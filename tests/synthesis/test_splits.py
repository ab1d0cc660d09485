"""The division of a made test set into dev and test."""

from __future__ import annotations

import random

import pytest

from rusbeir.datasets import read_registry
from rusbeir.errors import BadInput
from rusbeir.synthesis.quality.splits import split_dev_test


def test_sizes_are_those_of_air_bench():
    """Every dataset for questions of AIR-Bench 24.05 that has both splits."""
    counts = {
        name: entry.n_queries for name, entry in read_registry().items() if name.startswith("air-bench/24.05/qa/")
    }
    pairs = [(n, counts[f"{name[:-4]}/test"]) for name, n in counts.items() if f"{name[:-4]}/test" in counts]
    assert len(pairs) == 53
    for n_dev, n_test in pairs:
        split = split_dev_test([f"q{i}" for i in range(n_dev + n_test)])
        assert (len(split["dev"]), len(split["test"])) == (n_dev, n_test)


def test_a_whole_long_document_of_each_domain_goes_to_dev():
    """AIR-Bench 24.05: one of 5, 4, 4 and 2 datasets is dev."""
    domains: dict[str, list[tuple[str, str]]] = {}
    for name, entry in read_registry().items():
        if name.startswith("air-bench/24.05/long-doc/"):
            domains.setdefault(name.split("/")[3], []).append((name, entry.split))
    assert sorted(map(len, domains.values())) == [2, 4, 4, 5]
    for datasets in domains.values():
        split = split_dev_test([name for name, _ in datasets])
        assert len(split["dev"]) == sum(one == "dev" for _, one in datasets) == 1


def test_the_draw_depends_on_ids_and_seed_alone():
    ids = [f"q{i}" for i in range(200)]
    shuffled = random.Random(1).sample(ids, len(ids))
    first, other = split_dev_test(ids, seed=3), split_dev_test(shuffled, seed=3)
    assert set(first["dev"]) == set(other["dev"])
    assert other["test"] == [one for one in shuffled if one in first["test"]]
    assert sorted(first["dev"] + first["test"]) == sorted(ids)
    assert set(first["dev"]) != set(split_dev_test(ids, seed=4)["dev"])
    # Not the first or the last of the file.
    assert 0 < sum(int(one[1:]) < 100 for one in first["dev"]) < 40


@pytest.mark.parametrize("ids", [[], ["q1"]])
def test_too_few_are_told(ids: list[str]):
    with pytest.raises(BadInput, match=f"A test set of {len(ids)} cannot be divided"):
        split_dev_test(ids)
