"""Instructions: the steps of a program."""
