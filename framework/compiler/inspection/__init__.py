"""Print, count and time graphs and executables."""
