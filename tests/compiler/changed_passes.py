"""Change the passes of all targets for a test."""

from tapewright.compiler import pipeline

__all__ = ["change_passes"]


def change_passes(monkeypatch, graph=tuple, program=tuple):
    """Let the pipeline run other passes.

    Args:
        monkeypatch: Pytest's fixture, or a context of it.
        graph: Function of the tuple of passes over graphs that returns the ones to run.
        program: The same for passes over programs.
    """
    right = pipeline.current_target

    def changed():
        target = right()
        return target._replace(
            graph_passes=graph(target.graph_passes),
            program_passes=program(target.program_passes),
        )

    monkeypatch.setattr(pipeline, "current_target", changed)
