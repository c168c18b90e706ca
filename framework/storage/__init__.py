"""Atomic writes and untrusted files: HDF5, zip, JSON, safetensors, checksums.

atomic             replace a file by a new one, atomically
checksum           a digest of all bytes, in the block that HDF5 leaves to its user
file_objects       file objects for HDF5 and zip, with a progress bar
parallel_write     arrays written without HDF5 and hashed, on several cores
strict_json        JSON without duplicate keys, NaN, or unlimited depth
items              a location in an HDF5 file, and its attributes
checked_array      an array whose declaration is checked before it is read
global_heap        the texts of an HDF5 file, checked before HDF5 reads them
archives           untrusted tar and zip archives, unpacked
reader             groups and arrays of an untrusted HDF5 file
writer             groups and arrays of a new HDF5 file
zips               zip files, read and written
folders            folders of such files, read and written
safetensors_file   files of safetensors: mapped arrays, and shards
shard_index        the index of files in the same folder that belong together
suffixes           suffixes of other formats, which are rejected for our files
records            files of records: TFRecord, lines, CSV; protocol buffers
"""
