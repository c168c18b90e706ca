"""Methods whose calls the profiler shows; named here, as the profiler is loaded late."""

__all__ = ["watch_method", "watched_methods"]

watched_methods = []  # (class or module, name of a function in it, category, label)


def watch_method(owner, name, category, label=None):
    """Show the calls of ``owner.name``, of a class or module, in traces.

    ``label``: their name there, or a function that makes it of the arguments.
    """
    watched_methods.append((owner, name, category, label or name))
