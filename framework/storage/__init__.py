"""Files that are whole or not at all, and untrusted files: HDF5, zip, JSON, checksums.

atomic           put a new file in the place of the old one, at once
checksum         a digest of all bytes, in the block that HDF5 leaves to its user
file_objects     file objects under HDF5 and zip, with a progress bar
parallel_write   arrays written past HDF5 and hashed, on several cores
strict_json      JSON without duplicate keys, NaN, or unlimited depth
items            a place in an HDF5 file, and its attributes
checked_array    an array whose declaration is checked before it is read
global_heap      the texts of an HDF5 file, checked before HDF5 reads them
archives         untrusted tar and zip archives, unpacked
archives         untrusted tar and zip archives, unpacked
reader           groups and arrays of an untrusted HDF5 file
writer           groups and arrays of a new HDF5 file
zips             zip files, read and written
folders          folders of such files, read and written
suffixes         suffixes of other formats, which a file of ours must not have
records          files of records: TFRecord, lines, CSV; protocol buffers
"""
