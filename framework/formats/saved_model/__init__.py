"""Traced functions in files: their graphs, including custom gradients.

symbolic_dims         sizes that are formulas, and the guards of a trace
values                plain values as JSON and back, exactly
constants             tensors that are part of graphs
saved_effects         prints, assertions and updates, rebuilt from their attributes
graph_writer          a graph as JSON, with separate constants
graph_checks          checks of the graphs of a file, beyond their JSON
graph_reader          a graph from the JSON of an untrusted file
saved_optimizers      optimizers that functions run, as configs, with state by number
loaded_function       loaded functions: the graph that serves given arguments
functions             a function in a group of a file
signature_functions   functions under the names of signatures
objects               a module with its attributes, and the loaded object
module_file           a `Module` with its functions in a file
"""
