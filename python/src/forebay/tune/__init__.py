"""From a job script to a measured, better job script. docs/explanation/tuner.md says what it does and why."""
