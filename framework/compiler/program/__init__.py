"""From a graph to the function that replays it: lowered, joined, laid out, written."""
