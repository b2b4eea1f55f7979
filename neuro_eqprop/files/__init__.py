"""Checked reading and writing of files; all other packages open files through this one."""
