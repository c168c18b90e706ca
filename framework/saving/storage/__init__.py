"""Files that are whole or not at all, and read with care: HDF5, zips, JSON, the seal."""
