"""Batch jobs of one user, in a directory of their own on the file system that the hosts share."""

import json
import os

from support.bed_processes import user_of
from support.slurm_cluster import NODES

ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")
DW = "#DW jobdw type=scratch access_mode=striped capacity=256MiB"
STAGE_OUT = "#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination=%d/results"


class Batch:
    def __init__(self, cluster, user, name):
        self.cluster = cluster
        self.user = user
        self.directory = cluster.shared / name
        self.directory.mkdir()
        self.state = self.directory / "state"
        self.results = self.directory / "results"
        self.jobs = []
        self.before = []
        self.before = self.leftovers()  # what another test could not clear away is its own failure
        if user is not None:
            os.chown(self.directory, user, user)

    def run(self, *words, node=None, check=True, **environment):
        """A command of the user in the directory."""
        words = ["env", "-C", self.directory, *words]
        return self.cluster.run(words, node, self.user, check, FOREBAY_STATE=str(self.state), **environment)

    def script(self, body, *directives, name="job.sh"):
        lines = ["#!/bin/bash", *directives, body, ""]
        path = self.directory / name
        path.write_text("\n".join(lines))
        path.chmod(0o755)

    def submit(self, *options, name="job.sh"):
        said = self.run("sbatch", "--parsable", "-o", "said", "-e", "complained", *options, name)
        self.jobs.append(said.stdout.strip())
        return self.jobs[-1]

    def end(self):
        """Leaves the hosts to the next test."""
        if self.jobs:
            self.run("scancel", "--signal=KILL", "--full", *self.jobs, check=False)
            for job in self.jobs:
                self.run("scancel", job, check=False)
                self.wait(job)

    def wait(self, job, *states):
        """Until the job is in one of these states, or has ended; returns its state."""
        seen = []

        def reached():
            state = self.show_job(job)["JobState"]
            if seen[-1:] != [state]:
                seen.append(state)
            return state in (states or ENDED)

        self.cluster.wait(reached, seen)
        return seen[-1]

    def show_job(self, job):
        text = self.run("scontrol", "-o", "show", "job", job).stdout
        return dict(word.split("=", 1) for word in text.split() if "=" in word)

    def wait_for_file(self, name):
        self.cluster.wait((self.directory / name).exists, f"there never was {name}")

    def stdout_text(self):
        return (self.directory / "said").read_text()

    def stderr_text(self):
        return (self.directory / "complained").read_text()

    def arrived(self):
        return sorted(path.name for path in self.results.iterdir()) if self.results.exists() else []

    def status(self, node):
        return json.loads(self.run("forebay", "status", "--json", node=node).stdout)

    def leftovers(self):
        """What this user's jobs still have in the stores of the hosts and in their /tmp."""
        stores = [self.cluster.top / "hosts" / name for name in NODES]
        found = [path for store in stores for part in ("nvme", "tmp") for path in (store / part).glob("forebay-*")]
        # Where all hosts see the cluster's own directory again, it has a name that begins so too.
        found = [path for path in found if path not in self.before and path.name != self.cluster.top.name]
        return [path for path in found if user_of(path) == (self.user or 0)]
