"""Data set files: manifests, downloads, checksums."""
