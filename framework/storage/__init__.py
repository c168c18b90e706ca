"""Files that are whole or not at all, and read with care: HDF5, zips, JSON, the seal.

atomic         a new file in the place of the old one, at once
checksum       a digest of all bytes, in the block that HDF5 leaves to its user
progress       a bar for large files
window         a part of a file, as a file of its own
guarded_file   the file under HDF5 while it is written
parallel_write   arrays on their way to a file, hashed as they go
strict_json    JSON without duplicate keys, NaN, or endless depth
items          a place in an HDF5 file, and its attributes
checked_array   an array, looked at before it is read
global_heap    a look at HDF5's texts before HDF5 walks through them
reader         groups and arrays of a file that nobody vouches for
writer         groups and arrays of a new file
zips           zip files, read and written
file_kinds     what kind of file it is, told by the content
"""
