"""The small models that pages train or load, and the results that they show."""
