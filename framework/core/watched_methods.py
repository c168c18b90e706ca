"""Methods whose calls the profiler records, listed here as the profiler loads late."""

__all__ = ["watch_method", "watched_methods"]

watched_methods = []  # (class or module, name of a function in it, category, label)


def watch_method(owner, name, category, label=None):
    """Record the calls of ``owner.name``, of a class or module, in profiles.

    ``label`` is the name shown there, or a function that returns it from the arguments.
    """
    watched_methods.append((owner, name, category, label or name))
