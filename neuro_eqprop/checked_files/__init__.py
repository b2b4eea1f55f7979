"""Checked reading and writing of files: the only module that other packages open files through."""
