"""From a graph to the function that replays it: lowering, fusion, memory, code."""
