"""The simulation, and beside it a function for each step that it has closed: beside.py STEPS."""

import os
import subprocess
import sys
from pathlib import Path

from forebay import stage
from forebay.watch import Watch
from plot import plot

buffer, pictures = Path(os.environ["DW_JOB_STRIPED"]), Path("pictures")
pictures.mkdir(exist_ok=True)
watch = Watch(buffer)


@watch.on_close("step-*.nc")
def picture_out(closed):
    picture = closed.path.with_suffix(".png")
    plot(closed.path, picture)
    stage.stage_out(picture, pictures / picture.name)


with watch:
    subprocess.run([sys.executable, "simulation.py", buffer, sys.argv[1]], check=True)
sys.exit(watch.account.failed > 0)
