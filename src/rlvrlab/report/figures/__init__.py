"""Figures for papers, drawn offline from a gathered document."""

from rlvrlab.report.figures.drawing import FORMATS, available, draw, figures_of, write_figures

__all__ = ["FORMATS", "available", "draw", "figures_of", "write_figures"]
