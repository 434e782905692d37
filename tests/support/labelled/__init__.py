"""Labelled cases for the advice: runs made up call by call, their Darshan logs, and what is true of each."""
