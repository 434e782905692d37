"""Charts as SVG: made once, coloured for a page (light and dark) or for paper."""
