"""Manifests: the facts about each binding that the rest of Atoll uses.

    manifest.py       the shape of a manifest
    every.py          the manifests of all bindings, and tables made from them
    config_fields.py  how fields of a project's config become entries of a deploy
    trigger_fields.py how a deploy asks for events

A binding is one folder, `atoll/bindings/<kind>/`, with a `manifest.py` in it. All code that needs the list of bindings
iterates over the manifests: settings, quotas, config files, types, commands, endpoints, metrics, documents. No other
file names a binding, so a new binding is a new folder and no line elsewhere.
"""
