"""Thread nests: groups of instructions on the threads of a GPU."""
