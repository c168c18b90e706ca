"""Losses, metrics, optimizers and normalization in a step of several replicas.

Each test runs a script of `scripts` with its checks. Of three replicas the last is idle.
"""

from pathlib import Path

SCRIPTS = Path(__file__).parent / "scripts"


def run(run_ranks, name, count=3):
    rc, stdout, stderr = run_ranks(count, SCRIPTS / name, timeout=240)
    assert rc == 0, stderr
    assert stdout.endswith("checked\n")


def test_losses_of_parts_add_up_to_that_of_the_whole_batch(run_ranks):
    run(run_ranks, "losses.py")


def test_every_metric_gives_the_result_of_the_whole(run_ranks):
    run(run_ranks, "metrics.py")


def test_an_update_is_that_by_the_sums_of_the_gradients_of_all(run_ranks):
    run(run_ranks, "optimizers.py")


def test_a_gradient_that_one_replica_lacks_ends_the_job_and_names_the_variable(
    run_ranks,
):
    rc, _, stderr = run_ranks(
        2,
        """
        import tapewright as tw
        from tapewright.core.communication.job import communicator
        from tapewright.core.replica_context import ReplicaContext, in_replica_context

        rank = communicator().rank
        variables = [tw.Variable([0.0], name=name) for name in ("often", "rare")]
        gradients = [tw.constant([1.0]), None if rank else tw.constant([1.0])]
        with in_replica_context(ReplicaContext(2, rank, 0.5)):
            tw.optimizers.SGD().apply(gradients, variables)
        """,
    )
    assert rc != 0
    assert "Gradients do not exist for variables ['rare']" in stderr
    assert "the ranks do not call the same collective" in stderr


def test_batch_normalization_by_all_replicas_or_by_each_with_equal_moving_moments(
    run_ranks,
):
    run(run_ranks, "normalization.py")
