"""Files of records, without the rest of the package: bytes in, bytes out.

crc32c       the checksum of TFRecord files
tf_records   TFRecord files, read and written
wire         the binary format of protocol buffers
lines        files of lines, of records of one length, and of comma-separated values
images       image files by Pillow, arrays of JPEG and WebP files
png          PNG files and arrays
gif          GIF files as arrays
bmp          BMP files as arrays
wav          sound in WAV files, read and written
columns      columns of comma-separated values as arrays
paths        local files by patterns
"""
