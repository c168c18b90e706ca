"""A step of several replicas in which one lacks a gradient."""


def test_a_gradient_that_one_replica_lacks_ends_the_job_and_names_the_variable(
    run_ranks, tmp_path
):
    # Each rank waits for the files of both before it ends the job, which kills the other.
    rc, _, stderr = run_ranks(
        2,
        """
        import sys
        import time
        import warnings
        from pathlib import Path
        import tapewright as tw
        from tapewright.core.communication.job import communicator
        from tapewright.core.state.replica_context import ReplicaContext, in_replica_context

        rank, folder = communicator().rank, Path(sys.argv[1])
        variables = [tw.Variable([0.0], name=name) for name in ("often", "rare")]
        gradients = [tw.constant([1.0]), None if rank else tw.constant([1.0])]
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                with in_replica_context(ReplicaContext(2, rank, 0.5)):
                    tw.optimizers.SGD().apply(gradients, variables)
        except tw.errors.CollectiveError as error:
            lines = [str(warning.message) for warning in caught] + [str(error)]
            (folder / f"{rank}.part").write_text("\\n".join(lines))
            (folder / f"{rank}.part").rename(folder / f"{rank}.txt")
            while len(list(folder.glob("*.txt"))) < 2:
                time.sleep(0.01)
            raise
        """,
        tmp_path,
    )
    assert rc != 0
    assert "the ranks do not call the same collective" in stderr
    first, second = [(tmp_path / f"{rank}.txt").read_text() for rank in range(2)]
    assert "Gradients do not exist for variables ['rare']" in second
    assert "Gradients do not exist" not in first
    for text in (first, second):
        assert "the ranks do not call the same collective" in text
