#!/bin/bash
# flux: -N1 -n4
# flux: -t 10m
# flux: --job-name=btio
flux run -n4 ./btio inputbt.data
