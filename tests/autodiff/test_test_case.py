"""`tw.test.TestCase`: which assertions hold and fail; the outcomes are TensorFlow's."""

import collections
import random
import subprocess
import sys

import numpy as np
import pytest

import tapewright as tw

Pair = collections.namedtuple("Pair", "x y")
NAN, INF = float("nan"), float("inf")
RAGGED = tw.ragged.constant([[1.0], [2.0, 3.0]])
half, brain = tw.constant(1.0, tw.float16), tw.constant([1.0, NAN], tw.bfloat16)
HOLD = {
    "assertAllEqual": [
        ([1, 2], tw.constant([1, 2])), ([NAN], [NAN]), ("a", tw.constant("a")),
        (["a", "é"], tw.constant(["a", "é"])), (tw.Variable([1.0]), [1]), ([], []),
        ([tw.constant(1), tw.constant(2)], [1, 2]), (RAGGED, [[1], [2, 3]]),
        ([[1], [2, 3]], [[1], [2, 3]]), ((2, 3), tw.zeros([2, 3]).shape), (brain, brain),
    ],
    "assertNotAllEqual": [([1], [2])],
    "assertAllClose": [
        (1.0, 1.0000001), (1.0, 1.1, 0.1), (Pair(1.0, 2.0), {"x": 1.0, "y": 2.0}),
        ({"a": [1.0, tw.constant(2.0)]}, {"a": [1.0, 2.0]}), ([NAN, INF], [NAN, INF]),
        ([1.0, [2.0, 3.0]], [1.0, [2.0, 3.0]]), (RAGGED, [[1.0], [2.0, 3.0]]),
        ([(1, 1), {"d": (6, 7)}], [(1, 1), {"d": (6, 7)}]), (brain, [1.0, NAN]),
        ([tw.zeros([2]), tw.zeros([3])], [np.zeros(2), np.zeros(3)]), ([1j], [1j]),
    ],
    "assertNotAllClose": [(1.0, 2.0)],
    "assertAllCloseAccordingToType": [(half, 1.0005), (brain[0], 1.005)],
    "assertNear": [(1.0, 1.1, 0.2), (INF, INF, 0.1), (tw.constant(1.0), 1.05, 0.1)],
    "assertArrayNear": [([1.0, 2.0], [1.0, 2.1], 0.2)],
    "assertAllGreater": [([1, 2], 0)],
    "assertAllGreaterEqual": [([1, 2], 1)],
    "assertAllLess": [([1, 2], 3)],
    "assertAllLessEqual": [(tw.constant([1, 2]), 2)],
    "assertAllInRange": [([1, 2], 1, 2), (tw.constant([0.5]), 0, 1)],
    "assertAllInSet": [([1, 2], [1, 2, 3]), (tw.constant([1, 2]), {1, 2})],
    "assertShapeEqual": [(np.zeros([2]), tw.zeros([2])), (np.float32(1), tw.zeros([]))],
    "assertDTypeEqual": [(tw.zeros([2]), tw.float32), (brain, tw.bfloat16)],
    "assertLen": [([1], 1)],
    "assertEmpty": [([],)],
    "assertNotEmpty": [([1],)],
    "assertBetween": [(1, 0, 2)],
    "assertItemsEqual": [([1, 2], [2, 1])],
}  # fmt: skip
FAIL = {
    "assertAllEqual": [
        ([1, 2], [1, 3]), ([1, 2], [[1, 2]]), (["a"], tw.constant(["b"])),
        (RAGGED, [[1], [2, 4]]),
    ],
    "assertNotAllEqual": [([1], [1])],
    "assertAllClose": [
        (1.0, 1.1), ({"a": 1.0}, {"b": 1.0}), ([1.0, [2.0, 3.0]], [1.0, [2.0, 3.5]]),
        ([1.0], [NAN]), (RAGGED, [[1.0], [2.0, 4.0]]), ([1, 2], [1, 2, 3]),
    ],
    "assertNotAllClose": [(1.0, 1.0)],
    "assertAllCloseAccordingToType": [(tw.constant(1.0), 1.0005)],
    "assertNear": [(1.0, 1.1, 0.05), (NAN, NAN, 1.0)],
    "assertArrayNear": [([1.0], [1.0, 2.0], 0.2)],
    "assertAllGreater": [([1, 2], 1)],
    "assertAllGreaterEqual": [([1, 2], 2)],
    "assertAllLess": [([1, 2], 2)],
    "assertAllLessEqual": [([1, 2], 1)],
    "assertAllInRange": [
        ([1, 2], 1, 2, False, True), ([1, 2], 1, 2, True), ([NAN], 0, 1), (["a"], 0, 1),
        ([True], 0, 1),
    ],
    "assertAllInSet": [([1, 4], [1, 2, 3])],
    "assertShapeEqual": [(np.zeros([2]), tw.zeros([3]))],
    "assertDTypeEqual": [(np.zeros(2), np.float32)],
    "assertLen": [([1], 2)],
    "assertEmpty": [([1],)],
    "assertNotEmpty": [([],)],
    "assertBetween": [(3, 0, 2)],
}  # fmt: skip


