"""Checkpoints: the values of objects that are made by code, by their paths.

object_tree          the variables and states of objects, by the way to them
state_codec          states as JSON, with arrays beside
checkpoint_file      the file: arrays, states, and metadata
observed_containers   lists and dicts that notice what is put into them
snapshot             the values of objects at one moment
restoring            values on their way back, also into objects made later
checkpoint           `Checkpoint`, and looking into its files
termination          SIGTERM as a request that waits for the end of a step
checkpoint_manager   many checkpoints in a folder: which to keep, which to go on from
"""
