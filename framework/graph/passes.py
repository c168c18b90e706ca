"""What makes a graph smaller before it is planned; each pass alone, and to be switched off."""

__all__ = ["run"]


def run(graph):
    """The graph after all passes that are switched on."""
    return graph
