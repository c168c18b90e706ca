"""Names that would be code, take the place of something else, or steer a terminal."""

from cases import ANY, OK
from config_cases import config_case
from own import MODEL, TRACE, change_json, graph_case, objects_case, own_case

STEERING = "\x1b]0;title\x07\x1b[2J"


def attribute_case(name):
    """A loaded object must not get an attribute of this name."""

    @objects_case(f"own, {name} for an attribute", "attribute")
    def _(objects):
        variable = next(
            n for n, node in enumerate(objects["nodes"]) if "variable" in node
        )
        objects["nodes"][objects["root"]]["attributes"][name] = variable


OURS = "variables _tw_find _tw_pending_values _tw_saved_kind __call__ __dict__"
for each in OURS.split():
    attribute_case(each)


@objects_case("own, a method of Python's for an attribute", OK)
def _(objects):
    objects["nodes"][objects["root"]]["attributes"]["__reduce__"] = 1


@graph_case("own, a graph named as a keyword", OK)
def _(graph):
    graph["name"] = "class"


@graph_case("own, a graph named as a statement", ANY)
def _(graph):
    graph["name"] = "f(): pass\nimport hostile_module"


@graph_case("own, a graph named in two lines of Unicode", "short string")
def _(graph):
    graph["name"] = "f\u2028import hostile_module"


@graph_case("own, a loop named as a statement", "identifier")
def _(graph):
    node = next(node for node in graph["nodes"] if "loop" in node)
    node["loop"] = "f(): pass; import hostile_module"


@graph_case("own, words for a number", ".")
def _(graph):
    node = next(node for node in graph["nodes"] if "loop" in node)
    node["settings"]["maximum"] = "1 or __import__('hostile_module')"


@graph_case("own, an attribute that is code", ".")
def _(graph):
    node = next(node for node in graph["nodes"] if node.get("op") == "reduce_sum")
    node["attributes"]["axis"] = "__import__('hostile_module')"


@own_case("own, a result named as code", MODEL, ".")
def _(file):
    def change(call):
        code = "__import__('hostile_module')"
        call["structure"] = {"namedtuple": [code, [code], [0]]}

    change_json(file, "functions/0/call_0@call", change)


@own_case("own, prints to a file", MODEL, "stdout")
def _(file):
    def change(graph):
        values = [["parts", []], ["output_stream", "file:///tmp/x"]]
        values += [["sep", ""], ["end", ""], ["summarize", 3]]
        node = {"effect": "print", "in": [], "attributes": {"dict": values}}
        graph["nodes"].append(node)

    change_json(file, f"{TRACE}@graph", change)


@config_case("a name that steers the terminal", ANY, load_weights=ANY, verify=ANY)
def _(config, kind):
    config["config"]["layers"][1]["config"]["name"] = STEERING


@config_case("a class that steers the terminal", r"\\x1b\]0;title\\x07", verify=ANY)
def _(config, kind):
    config["config"]["layers"][1]["class_name"] = STEERING


@config_case("a name of 1 MB", ANY, load_weights=ANY, verify=ANY)
def _(config, kind):
    config["config"]["layers"][1]["config"]["name"] = "a" * (1 << 20)


@config_case("a class of 1 MB", r"^.{1,6000}$", verify=ANY)
def _(config, kind):
    config["config"]["layers"][1]["class_name"] = "a" * (1 << 20)
