"""Appearance: the table of states, the palette, SVG and HTML, style sheets and scripts of the pages."""
