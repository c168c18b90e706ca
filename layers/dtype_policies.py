"""Dtype policies: the compute dtype and the weight dtype of a layer."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any, Self

from tapewright.core.dtypes import DType, as_dtype
from tapewright.core.messages.suggestions import did_you_mean
from tapewright.core.patterns import pattern_of
from tapewright.core.settings.floatx import default_float
from tapewright.serialization import object_config, registry
from tapewright.serialization.configured import Configured

_MIXED = {"mixed_float16": "float16", "mixed_bfloat16": "bfloat16"}
# Starts of names, and the classes, of policies that store weights as small integers or
# in 8 bits; Keras' name of such a policy is "int8_from_float32".
_QUANTIZED = ("int8", "int4", "float8", "gptq", "awq")
_QUANTIZED_CLASSES = (
    "AWQDTypePolicy", "GPTQDTypePolicy", "Int4DTypePolicy", "QuantizedDTypePolicy",
    "QuantizedFloat8DTypePolicy", "QuantizedFloatDTypePolicy",
)  # fmt: skip


_policy = None  # as set by `set_dtype_policy`


class DTypePolicy(Configured):
    """Dtype policy of a layer: the dtypes of its computations and of its weights.

    Args:
        name: Name of a dtype, for computations and weights; or "mixed_float16" or
            "mixed_bfloat16" for float32 weights and computations in half precision.
            Defaults to the policy of `keras.config.dtype_policy`.

    Raises:
        TypeError: If ``name`` is not a string.
        ValueError: If the name is unknown, or names a quantized or float8 policy; these
            are not supported.

    Example:
        >>> policy = keras.dtype_policies.DTypePolicy("mixed_float16")
        >>> policy.compute_dtype, policy.variable_dtype
        ('float16', 'float32')
    """

    _tw_kind: str = "dtype_policy"

    def __init__(self, name: str | None = None):
        self._name = dtype_policy().name if name is None else name
        self._compute_dtype, self._variable_dtype = _dtypes_of(self._name)

    @property
    def name(self) -> str:
        """Name of the policy."""
        return self._name

    @property
    def compute_dtype(self) -> str:
        """Name of the dtype of computations, inputs and outputs."""
        return self._compute_dtype

    @property
    def variable_dtype(self) -> str:
        """Name of the dtype of the weights."""
        return self._variable_dtype

    @property
    def quantization_mode(self) -> None:
        """Always None: quantized policies are not supported."""
        return None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DTypePolicy) or isinstance(other, DTypePolicyMap):
            return False
        return self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f'<DTypePolicy "{self.name}">'


class FloatDTypePolicy(DTypePolicy):
    """Dtype policy for floating dtypes: another name of `DTypePolicy`, as in Keras."""


class DTypePolicyMap(DTypePolicy, MutableMapping):
    """Dict from layer paths to dtype policies, for a layer and its sublayers.

    A key is the path of a layer, or a regular expression that must match the whole
    path. Other layers have the default policy. Every expression of ``re`` is either
    matched in linear time or rejected.

    Args:
        default_policy: Policy, or its name, of layers without a matching key; defaults
            to `keras.config.dtype_policy`.
        policy_map: Dict from paths to policies or their names.

    Raises:
        ValueError: If the default is a map, an expression is rejected, or several keys
            match a path.
        TypeError: If ``policy_map`` is not a dict.

    Example:
        >>> policies = keras.dtype_policies.DTypePolicyMap(
        ...     "float32", {"encoder/.*": "mixed_float16"}
        ... )
        >>> policies["encoder/dense"].name, policies["decoder"].name
        ('mixed_float16', 'float32')
    """

    def __init__(
        self,
        default_policy: Any = None,
        policy_map: dict[str, Any] | None = None,
    ):
        if isinstance(default_policy, DTypePolicyMap):
            raise ValueError(
                "DTypePolicyMap: default_policy must be a single policy, got a map"
            )
        if policy_map is not None and not isinstance(policy_map, dict):
            raise TypeError(
                "DTypePolicyMap: policy_map must be a dict from paths to policies, got "
                f"{policy_map!r:.80}"
            )
        self._tw_given_default = None if default_policy is None else get(default_policy)
        self.policy_map: dict[str, DTypePolicy] = {}
        for path, policy in (policy_map or {}).items():
            self[path] = policy

    @property
    def default_policy(self) -> DTypePolicy:
        """Policy of layers without a matching key."""
        return get(self._tw_given_default)

    @property
    def name(self) -> str:
        return f"map_{self.default_policy.name}"

    @property
    def compute_dtype(self) -> str:
        return self.default_policy.compute_dtype

    @property
    def variable_dtype(self) -> str:
        return self.default_policy.variable_dtype

    def __getitem__(self, path: str) -> DTypePolicy:
        if path in self.policy_map:
            return self.policy_map[path]
        matching = [k for k in self.policy_map if pattern_of(k).fullmatch(path)]
        if len(matching) > 1:
            raise ValueError(
                f"DTypePolicyMap: the path {path!r} matches several keys, {matching}; it "
                "must match one at most"
            )
        return self.policy_map[matching[0]] if matching else self.default_policy

    def __setitem__(self, path: str, policy: Any) -> None:
        if path in self.policy_map:
            raise ValueError(
                f"DTypePolicyMap: {path!r} has a policy already, "
                f"{self.policy_map[path].name!r}; delete it first"
            )
        pattern_of(path)  # refuses what is no regular expression
        self.policy_map[path] = get(policy)

    def __delitem__(self, path: str) -> None:
        del self.policy_map[path]

    def __contains__(self, path: object) -> bool:
        return path in self.policy_map

    def __iter__(self) -> Iterator[str]:
        return iter(self.policy_map)

    def __len__(self) -> int:
        return len(self.policy_map)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DTypePolicyMap) and (
            (self._tw_given_default, self.policy_map)
            == (other._tw_given_default, other.policy_map)
        )

    __hash__ = None  # type: ignore[assignment]

    def get_config(self) -> dict[str, Any]:
        """Return the default policy, or None if it was not given, and the policies by path."""
        return {
            "default_policy": object_config.plain(self._tw_given_default),
            "policy_map": object_config.plain(self.policy_map),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        return cls(**config)

    def __repr__(self) -> str:
        names = {path: policy.name for path, policy in self.policy_map.items()}
        return f"<DTypePolicyMap default_policy={self.default_policy.name!r} {names}>"


registry.register("dtype_policy", "DTypePolicy", DTypePolicy)
# Keras 2 has it under this name.
registry.register("dtype_policy", "Policy", DTypePolicy)


# ----------------------------------------------------------------------- the default policy


def dtype_policy() -> DTypePolicy:
    """Return the default dtype policy of new layers.

    This is the policy of `keras.config.set_dtype_policy`, or else the one for
    `keras.config.floatx`.

    Example:
        >>> keras.config.dtype_policy()
        <DTypePolicy "float32">
    """
    return DTypePolicy(default_float().name) if _policy is None else _policy


def set_dtype_policy(policy: str | DTypePolicy | None) -> None:
    """Set the default dtype policy of layers created from now on, in all threads.

    Args:
        policy: Policy or its name; None resets it to the policy for
            `keras.config.floatx`.

    Raises:
        ValueError: If the name is unknown or ``policy`` is of another type.

    Example:
        >>> keras.config.set_dtype_policy("mixed_float16")
        >>> keras.config.dtype_policy().compute_dtype
        'float16'
        >>> keras.config.set_dtype_policy(None)
    """
    global _policy
    if not isinstance(policy, (str, DTypePolicy, type(None))):
        raise ValueError(
            "set_dtype_policy: policy must be a DTypePolicy or its name, such as "
            f"'mixed_float16', got {policy!r:.80}"
        )
    _policy = None if policy is None else get(policy)


# -------------------------------------------------------------------- by name and by config


def get(identifier: Any) -> DTypePolicy:
    """Return the dtype policy for a name, dtype or config.

    Args:
        identifier: Name, dtype, config or `DTypePolicy`; None for
            `keras.config.dtype_policy`.

    Raises:
        ValueError: If the name is unknown, the policy is quantized, or ``identifier``
            is of another type.

    Example:
        >>> keras.dtype_policies.get("bool")
        <DTypePolicy "bool">
        >>> config = {"class_name": "DTypePolicy", "config": {"name": "float64"}}
        >>> keras.dtype_policies.get(config)
        <DTypePolicy "float64">
    """
    if identifier is None:
        return dtype_policy()
    if isinstance(identifier, DTypePolicy):
        return identifier
    if isinstance(identifier, dict):
        return deserialize(identifier)
    if not isinstance(identifier, str):
        try:
            identifier = as_dtype(identifier).name
        except TypeError:
            raise ValueError(
                "dtype must be a dtype, a DTypePolicy, or the name of one, got "
                f"{identifier!r:.80}"
            ) from None
    return DTypePolicy(identifier)


def compute_dtype(dtype: Any) -> DType:
    """Return the dtype in which a loss or metric with this ``dtype`` argument computes.

    The default is `keras.config.floatx`, independent of the dtype policy of layers.

    Example:
        >>> from tapewright.layers.dtype_policies import compute_dtype
        >>> policy = keras.dtype_policies.DTypePolicy("mixed_float16")
        >>> compute_dtype(None), compute_dtype(policy)
        (tf.float32, tf.float16)
    """
    return default_float() if dtype is None else as_dtype(get(dtype).compute_dtype)


def serialize(dtype_policy: DTypePolicy) -> dict[str, Any]:
    """Return the config of a policy in Keras' format.

    Args:
        dtype_policy: Policy to serialize.

    Example:
        >>> policy = keras.dtype_policies.DTypePolicy("mixed_float16")
        >>> keras.dtype_policies.serialize(policy)["config"]
        {'name': 'mixed_float16'}
    """
    return object_config.serialize(dtype_policy)


def deserialize(
    config: dict[str, Any], custom_objects: dict[str, Any] | None = None
) -> DTypePolicy:
    """Return the policy of a config written by `serialize` or Keras 2.

    Args:
        config: Config of a policy.
        custom_objects: Dict from names to classes or functions, looked up before
            registered classes.

    Raises:
        ValueError: If the config is not the config of a policy, or the policy is
            quantized.

    Example:
        >>> policy = keras.dtype_policies.DTypePolicy("mixed_float16")
        >>> keras.dtype_policies.deserialize(keras.dtype_policies.serialize(policy))
        <DTypePolicy "mixed_float16">
    """
    if isinstance(config, dict) and config.get("class_name") in _QUANTIZED_CLASSES:
        _refuse_quantized(config["class_name"])
    with registry.custom_object_scope(custom_objects):
        policy = object_config.deserialize("dtype_policy", config)
    if not isinstance(policy, DTypePolicy):
        raise ValueError(f"dtype must be the config of a policy, got {config!r:.80}")
    return policy


def _dtypes_of(name):
    """Return the names of the compute dtype and the weight dtype."""
    if not isinstance(name, str):
        raise TypeError(
            "DTypePolicy: name must be a string, such as 'mixed_float16', got "
            f"{name!r:.80}"
        )
    if name in _MIXED:
        return _MIXED[name], "float32"
    if name.startswith("float8") or "_from_" in name:
        _refuse_quantized(name)
    try:
        dtype: DType = as_dtype(name)
    except TypeError:
        raise ValueError(
            f"DTypePolicy: name must be 'mixed_float16', 'mixed_bfloat16', or the name "
            f"of a dtype, such as 'float32'; got {name!r:.80}"
            f"{did_you_mean(name, [*_MIXED, 'float32', 'float16', 'bfloat16'])}"
        ) from None
    return dtype.name, dtype.name


def _refuse_quantized(name):
    raise ValueError(
        f"dtype policy {name!r:.80}: quantized policies ({', '.join(_QUANTIZED)}) are not "
        "supported; use 'mixed_float16', 'mixed_bfloat16', or the name of a dtype, "
        "such as 'float32'"
    )
