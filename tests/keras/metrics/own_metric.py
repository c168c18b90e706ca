"""A metric of a user's own."""

import tapewright as tw
from tapewright import metrics


class CountNegatives(metrics.Metric):
    """How many values are below zero."""

    def __init__(self, name=None, dtype=None, scale=1.0):
        super().__init__(dtype, name)
        self.scale = scale
        self.total = self.add_weight(name="total")

    def update_state(self, values, sample_weight=None):
        below = tw.cast(tw.less(values, 0.0), "float32")
        self.total.assign_add(self.scale * tw.reduce_sum(below))

    def result(self):
        return self.total.read()
