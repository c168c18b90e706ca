"""Loop nests: groups of array instructions as loops over axes, which targets print."""
