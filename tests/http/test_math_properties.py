"""The math verifier on rewritten answers: what is equal by a true identity is paid, what is not never is. Long: tests/nightly/math."""
import os
import random
import sys

import pytest

from harness import ROOT

sys.path.insert(0, os.path.join(ROOT, "tests", "tools"))

import math_properties  # noqa: E402
from math_families import families  # noqa: E402

SEED, FAMILIES = 20, 216


@pytest.fixture(scope="module")
def written():
    return families(SEED, FAMILIES)


@pytest.fixture
def post(plain):
    def send(body):
        reply = plain.post("/v1/verify", body)
        assert reply.status == 200, reply
        return reply.json["items"]

    return send


def test_wrong_answers_are_never_paid_and_right_ones_nearly_always(post, written):
    paid, refused, right = math_properties.truth(post, written, random.Random(SEED))
    assert not paid
    assert right > 1000 and len(refused) <= right // 100, math_properties.report(refused, right)


def test_equality_of_scalars_is_symmetric(post, written):
    assert not math_properties.symmetry(post, written, random.Random(SEED))


def test_equality_is_transitive(post, written):
    assert not math_properties.transitivity(post, written, random.Random(SEED))


def test_the_normal_form_is_judged_as_the_answer_was(post, written):
    broken, read = math_properties.normal_forms(post, written[:108], random.Random(SEED))
    assert not broken and read > 500
