"""Plays the jobs of a site on a shared pool of burst buffers, to find what pool and policy it needs."""
