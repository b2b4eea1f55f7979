"""Event-driven, compiled simulator for whole data sets."""
