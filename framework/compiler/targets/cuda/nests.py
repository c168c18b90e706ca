"""Thread nests as functions in CUDA C.

Loops are grid-stride loops. Members of a team within a warp combine their sums by
shuffles; larger teams use shared memory, and every thread adds up the partial sums in
the same order.
"""

import contextlib
import itertools

from tapewright.core.errors import InternalError

from ...loops.statements import Compute, Load, Select, Store, identity_of
from ...loops.threads.thread_statements import Begin, Combine, Fold, Guard, Members
from .kernel import Launch, Parameter, half_name
from .scalar_functions import literal, register_type, scalar_function

WARP = 32
SHARED = 1 << 15  # bytes in which sums are combined at once
ALL = "0xffffffffu"  # the threads of a warp


def steps_on(nest, addresses):
    """Return the steps of a `ThreadNest`: one launch. See `CudaKernel.steps_on`."""
    return [_Function(nest, addresses).launch()]


class _Function:
    """Prints the statements of a nest; ``names`` has the names of scalars."""

    def __init__(self, nest, addresses):
        self.nest, self.geometry, self.addresses = nest, nest.geometry, addresses
        self.lines, self.depth, self.names = [], 1, {}
        self.numbers, self.slots = itertools.count(), 0
        self.parameters = {}  # position -> its parameter
        for a in dict.fromkeys([*nest.operands, *nest.outputs]):
            self.declare(addresses[a], a.dtype, a in nest.outputs)
        is_wide = _largest_index(nest) >= nest.limits.wide_index
        self.index = "long long" if is_wide else "int"
        own, other = ("x", "y") if self.geometry.is_row else ("y", "x")
        self.member, self.members = f"threadIdx.{own}", f"blockDim.{own}"
        self.lane, self.lanes = f"threadIdx.{other}", f"blockDim.{other}"

    def declare(self, position, dtype, is_written):
        """Add a parameter; arrays that share memory share one."""
        known = self.parameters.get(position, Parameter(position, dtype, False))
        if known.dtype != dtype:
            raise InternalError(f"{known.dtype} and {dtype} share an address")
        written = known.is_written or is_written
        self.parameters[position] = known._replace(is_written=written)

    def launch(self):
        self.for_each_team()
        shared = f"  __shared__ long long shared[{self.slots * self.parts_of_sum}];"
        body = "\n".join([*[shared] * bool(self.slots), *self.lines, ""])
        parameters, blocks = tuple(self.parameters.values()), self.geometry.blocks
        return Launch(body, parameters, (blocks, 1, 1), self.geometry.block)

    # --- lines

    def line(self, text):
        self.lines.append("  " * self.depth + text)

    @contextlib.contextmanager
    def block(self, head):
        self.line(f"{head} {{")
        self.depth += 1
        yield
        self.depth -= 1
        self.line("}")

    # --- loops

    def for_each_team(self):
        """A loop over the teams' indices, of which a block has several side by side."""
        count, index, lanes = self.nest.count, self.index, self.lanes
        start = f"({index})blockIdx.x * {lanes}"
        step = f"({index})gridDim.x * {lanes}"
        with self.block(
            f"for ({index} first = {start}; first < {count}; first += {step})"
        ):
            self.line(f"const int exists = first + {self.lane} < {count};")
            self.line(f"const {index} t = exists ? first + {self.lane} : {count - 1};")
            self.unravel("t", self.nest.teams)
            self.statements(self.nest.body)

    def unravel(self, linear, axes):
        """Declare the indices of axes, given their flat index in C order."""
        below = 1
        for axis in reversed(axes):
            text = linear if below == 1 else f"{linear} / {below}"
            if axis is not axes[0]:
                text = f"{text} % {axis.extent}"
            self.line(f"const {self.index} {axis.name} = {text};")
            below *= axis.extent

    def for_each_member(self, each):
        nest, index = self.nest, self.index
        start, stop = self.member, nest.extent
        if nest.parts is not None:
            low = f"{nest.parts.name} * {nest.chunk}"
            self.line(f"const {index} start = {low};")
            end = f"start + {nest.chunk}"
            if nest.chunk * nest.parts.extent > stop:
                end = f"{end} < {stop} ? {end} : {stop}"
            self.line(f"const {index} stop = {end};")
            start, stop = f"start + {self.member}", "stop"
        with self.block(f"for ({index} k = {start}; k < {stop}; k += {self.members})"):
            self.unravel("k", nest.members)
            self.statements(each.body)

    def guard(self, each):
        conditions = ["exists"]
        if each.is_first and self.geometry.team > 1:
            conditions.append(f"{self.member} == 0")
        conditions += [f"{axis.name} == 0" for axis in each.zeros]
        with self.block(f"if ({' && '.join(conditions)})"):
            self.statements(each.body)

    # --- statements

    def statements(self, body):
        for each in body:
            _STATEMENTS[type(each)](self, each)

    def new(self, scalar, qualifier="const "):
        """The declaration of a name for a scalar."""
        self.names[scalar] = name = f"v{next(self.numbers)}"
        return f"{qualifier}{register_type(scalar.dtype)} {name}"

    def value(self, scalar):
        if scalar.value is None:
            return self.names[scalar]
        return literal(scalar.value, scalar.dtype)

    def entry(self, access):
        """The entry of memory that an access refers to."""
        number = list(self.parameters).index(self.addresses[access.array])
        terms = [str(access.offset)] if access.offset or not access.strides else []
        bounds = dict(access.bounds)
        for axis, stride in access.strides:
            index, bound = axis.name, bounds.get(axis, range(0))
            index = f"({index} - {bound.start})" if bound.start else index
            index = index if bound.step == 1 else f"{index} / {bound.step}"
            terms.append(index if stride == 1 else f"{index} * {stride}")
        return f"p{number}[{' + '.join(terms)}]"

    def within(self, bounds):
        """The condition that indices are in their ranges."""
        conditions = []
        for axis, bound in bounds:
            name, stop = axis.name, bound[-1] + 1
            conditions += [f"{name} >= {bound.start}"] * (bound.start > 0)
            conditions += [f"{name} < {stop}"] * (stop < axis.extent)
            if bound.step > 1:
                conditions.append(f"({name} - {bound.start}) % {bound.step} == 0")
        return " && ".join(conditions) or "1"

    def load(self, each):
        text = self.entry(each.access)
        if name := half_name(each.out.dtype):
            text = f"float_of_{name}({text})"
        if each.access.bounds:
            zero = literal(each.out.dtype.type(0), each.out.dtype)
            text = f"{self.within(each.access.bounds)} ? {text} : {zero}"
        self.line(f"{self.new(each.out)} = {text};")

    def select(self, each):
        first, second = map(self.value, each.args)
        text = f"{self.within(each.bounds)} ? {first} : {second}"
        self.line(f"{self.new(each.out)} = {text};")

    def compute(self, each):
        args = [self.value(a) for a in each.args]
        dtypes = [a.dtype for a in each.args]
        text = scalar_function(each.function, args, dtypes, each.out.dtype)
        self.line(f"{self.new(each.out)} = {text};")

    def store(self, each):
        value = self.value(each.value)
        if name := half_name(each.value.dtype):
            value = f"{name}_of_float({value})"
        self.line(f"{self.entry(each.access)} = {value};")

    def begin(self, each):
        number = literal(identity_of(each.ufunc, each.out.dtype), each.out.dtype)
        self.line(f"{self.new(each.out, '')} = {number};")

    def fold(self, each):
        self.line(self.folded(each.out, each.ufunc, self.value(each.value)))

    def folded(self, out, ufunc, value):
        """The statement that adds a number to a sum."""
        name, dtype = self.names[out], out.dtype
        text = scalar_function(ufunc, [name, value], [dtype, dtype], dtype)
        return f"{name} = {text};"

    # --- sums of a team

    def combine(self, each):
        if self.geometry.team == 1:
            return
        if self.geometry.is_row:
            self.within_warps(each.sums)
            if self.geometry.team <= WARP:
                return
        at_once = SHARED // (8 * self.parts_of_sum)
        for start in range(0, len(each.sums), at_once):
            self.across_warps(each.sums[start : start + at_once])

    @property
    def parts_of_sum(self):
        """The partial sums of all teams of a block."""
        threads = self.geometry.lanes * self.geometry.team
        return threads // WARP if self.geometry.is_row else threads

    def within_warps(self, sums):
        """Combine the values of the members in each warp, for all of them."""
        width = min(self.geometry.team, WARP)
        with self.block(f"for (int m = 1; m < {width} && m < {self.members}; m *= 2)"):
            for n, (out, ufunc) in enumerate(sums):
                shuffled = f"__shfl_xor_sync({ALL}, {self.names[out]}, m)"
                self.line(f"const {register_type(out.dtype)} other{n} = {shuffled};")
                self.line(self.folded(out, ufunc, f"other{n}"))
        for out, ufunc in sums:
            if ufunc not in ("add", "multiply"):  # zeros may differ in sign
                name = self.names[out]
                self.line(f"{name} = __shfl_sync({ALL}, {name}, 0, {width});")

    def across_warps(self, sums):
        """Combine the values of the warps, or of the rows of threads, for all members."""
        arrays = [self.array(n, out) for n, (out, _) in enumerate(sums)]
        if self.geometry.is_row:
            width = self.geometry.team // WARP
            own, others = f"{self.lane} * {width} + ", "j"
            mine, each = f"{own}{self.member} / {WARP}", f"j * {WARP} < {self.members}"
            start, head = self.lane + f" * {width}", f"if ({self.member} % {WARP} == 0)"
        else:
            own, others = f"{self.lane} + ", f"j * {self.geometry.lanes}"
            mine = f"{self.member} * {self.geometry.lanes} + {self.lane}"
            each, start, head = f"j < {self.members}", self.lane, ""
        for array, (out, _) in zip(arrays, sums):
            self.line(f"{head} {array}[{mine}] = {self.names[out]};".strip())
        self.line("__syncthreads();")
        for array, (out, _) in zip(arrays, sums):
            self.line(f"{self.names[out]} = {array}[{start}];")
        with self.block(f"for (int j = 1; {each}; j++)"):
            for n, (array, (out, ufunc)) in enumerate(zip(arrays, sums)):
                type_ = register_type(out.dtype)
                self.line(f"const {type_} other{n} = {array}[{own}{others}];")
                self.line(self.folded(out, ufunc, f"other{n}"))
        self.line("__syncthreads();")

    def array(self, slot, out):
        """Shared memory with one number per warp or per thread."""
        self.slots = max(self.slots, slot + 1)
        start = f"shared + {slot * self.parts_of_sum}" if slot else "shared"
        return f"(({register_type(out.dtype)}*)({start}))"


_STATEMENTS = {
    Members: _Function.for_each_member,
    Guard: _Function.guard,
    Load: _Function.load,
    Compute: _Function.compute,
    Select: _Function.select,
    Store: _Function.store,
    Begin: _Function.begin,
    Fold: _Function.fold,
    Combine: _Function.combine,
}


def _largest_index(nest):
    """Return the largest number that the index arithmetic can reach."""
    width = nest.geometry.lanes * nest.geometry.blocks
    sizes = [nest.count + width, nest.extent + nest.chunk + nest.geometry.team]
    for _, access in nest.accesses():
        terms = [abs(s) * (a.extent - 1) for a, s in access.strides]
        sizes.append(access.offset + sum(terms))
    return max(sizes)
