"""`serialize` and `deserialize`: a layer as its class's name and config, and back."""

from tapewright.serialization.object_config import ObjectFamily

__all__ = ["deserialize", "serialize"]

_family = ObjectFamily("layer")
serialize, deserialize = _family.serialize, _family.deserialize
