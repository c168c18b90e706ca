"""`RegionNode`: a node that runs nested graphs, its *regions*.

Operands of the node become arguments of its regions, and the values that these yield
become results of the node. They come in groups, which each kind of node declares:

    kind     operands                          results
    `Cond`       choice constant                   yielded
    `LoopNode`   count carried sliced constant     carried summed steps stacked

A *port* is a group and a number in it. Ports with the same name are connected: the
operand ``("sliced", 0)`` is, row by row, the argument ``("sliced", 0)`` of a loop's
body; the value that the body yields at ``("carried", 1)`` is its argument of this name
in the next step, and the result after the last one. Narrowing, splitting off effects,
recording and derivatives are written over ports, once for all kinds.
"""

from collections import Counter

from tapewright.core.dtypes import kind_of
from tapewright.core.hardware.devices import array_module, may_share_memory
from tapewright.core.shapes.symbolic_shape import (
    equal_for_examples,
    sizes_in_use,
    substitute,
)
from tapewright.ops.array.conversion import stop_gradient

from ..tracing.binding import bound_regions
from ..tracing.graph import Effect, Node, Read, ReadAgain, Value, Write, spec_of
from ..tracing.handles import HANDLE, ListValue, list_value, object_of, zeros_of
from .recording import emit, region_gradients


def named_cotangents(by_port):
    """Give cotangents names that differ from the primals at the same ports."""
    return {("cotangent", port): c for port, c in dict(by_port).items()}


