"""Libraries: traced functions as machine code for C programs, without Python.

export        `export_library`
driver        the functions that a C program calls, and the memory that they need
header        the C header
weights_file  values of variables in a file beside the library
"""
