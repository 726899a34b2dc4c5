"""How fast and how lean Atoll is, beside a raw Python echo and workerd on the same machine in the same run.

`python -m bench` runs all and writes results.md; `python -m bench hello cold_start` runs some. Everything is driven by
HTTP against a real `atoll serve`. Numbers of different runs are not comparable; ratios within one are.
"""
