"""Checkpoints: the values of objects that code creates, by their paths.

object_tree           the variables and states of objects, named by their paths
state_codec           states as JSON, with separate arrays
checkpoint_file       the file: arrays, states, and metadata
observed_containers   lists and dicts that report added items
snapshot              the values of objects at one moment
restoring             restored values, also for objects created later
checkpoint            `Checkpoint`, and readers of its files
termination           SIGTERM as a request that waits for the end of a step
checkpoint_manager    several checkpoints in a folder: which to keep, which to resume from
"""
