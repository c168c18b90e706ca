"""`SeedGenerator`, and the ``seed`` argument of layers and initializers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from tapewright.core.names.naming import unique_name
from tapewright.ops.random.sampling import Generator
from tapewright.serialization import object_config, registry
from tapewright.serialization.constructor_call import constructor_call

if TYPE_CHECKING:
    from tapewright.core.variable import Variable

    from .layer_types import SeedLike


class SeedGenerator(Generator):
    """Random number generator whose state advances with each draw.

    Pass it as ``seed`` to a random function or layer. Keep it as the attribute of a
    layer to get new random numbers in each call of a traced function.

    Args:
        seed: Integer seed, or None for one from Python's ``random``, which
            `keras.utils.set_random_seed` seeds.
        name: Name of the generator.

    Raises:
        ValueError: If ``seed`` is neither an integer nor None.

    Example:
        >>> from tapewright.keras.random import normal
        >>> first, again = keras.random.SeedGenerator(7), keras.random.SeedGenerator(7)
        >>> draws = [normal([2], seed=g).numpy().tolist() for g in (first, first, again)]
        >>> draws[0] == draws[2] != draws[1]
        True
    """

    def __init__(self, seed: int | None = None, name: str | None = None):
        if seed is None:
            import random  # a good millisecond, and seldom needed

            seed = random.randint(1, 10**9)  # as Keras
        if not isinstance(seed, int):
            raise ValueError(
                f"SeedGenerator: seed must be an integer or None, got {seed!r}"
            )
        super().__init__(seed)
        self.seed: int = seed
        self.name: str = name or unique_name("seed_generator")

    __repr__ = constructor_call

    def next(self, ordered: bool = True) -> Variable:
        """Return the state for the next draw, and advance the generator.

        Args:
            ordered: Ignored.
        """
        return self._tw_stream().state

    def get_config(self) -> dict[str, Any]:
        """Return a dict of ``seed`` and ``name``."""
        return {"seed": self.seed, "name": self.name}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Create a generator in the initial state of the one with this config.

        Args:
            config: Dict returned by `get_config`.
        """
        return cls(**config)


registry.register("seed_generator", "SeedGenerator", SeedGenerator)


def checked_seed(who: Any, seed: Any) -> SeedLike:
    """Return ``seed``, an int, None or a generator; create one from its config."""
    if isinstance(seed, dict):
        return object_config.deserialize("seed_generator", seed)
    whole = hasattr(seed, "__index__") and not isinstance(seed, bool)
    if seed is None or whole or isinstance(seed, Generator):
        return seed
    name = who if isinstance(who, str) else type(who).__name__
    raise ValueError(
        f"{name}: seed must be an integer, a SeedGenerator or None, got {seed!r}"
    )


def generator_of(seed: SeedLike) -> Generator | None:
    """Return the generator for a checked seed; None for the global one."""
    return seed if seed is None or isinstance(seed, Generator) else Generator(seed)
