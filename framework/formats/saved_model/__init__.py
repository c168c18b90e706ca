"""Traced functions in files: their graphs, with gradients of the user's own.

symbolic_dims         sizes that are formulas, and what a trace assumes of them
values                plain values as JSON and back, exactly
constants             tensors that are part of graphs
saved_effects         prints, assertions and updates, made again from what describes them
graph_writer          a graph as JSON, constants beside it
graph_checks          what a graph of a file must be, beyond its form
graph_reader          a graph from JSON that nobody vouches for
optimizers            optimizers that functions run, as configs, with state by number
loaded_function       functions that were loaded: which graph serves which arguments
functions             a function in a group of a file, and from there
signature_functions   functions under the names of signatures
objects               a module with all that it holds, and an object like it
module_file           a `Module` with its functions in a file
"""
