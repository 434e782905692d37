"""What tests of several themes share."""
