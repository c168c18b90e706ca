"""Contractions as loops: their schedules, tiles and memory layouts."""