class Case(tw.test.TestCase):
    """A case whose methods the tests call."""


@pytest.mark.parametrize("name", HOLD)
def test_an_assertion_holds(name):
    for arguments in HOLD[name]:
        getattr(Case(), name)(*arguments)


@pytest.mark.parametrize("name", FAIL)
def test_an_assertion_fails(name):
    for arguments in FAIL[name]:
        with pytest.raises(AssertionError):
            getattr(Case(), name)(*arguments)


def test_what_cannot_be_compared_is_an_error():
    with pytest.raises(
        ValueError, match="must both be dicts, or none, got dict and flo"
    ):
        Case().assertAllClose([{"a": 1.0}, 2], [1.0, 2])
    with pytest.raises(
        ValueError, match=r"a\[1\] and b\[1\] must have one length, got 2"
    ):
        Case().assertAllClose([1, [2, [3]]], [1, [2]])
    with pytest.raises(TypeError, match="must be tensors or arrays, got list"):
        Case().assertShapeEqual([1], tw.zeros([1]))


def test_tensors_are_evaluated():
    case, x = Case(), tw.constant([1, 2])
    nest = case.evaluate({"a": [x, None], "b": lambda: tw.Variable(3.0)})
    assert nest["a"][0].tolist() == [1, 2] and nest["a"][1] is None and nest["b"] == 3.0
    assert case.evaluate(RAGGED) is RAGGED
    with pytest.raises(ValueError, match="tensors must be tensors, got int"):
        case.evaluate(3)
    with case.cached_session(use_gpu=True) as session, case.session():
        assert session.run(x).tolist() == [1, 2]
        with pytest.raises(ValueError, match="feed_dict must be None"):
            session.run(x, feed_dict={1: 1})


def test_errors_are_matched():
    def fail(error=None):
        raise error or ValueError("abc")

    case = Case()
    match = case.assertRaisesWithPredicateMatch
    with match(ValueError, "b"):
        fail()
    with match(ValueError, lambda error: error.args == ("abc",)):
        fail()
    for kind, pattern in ((ValueError, "z"), (TypeError, "b")):
        with pytest.raises(AssertionError, match="ValueError: abc"):
            with match(kind, pattern):
                fail()
    with pytest.raises(AssertionError, match="ValueError not raised"):
        with match(ValueError, "b"):
            pass
    with case.assertRaisesOpError("must be"):
        fail(tw.errors.InvalidArgumentError(None, None, "it must be"))


def test_a_program_of_test_cases_runs_its_tests(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        """if True:
        import os, tapewright as tf

        folders = []

        class Test(tf.test.TestCase):
            def setUp(self):
                super().setUp()
                self.x = tf.random.uniform([2])

            def test_a(self):
                folders.append(self.get_temp_dir())
                assert os.path.isdir(folders[0]) and self.get_temp_dir() == folders[0]
                for i in range(2):
                    with self.subTest(i=i):
                        self.assertAllEqual(self.x, self.x * (1 - i))

            def test_b(self):
                self.assertFalse(os.path.exists(folders[0]))
                tf.random.set_seed(87654321)
                self.assertAllEqual(self.x, tf.random.uniform([2]))

        tf.test.main()"""
    )
    done = subprocess.run([sys.executable, program], capture_output=True, text=True)
    assert done.returncode == 1
    assert "Ran 2 tests" in done.stderr and "FAILED (failures=1)" in done.stderr
    assert "(i=1)" in done.stderr


def test_seeds_are_set_before_each_test():
    Case().setUp()
    assert random.random() == 0.3499765785632496
    assert np.random.rand() == 0.18463433217903202
