"""From a job script to a measured, better job script. docs/tune.md says what it does and why."""
