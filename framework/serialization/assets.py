"""Configs for files that have no place for the assets of layers, such as vocabularies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_IN_CONFIGS = ContextVar("assets_in_configs", default=False)


@contextmanager
def assets_in_configs() -> Iterator[None]:
    """Include the assets of layers in their configs."""
    token = _IN_CONFIGS.set(True)
    try:
        yield
    finally:
        _IN_CONFIGS.reset(token)


def configs_hold_assets() -> bool:
    """Return whether `assets_in_configs` is active."""
    return _IN_CONFIGS.get()