class RegionNode(Node):
    """A node with regions. Each kind of node declares its groups and how it runs.

    ``GROUPS`` has, for each region, the groups of its arguments and of its yields (the
    last pair also applies to further regions). ``TOKENS`` is a group of results and a
    group of operands that residuals are added to: results of the forward node, operands
    of the backward node. ``ROWS`` are the groups of which a region receives or yields a
    row. ``SETTINGS`` are the attributes that, together with the regions, make another
    node like it; those in ``COUNTED`` are sizes of groups. ``of_variables`` are pairs
    of a variable and the number of its argument.
    """

    SETTINGS = COUNTED = ()
    OPERANDS = RESULTS = GROUPS = ROWS = ()
    TOKENS = None
    runs_one_region = False  # whether it runs one of its regions, once
    __slots__ = ("regions", "title", "of_variables", "_touched")

    def __init__(self, regions, specs, title, of_variables=(), line=None):
        super().__init__(None, (), {}, line)
        self.regions, self.title = tuple(regions), title
        self.of_variables = of_variables
        nodes = [node for region in self.regions for node in region.nodes]
        self._touched = (
            any([node.is_effect for node in nodes]),
            _unique([v for node in nodes for v in node.reads]),
            _unique([v for node in nodes for v in node.writes]),
            any([node.is_host_call for node in nodes]),
        )
        self.make_outputs(specs)

    name = property(lambda self: self.title)
    is_effect = property(lambda self: self._touched[0])
    reads = property(lambda self: self._touched[1])
    writes = property(lambda self: self._touched[2])
    is_host_call = property(lambda self: self._touched[3])

    def copy(self, regions=None, counts=None, **changes):
        """Make another node like this one; ``counts`` are the sizes of its groups."""
        settings = {name: getattr(self, name) for name in self.SETTINGS}
        sizes = sizes_in_use()
        if sizes is not None:
            settings = substitute(settings, sizes)
        if counts is not None:
            settings |= {name: counts[name] for name in self.COUNTED}
        regions = bound_regions(self.regions) if regions is None else regions
        return type(self)(regions=regions, line=self.line, **{**settings, **changes})

    # --- ports

    def counts(self):
        """Return the size of each group."""
        raise NotImplementedError(f"{type(self).__name__} must define counts")

    @property
    def operand_ports(self):
        return self._ports(self.OPERANDS)

    @property
    def result_ports(self):
        return self._ports(self.RESULTS)

    def region_ports(self):
        """Return for each region its arguments and its yields, each by port."""
        return [
            (
                dict(zip(self._ports(arguments), region.inputs, strict=True)),
                dict(zip(self._ports(yields), region.outputs, strict=True)),
            )
            for region, (arguments, yields) in self._regions()
        ]

    def grouped(self, groups, values):
        """Split the values at the ports of these groups into a list for each group."""
        values, counts = iter(values), self.counts()
        return [[next(values) for _ in range(counts[group])] for group in groups]

    def _ports(self, groups):
        counts = self.counts()
        return [(group, i) for group in groups for i in range(counts[group])]

    def _regions(self):
        """Return pairs of a region and its groups."""
        last = len(self.GROUPS) - 1
        return [(g, self.GROUPS[min(i, last)]) for i, g in enumerate(self.regions)]

    def operand_kinds(self, operands):
        """Return the dtype kind of each operand; for a list value, the kind of its items."""
        return self._kinds(self.operand_ports, operands, 0)

    def result_kinds(self, results):
        """Return the dtype kind of each result, in the same way."""
        return self._kinds(self.result_ports, results, 1)

    def _kinds(self, ports, tensors, side):
        inside = {}
        for region in self.region_ports():
            inside |= {port: kind_of(spec_of(x)[1]) for port, x in region[side].items()}
        return [
            inside.get(port, kind_of(x.array.dtype))
            for port, x in zip(ports, tensors, strict=True)
        ]

    def check_regions(self):
        """Raise ``ValueError`` unless arguments and yields of the regions match the node."""
        counts = self.counts()
        for region, groups in self._regions():
            sizes = [sum([counts[name] for name in names]) for names in groups]
            if sizes != [len(region.inputs), len(region.outputs)]:
                raise ValueError(f"{self.name}: a region takes or yields other groups")
        if min(counts.values()) < 0:
            raise ValueError(
                f"{self.name}: a region takes fewer values than are carried"
            )
        operands = dict(zip(self.operand_ports, self.inputs, strict=True))
        results = dict(zip(self.result_ports, self.outputs, strict=True))
        for arguments, yields in self.region_ports():
            for port, value in arguments.items():
                self._check_port(port, operands[port], value)
                self._check_port(port, yields.get(port, value), value)
            for port, value in yields.items():
                self._check_port(port, results.get(port, value), value)

    def _check_port(self, port, outside, inside):
        (shape, dtype), (row, kind) = spec_of(outside), spec_of(inside)
        if port[0] in self.ROWS and outside is not inside:
            if dtype == HANDLE:
                return  # a list of arrays
            shape = shape[1:]
        if dtype != kind or not equal_for_examples(shape, row):
            raise ValueError(
                f"{self.name}: {' '.join(map(str, port))} is {dtype} of shape {shape}, in "
                f"a region {kind} of shape {row}"
            )

    # --- in a trace

    def interpret(self, args, env):
        """Compute the results for tensors, or write the node into the trace."""
        return emit(self.copy(), args) if self.is_traced(args) else self.run(args)

    def is_traced(self, operands):
        """Return whether the node depends on a trace, and so cannot run now."""
        raise NotImplementedError(f"{type(self).__name__} must define is_traced")

    def run(self, operands):
        """Compute the results through the ops of the regions."""
        raise NotImplementedError(f"{type(self).__name__} must define run")

    # --- in an executable

    def lowered(self):
        """Return the programs of the regions, and further arguments of `runner`."""
        return [region_program(region) for region in self.regions], {}

    def runner(self, executables):
        """Make a function of arrays; outputs are new arrays, or views of inputs.

        ``executables``: of the programs of the regions.
        """
        raise NotImplementedError(f"{type(self).__name__} must define runner")

    def kernel(self, executables, **settings):
        """Make the function that replays call; with effects, all results are new arrays."""
        run = self.runner(executables, **settings)
        if not self.is_effect:
            return run
        writes = self.writes

        def effect(*arrays):
            # Effects change the memory of variables, where operands may lie.
            arrays = [
                a.copy() if any(may_share_memory(a, v._array) for v in writes) else a
                for a in arrays
            ]
            return tuple([_copied(a) for a in run(*arrays)])

        effect.__name__ = self.name
        return effect

    # --- narrowing

    def pinned(self):
        """Return the ports that are always needed, regardless of the results that are used."""
        return set()

    def narrowed(self, used):
        """Remove unused results; return node, and the kept results and operands.

        ``used`` has a flag for each result. Results and operands are returned as
        numbers. An operand is removed if no region needs it for the used results.
        Returns None if nothing is removed.
        """
        ports, pinned = self.region_ports(), self.pinned()
        inside = {port for region in ports for part in region for port in part}
        carried = {p for arguments, yields in ports for p in arguments if p in yields}
        wanted = {p for p, flag in zip(self.result_ports, used) if flag} | pinned
        needed, before = pinned, None
        while before != wanted:  # what is carried is needed in a later step
            before, needed = wanted, pinned | self._needed_for(wanted, ports)
            wanted = wanted | (needed & carried)
        needed = needed | (wanted & carried)
        results, operands = [
            [i for i, port in enumerate(own) if port in kept or port not in inside]
            for own, kept in ((self.result_ports, wanted), (self.operand_ports, needed))
        ]
        if len(results) == len(used) and len(operands) == len(self.operand_ports):
            return None
        regions = []
        for region, (arguments, yields) in zip(self.regions, ports):
            kept = [x for port, x in yields.items() if port in wanted]
            twin = region.replaced(region.nodes, kept)
            twin.inputs = [value for port, value in arguments.items() if port in needed]
            regions.append(twin)
        names = list(ports[0][0])
        kept = [port for port in names if port in needed]
        pairs = [(v, names[number]) for v, number in self.of_variables]
        pairs = [(v, kept.index(port)) for v, port in pairs if port in needed]
        counts = Counter([group for group, _ in (wanted | needed) & inside])
        return self.copy(regions, counts, of_variables=pairs), results, operands

    def _needed_for(self, wanted, ports):
        """Return the ports of the arguments on which the yields at these ports depend."""
        needed = set()
        for region, (arguments, yields) in zip(self.regions, ports):
            live = region.live_values([x for p, x in yields.items() if p in wanted])
            needed.update([p for p, value in arguments.items() if value in live])
        return needed

    # --- derivatives

    def saving(self):
        """Return the node with the residuals of its gradient as results, except tokens."""
        return self

    def split(self):
        """Return ``(full, specs, pure)`` as `split_effects`, with the specs of the tokens."""
        given, taken = self.TOKENS
        counts = Counter(self.counts())
        parts = [
            split_effects(region) if given in yields else None
            for region, (_, yields) in self._regions()
        ]
        tokens = [v for part in parts if part for v in part[1]]
        full, pure, start = list(self.regions), list(self.regions), 0
        for i, (region, (arguments, _)) in enumerate(self._regions()):
            if parts[i] is None:
                continue
            full[i], own, pure[i] = parts[i]
            stop = start + len(own)
            before, after = tokens[:start], tokens[stop:]
            full[i].outputs = [
                *region.outputs, *map(_zeros, before), *own, *map(_zeros, after)
            ]  # fmt: skip
            more = [*map(_like, before), *own, *map(_like, after)]
            pure[i].inputs = self._with_tokens(arguments, region.inputs, more)
            start = stop
        full = self.copy(full, counts + Counter({given: len(tokens)}))
        pure = self.copy(pure, counts + Counter({taken: len(tokens)}))
        return full, [spec_of(v) for v in full.outputs[len(self.outputs) :]], pure

    def with_tokens(self, operands, tokens):
        """Return the operands of the pure node."""
        return self._with_tokens(self.OPERANDS, operands, tokens)

    def _with_tokens(self, groups, values, tokens):
        """Insert tokens at the end of their group, one of ``groups``."""
        last = groups.index(self.TOKENS[1])
        stop = len(self._ports(groups[: last + 1]))
        return [*values[:stop], *tokens, *values[stop:]]

    def recorded(self):
        """Return the node with all residuals as results, and its gradient function.

        ``gradient(inputs, outputs, cotangents, wanted)`` returns a tensor for each
        input number in ``wanted``.
        """
        saving = self.saving()
        full, _, pure = saving.split()
        ports, results = self.operand_ports, saving.result_ports

        def gradient(inputs, outputs, cotangents, wanted):
            tokens = outputs[len(results) :]
            operands = dict(zip(pure.operand_ports, saving.with_tokens(inputs, tokens)))
            pairs = zip(results, cotangents)
            present = {port: c for port, c in pairs if c is not None}
            numbers = [ports[i] for i in wanted]
            return pure.gradient(
                operands, dict(zip(results, outputs)), present, numbers
            )

        return full, gradient

    def gradient(self, operands, results, cotangents, wanted):
        """Emit a node that computes the gradients of the operands at the ports ``wanted``.

        ``operands``, ``results`` and ``cotangents`` (of the results) are tensors by
        port.
        """
        raise NotImplementedError(f"{type(self).__name__} must define gradient")

    def pull_back(self, number, known, wanted):
        """Return the gradients of a region by its arguments, and its yields, both by port.

        ``known`` has its arguments by port and the available `named_cotangents`.
        """
        arguments, yields = self.region_ports()[number]
        names = list(arguments)
        gradients, outputs = region_gradients(
            self.regions[number],
            [known[port] for port in names],
            [names.index(port) for port in wanted],
            [known.get(("cotangent", port)) for port in yields],
            self.of_variables,
        )
        return dict(zip(wanted, gradients)), dict(zip(yields, outputs))


