"""Branches and loops that depend on data, and Python inside of traced functions.

Public functions
    cond          cond, switch_case, case
    while_loop    while_loop, and the number of its steps if that is known while tracing
    map_fn        map_fn, scan, foldl, foldr
    tensor_array  TensorArray
    host_calls    py_function, numpy_function, and their node
    printing      print, Assert

Their implementation
    regions       functions traced into regions
    region_node   RegionNode, the base class of nodes with regions
    cond_node     Cond, loop_node: Loop
    recording     records of such nodes on tapes
    loop_source   the source of a loop on arrays; row_updates: writes in place
    effects       side effects
"""
