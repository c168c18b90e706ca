"""Arrays, names and links that are not as they should be, in all kinds of files."""

import os

import files
import h5py
import numpy as np
from cases import ANY, OK, case

# Arrays.


def array_case(name, every, kinds=files.KINDS, alone=None, **expected):
    """Decorates ``edit(file, kernel)``; ``alone``: what verify says of weights alone."""

    def decorate(edit):
        for kind in kinds:
            wanted = {"every": every, **expected}
            if kind == "weights":
                wanted["load_model"] = "no model|model_config"
                wanted["verify"] = alone or expected.get("verify", every)

            @case(name, (kind,), placed=True, **wanted)
            def _(path, kind):
                files.write(path, kind, edit=edit)

        return edit

    return decorate


@array_case("NaN weights", OK, facts={"kernel": "nan"})
def _(file, kernel):
    files.replace(file, kernel, np.full((4, 4), np.nan, "f4"))


@array_case("wrong shape", r"shape|\(4, 5\)", alone=ANY)
def _(file, kernel):
    files.replace(file, kernel, np.zeros((4, 5), "f4"))


@array_case("transposed shape", r"shape|\(16,\)", alone=ANY)
def _(file, kernel):
    files.replace(file, kernel, np.zeros(16, "f4"))


@array_case("no shape", "no array|holds|shape", verify="no array|holds")
def _(file, kernel):
    del file[kernel]
    file[kernel] = h5py.Empty("f4")


@array_case("int8 weights", "int8", alone=ANY)
def _(file, kernel):
    files.replace(file, kernel, np.zeros((4, 4), "i1"))


@array_case("complex weights", "complex", alone=ANY)
def _(file, kernel):
    files.replace(file, kernel, np.zeros((4, 4), "c8"))


@array_case("big-endian weights", OK, facts={"kernel": "same"})
def _(file, kernel):
    files.replace(file, kernel, file[kernel][()].astype(">f4"))


@array_case("float64 weights", OK, facts={"kernel": "same"})
def _(file, kernel):
    files.replace(file, kernel, file[kernel][()].astype("f8"))


@array_case("bfloat16 weights", OK, facts={"kernel": "rounded"})
def _(file, kernel):
    halves = (file[kernel][()].view("u4") >> 16).astype("u2")
    files.replace(file, kernel, halves.view("V2"))
    file[kernel].attrs["dtype"] = "bfloat16"


@array_case("compressed weights", OK, facts={"kernel": "same"})
def _(file, kernel):
    files.replace(file, kernel, file[kernel][()], compression="gzip")


@array_case("texts for weights", "holds|object|numbers|text")
def _(file, kernel):
    files.replace(file, kernel, np.array([["a"] * 4] * 4, "O"), dtype=files.TEXT)


@array_case("fixed texts for weights", "holds|numbers|text")
def _(file, kernel):
    files.replace(file, kernel, np.full((4, 4), b"abcd"))


@array_case("references for weights", "holds|object|numbers")
def _(file, kernel):
    links = np.array([[file.ref] * 4] * 4, h5py.ref_dtype)
    files.replace(file, kernel, links, dtype=h5py.ref_dtype)


@array_case("records for weights", "holds|numbers")
def _(file, kernel):
    files.replace(file, kernel, np.zeros((4, 4), [("a", "f4"), ("b", "i4")]))


@array_case("lists for weights", "holds|object|numbers")
def _(file, kernel):
    del file[kernel]
    file.create_dataset(kernel, (4, 4), dtype=h5py.vlen_dtype("f4"))


@array_case("a group for weights", "no array|group|a group|hold", alone=ANY)
def _(file, kernel):
    del file[kernel]
    file.create_group(kernel)


@array_case("a type for weights", "neither|no array")
def _(file, kernel):
    del file[kernel]
    file[kernel] = np.dtype("f4")


@array_case("a missing array", "kernel|vars|weights|holds", alone=ANY)
def _(file, kernel):
    del file[kernel]


@array_case("a missing layer", "first|dense|layers", alone=ANY)
def _(file, kernel):
    del file[kernel.rpartition("/")[0]]


@array_case("an extra array", "2|3|extra|holds|weights", kinds=("weights", "keras"),
            alone=ANY)  # fmt: skip
def _(file, kernel):
    file["layers/dense/vars/2"] = np.zeros(3, "f4")


@array_case("an extra array in the list", "3|extra|holds|weights", kinds=("h5",),
            alone=ANY)  # fmt: skip
def _(file, kernel):
    group = file["model_weights/first"]
    group["first/more"] = np.zeros(3, "f4")
    names = ["first/kernel", "first/bias", "first/more"]
    group.attrs.create("weight_names", names, dtype=files.TEXT)


@array_case("dots in a name", "leads out|\\.\\.", kinds=("h5",))
def _(file, kernel):
    names = ["../../../outside", "first/bias"]
    file["model_weights/first"].attrs.create("weight_names", names, dtype=files.TEXT)


@array_case("a root in a name", "leads out|outside|name", kinds=("h5",))
def _(file, kernel):
    names = ["/model_weights/second/second/kernel", "first/bias"]
    file["model_weights/first"].attrs.create("weight_names", names, dtype=files.TEXT)


@array_case("dots in the name of a layer", "leads out|\\.\\.", kinds=("h5",))
def _(file, kernel):
    names = ["../model_weights/first", "second", "third"]
    file["model_weights"].attrs.create("layer_names", names, dtype=files.TEXT)


