"""The HTML report of a run: one self-contained page with interactive charts.

A chart belongs to a section. To add one, write a module in `sections` and list it there.
"""
