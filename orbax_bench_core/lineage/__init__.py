"""Lineage: manifests, verification, artifacts, and what a given path is."""
