"""HTTP exchanges that all wires of model servers share."""
