"""Benchmarks: speed and memory of Atoll, compared with a raw Python echo server and workerd in the same run.

`python -m bench` runs all benchmarks and writes results.md; `python -m bench hello cold_start` runs two of them. Every
benchmark sends HTTP to a real `atoll serve`. Compare ratios within one run: figures of different runs are not
comparable.
"""
