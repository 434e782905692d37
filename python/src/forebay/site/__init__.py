"""Jobs with burst buffers under Slurm, as their users may see them."""
