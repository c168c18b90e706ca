"""Signature of a ``call`` method, as `Layer.__call__` needs it."""

from __future__ import annotations

import math


class CallSignature:
    """Parameters of a ``call`` method, without ``self``."""

    def __init__(self, call):
        self.call = call
        while hasattr(call, "__wrapped__"):
            call = call.__wrapped__
        if not hasattr(call, "__code__"):  # an object, such as a mock
            call = type(call).__call__
        code, defaults = call.__code__, call.__defaults__ or ()
        names = code.co_varnames[1 : code.co_argcount]
        keywords = code.co_varnames[len(names) + 1 :][: code.co_kwonlyargcount]
        values = dict(zip(names[len(names) - len(defaults) :], defaults))
        values.update(call.__kwdefaults__ or {})
        self.names, self.defaults = names, values
        self.first = names[0] if names else "inputs"
        self.takes_training: bool = "training" in names + keywords
        self.takes_any: bool = bool(code.co_flags & 0x08)  # **kwargs
        self.default: None = values.get("training")
        # among the arguments after the first
        self.training_at = names.index("training") if "training" in names else math.inf
        self.masks = {}  # argument for a mask -> the argument whose mask it is
        for name in names + keywords:
            if name.endswith("_mask") and name[: -len("_mask")] in names:
                self.masks[name] = name[: -len("_mask")]
        if "mask" in names + keywords and f"{self.first}_mask" not in self.masks:
            self.masks["mask"] = self.first

    def first_of(self, kwargs, title):
        """Return the inputs, passed by keyword."""
        if self.first not in kwargs:
            raise TypeError(f"{title}: the argument '{self.first}' is missing")
        return kwargs.pop(self.first)

    def training_among(self, args):
        """Return the value of ``training`` if it was passed by position."""
        return args[self.training_at - 1] if len(args) >= self.training_at else None

    def given(self, inputs, args, kwargs):
        """Return the arguments of a call by name."""
        return dict(zip(self.names, (inputs, *args))) | kwargs
