"""Traced functions: a graph, and what is made of it.

Here: the graph (`ir`), the tracer that writes it (`tracing`), the walk that runs it op by
op for whoever watches (`interpret`), and its gradient, traced as well (`differentiate`,
`custom_call`). In the folders, each of which builds on those before it:

    transforms   passes: a smaller graph of the same meaning
    planning     NumPy calls in place of ops, joined, on memory laid out beforehand
    inspection   what a graph and a plan are, do and cost, to look at
    control      branches and loops that depend on data, and Python inside of a trace
    functions    `tw.function`: which trace serves which arguments
"""
