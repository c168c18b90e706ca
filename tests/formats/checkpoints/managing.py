"""Checkpoints under a manager."""

import tapewright as tw


def checkpoint(value=1.0):
    return tw.train.Checkpoint(v=tw.Variable(value))