@array_case("names that are no texts", "text", kinds=("h5",))
def _(file, kernel):
    file["model_weights"].attrs["layer_names"] = np.arange(3)


@array_case("names that are no UTF-8", "UTF-8|text", kinds=("h5",))
def _(file, kernel):
    file["model_weights"].attrs["layer_names"] = np.array([b"\xff\xfe", b"a", b"b"])


@array_case("no names", "layer_names", kinds=("h5",))
def _(file, kernel):
    del file["model_weights"].attrs["layer_names"]


@array_case("a name of a group that is no UTF-8", "UTF-8", load_weights=ANY)
def _(file, kernel):
    name = b"model_weights/\xff" if "model_weights" in file else b"layers/\xff"
    h5py.h5g.create(file.id, name)


@array_case("swapped layer names", "order|first|second", kinds=("h5",))
def _(file, kernel):
    names = ["second", "first", "third"]
    file["model_weights"].attrs.create("layer_names", names, dtype=files.TEXT)


@array_case("swapped names of groups", "first|second", kinds=("weights", "keras"),
            alone=ANY)  # fmt: skip
def _(file, kernel):
    file["layers/dense/vars"].attrs["name"] = "second"
    file["layers/dense_1/vars"].attrs["name"] = "first"


@array_case("a soft link", "link")
def _(file, kernel):
    del file[kernel]
    file[kernel] = h5py.SoftLink("/somewhere")


@array_case("an external link", "link")
def _(file, kernel):
    del file[kernel]
    file[kernel] = h5py.ExternalLink("/etc/passwd", "/x")


@array_case("an external link to a pipe", "link")
def _(file, kernel):
    del file[kernel]
    file[kernel] = h5py.ExternalLink(os.environ["PIPE"], "/x")


@array_case("a link for a group", "link")
def _(file, kernel):
    group = kernel.rpartition("/")[0]
    del file[group]
    file[group] = h5py.ExternalLink("/etc/passwd", "/x")


@array_case("external data", "other files|outside", kinds=("h5", "weights"))
def _(file, kernel):
    del file[kernel]
    file.create_dataset(kernel, (4, 4), "f4", external=[("/etc/passwd", 0, 64)])


@array_case("virtual data", "other files|outside", kinds=("h5", "weights"))
def _(file, kernel):
    del file[kernel]
    layout = h5py.VirtualLayout((4, 4), "f4")
    layout[:] = h5py.VirtualSource(os.environ["PIPE"], "x", shape=(4, 4))
    file.create_virtual_dataset(kernel, layout)


@array_case("a shape of 4 TB", "shape|declares|stores")
def _(file, kernel):
    files.bomb(file, kernel, (1 << 20, 1 << 20))


@array_case("a shape of 3.6 GiB with nothing stored", "shape|declares|stores")
def _(file, kernel):
    files.bomb(file, kernel, (31_000, 31_000))


@array_case("a shape beyond 64 bits", "shape|declares|stores|large|array")
def _(file, kernel):
    files.bomb(file, kernel, (1 << 62, 1 << 62))


@array_case("2 GiB of zeros compressed", "shape|declares|stores")
def _(file, kernel):
    del file[kernel]
    options = {"chunks": (1 << 20,), "compression": "gzip"}
    file.create_dataset(kernel, (1 << 29,), "f4", **options)[: 1 << 20] = 0


@array_case("a bomb elsewhere in the file", ANY, verify="declares|stores")
def _(file, kernel):
    file.create_dataset("bomb/x", (1 << 20, 1 << 20), "f4", chunks=(64, 64))


@array_case("hard links in a circle", ANY)
def _(file, kernel):
    file[kernel.rpartition("/")[0]]["again"] = file["/"]


@array_case("hard links in a circle elsewhere", ANY)
def _(file, kernel):
    file["more/again"] = file["/"]
    file["more/twice"] = file["more"]


@array_case("one array for two layers", ANY)
def _(file, kernel):
    other = kernel.replace("first", "second").replace("dense", "dense_1")
    del file[other]
    file[other] = file[kernel]


@array_case("300 groups deep", ANY)
def _(file, kernel):
    file.create_group("/".join(["deep"] * 300))


@array_case("an array in the place of a group", "group|has no array", alone=ANY)
def _(file, kernel):
    group = kernel.rpartition("/")[0]
    del file[group]
    file[group] = np.zeros(3, "f4")


@array_case("an array in the place of all groups", "group", alone=ANY)
def _(file, kernel):
    group = kernel.partition("/")[0]
    del file[group]
    file[group] = np.zeros(3, "f4")


@array_case("an array in the place of our own group", ANY)
def _(file, kernel):
    file["tapewright"] = np.zeros(3, "f4")


@array_case("an array in the place of the optimizer's group", ANY)
def _(file, kernel):
    file["optimizer/vars"] = np.zeros(3, "f4")


@array_case("an array beside the groups", ANY)
def _(file, kernel):
    file["stray"] = np.zeros(3, "f4")


@array_case("an unknown filter", "filter|read")
def _(file, kernel):
    data = file[kernel][()]
    del file[kernel]
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk((4, 4))
    plist.set_filter(32_765, h5py.h5z.FLAG_OPTIONAL, (1,))
    space = h5py.h5s.create_simple((4, 4))
    of = h5py.h5d.create(
        file.id, kernel.encode(), h5py.h5t.IEEE_F32LE, space, dcpl=plist
    )
    of.write_direct_chunk((0, 0), data.tobytes())
