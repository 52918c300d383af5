"""Speed profiles: how fast a model trains, by GPU type, number of GPUs and number of nodes.

>>> from trainmaster.model.job import Job, Request, Workload
>>> tables = {"v100": SpeedTable({4: {1: 14.0, 2: 7.0}}), "k80": SpeedTable({4: {1: 3.5}})}
>>> profile = Profile({ModelKey("LM", 80): tables}, ITERATIONS_PER_SECOND, reference="v100")
>>> job = Job("a", 0, 0, Request(gpus=4000), workload=Workload("LM", batch_size=80, iterations=1400))
>>> profile.speed(job, 1, "v100"), profile.speed(job, 2, "v100"), profile.speed(job, 1, "k80")
(1.0, 0.5, 0.25)
>>> profile.duration(job, "v100")
100000000000
"""

from trainmaster.profiles.loading import FORMATS, load_profile
from trainmaster.profiles.on_cluster import speed_on
from trainmaster.profiles.profile import ITERATIONS_PER_SECOND, RELATIVE, ModelKey, Profile
from trainmaster.profiles.table import SpeedTable
from trainmaster.profiles.writing import write_profile

__all__ = [
    "FORMATS",
    "ITERATIONS_PER_SECOND",
    "RELATIVE",
    "ModelKey",
    "Profile",
    "SpeedTable",
    "load_profile",
    "speed_on",
    "write_profile",
]