def _unique(variables):
    return tuple({id(v): v for v in variables}.values())


def _copied(array):
    """Copy an array, or the items of a list value."""
    if array.dtype == HANDLE and isinstance(object_of(array), ListValue):
        return list_value([_copied(item) for item in object_of(array).items])
    return array_module(type(array)).array(array)


def _zeros(value):
    return zeros_of(spec_of(value))


def _like(value):
    return Value(*spec_of(value))


def region_program(graph, owned=()):
    """Lower a region; it may write only to the inputs in ``owned``."""
    from ..pipeline import make_program

    return make_program(graph, aliases_inputs=True, donated_inputs=owned)


# -------------------------------------------------------------------------- effects


def split_effects(graph):
    """Return ``(full, tokens, pure)``: the forward graph, and the graph for recomputation.

    ``tokens`` are the results of effects and the values of variables. ``full`` has them
    as further outputs; ``pure`` has them as further inputs instead of the effects: it
    draws no random numbers and prints nothing. Both share their values with ``graph``.
    """
    full, pure, tokens = [], [], []
    for node in graph.nodes:
        if isinstance(node, RegionNode) and node.is_effect:
            with_more, specs, without = node.split()
            with_more.inputs, with_more.line = node.inputs, node.line
            more = [Value(*spec, with_more) for spec in specs]
            with_more.outputs = (*node.outputs, *more)
            tokens += more
            without.inputs = tuple(node.with_tokens(node.inputs, more))
            without.line = node.line
            without.outputs = node.outputs
            full.append(with_more)
            pure.append(without)
            continue
        full.append(node)
        if isinstance(node, (Effect, Read)):
            tokens += node.outputs
        elif type(node) is ReadAgain:
            pure.append(_cut(node))
        elif type(node) is not Write:
            pure.append(node)
    whole = graph.replaced(full, [*graph.outputs, *tokens])
    rest = graph.replaced(pure, list(graph.outputs))
    rest.inputs = [*graph.inputs, *tokens]
    return whole, tokens, rest


def _cut(node):
    """Replace an alias by `stop_gradient`: gradients do not flow through assignments."""
    twin = Node(stop_gradient.primitive, node.inputs, {}, node.line)
    twin.outputs = node.outputs
    return twin
