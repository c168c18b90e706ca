"""Branches and loops that depend on data, and Python inside of traced functions.

What users call
    cond          cond, switch_case, case
    while_loop    while_loop, and the number of its steps if that is known while tracing
    map_fn        map_fn, scan, foldl, foldr
    tensor_array  TensorArray
    host_calls    py_function, numpy_function, and their node
    printing      print, Assert

What they are written with
    regions       functions traced into regions
    region_node   RegionNode, all that nodes with regions have in common
    cond_node     Cond, loop_node: Loop
    recording     such a node under tapes
    loop_source   the function that runs a loop on arrays; row_updates: in place
    effects       Python that runs in each replay
"""
