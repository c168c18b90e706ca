"""Traced functions in files: their graphs, with gradients of the user's own.

formulas       sizes that are formulas, and what a trace assumes of them
values         plain values as JSON and back, exactly
effects        prints and assertions, made again from what describes them
graph_writer   a graph as JSON, constants beside it
graph_reader   a graph from JSON that nobody vouches for
coverage       the traces that serve all sizes and ranks a signature allows
restored       functions that were loaded: which graph serves which arguments
functions      a function in a group of a file, and from there
"""
