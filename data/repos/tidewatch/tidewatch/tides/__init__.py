"""Harmonic tide models."""

from tidewatch.tides.constituents import CONSTITUENTS, Constituent, get_constituent
from tidewatch.tides.extrema import Extremum, find_extrema
from tidewatch.tides.model import TideModel, fit_model

__all__ = ["CONSTITUENTS", "Constituent", "Extremum", "TideModel", "find_extrema",
           "fit_model", "get_constituent"]
