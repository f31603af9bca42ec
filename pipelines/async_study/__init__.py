"""Says what saving in the background saves, by the size of the model."""
