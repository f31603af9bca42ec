"""Captured baselines, and which of them count: a directory that is only ever added to.

    <registry>/<revision>/<capture id>/<point id>.json   every raw sample of one point
    <registry>/<revision>/<capture id>.json              what was captured; written last
    <registry>/promotions/<number>-<id>.json             what became the baseline, and when

No file is ever changed or replaced, so that writers cannot take anything from each other and need
neither locks nor preconditions, which not every file system and object store has. What the baseline
is follows from the promotions in their order.
"""
