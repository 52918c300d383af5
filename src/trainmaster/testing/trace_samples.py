"""One small trace of each format, made up, laid out as published: for tests and for trying things.

>>> from pathlib import Path; import tempfile
>>> from trainmaster.traces import load_trace
>>> with tempfile.TemporaryDirectory() as folder:
...     trace = load_trace(SAMPLES["slurm"].write(Path(folder)))
>>> trace.format, len(trace), trace.dropped
('slurm', 4, {'duration_not_positive': 1, 'zero_gpus': 1})
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final


@dataclass(frozen=True)
class Sample:
    """Texts of a trace.

    Args:
        name: file name of the trace itself.
        text: its content.
        beside: content of the files that lie beside it, by name.
        rows: number of rows (or records) that describe a job.
    """

    name: str
    text: str
    rows: int
    beside: dict[str, str] = field(default_factory=dict)

    def write(self, folder: Path, text: str | None = None) -> Path:
        """Write all files into `folder` (the trace with another `text`, if given); returns its path."""
        for name, content in self.beside.items():
            (folder / name).write_text(content, encoding="utf-8")
        path = folder / self.name
        path.write_text(self.text if text is None else text, encoding="utf-8")
        return path


_NORMALIZED: Final = """\
job_id,submit_s,duration_s,num_gpus,tenant,user,status,queue_s,requested_walltime_s,priority,min_gpus,max_gpus,\
preemptible,depends_on,deadline_s,deadlines_s,deadline_values,model,batch_size,iterations,gpu_type,num_nodes,\
job_class,num_cpus
b,10.5,3600,8,vision,ann,completed,12,7200,2,4,16,true,,9000,,,resnet50,256,1000,V100|A100,1,strict,96
a,0,1800.0,0.46,speech,bob,failed,,,,,,false,,,,,,,,,,best,4
c,20,,2,vision,ann,,,,,,,,a;b,,100-200,10-2.5,bert,,5e3,,,soft,
d,20,60,0,vision,ann,,,,,,,,,,,,,,,,,,
"""

_PHILLY: Final = """\
[
 {"status": "Pass", "vc": "ee9e8c", "jobid": "application_1506638472019_14199", "user": "ce2f4c",
  "submitted_time": "2017-10-07 01:11:39",
  "attempts": [
   {"start_time": "2017-10-07 01:12:09", "end_time": "2017-10-07 01:13:23",
    "detail": [{"ip": "m47", "gpus": ["gpu0", "gpu1", "gpu2", "gpu3", "gpu4", "gpu5", "gpu6", "gpu7"]}]},
   {"start_time": "2017-10-07 01:13:30", "end_time": "2017-10-07 02:13:30",
    "detail": [{"ip": "m51", "gpus": ["gpu0", "gpu1", "gpu2", "gpu3", "gpu4", "gpu5", "gpu6", "gpu7"]}]}]},
 {"status": "Killed", "vc": "11cb48", "jobid": "application_1506638472019_2", "user": "a1b2c3",
  "submitted_time": "2017-11-05 00:00:00",
  "attempts": [
   {"start_time": "2017-11-05 00:30:00", "end_time": "2017-11-05 03:30:00",
    "detail": [{"ip": "m51", "gpus": ["gpu0"]}, {"ip": "m47", "gpus": ["gpu2"]}]},
   {"start_time": "2017-11-05 04:00:00", "end_time": "None", "detail": []}]},
 {"status": "Failed", "vc": "11cb48", "jobid": "application_1506638472019_3", "user": "a1b2c3",
  "submitted_time": "2017-10-08 00:00:00", "attempts": []},
 {"status": "Failed", "vc": "11cb48", "jobid": "application_1506638472019_4", "user": "a1b2c3",
  "submitted_time": "2017-10-08 00:00:00",
  "attempts": [{"start_time": null, "end_time": null, "detail": [{"ip": "m51", "gpus": ["gpu0"]}]}]}
]
"""

_MACHINES: Final = "machineId,number of GPUs, single GPU mem\nm47,8, 24GB\nm51,2, 12GB\n"

_HELIOS: Final = """\
job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
71,u1,vc1,8,64,1,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:31,2020-06-09 19:41:31,3600,30
70,u2,vc2,16,128,2,CANCELLED,2020-06-09 18:40:00,2020-06-09 18:40:00,2020-06-10 18:40:00,86400,0
72,u2,vc2,0,4,1,FAILED,2020-06-09 18:42:00,2020-06-09 18:42:00,2020-06-09 18:43:00,60,0
73,u2,vc2,1,4,1,CANCELLED,2020-06-09 18:43:00,None,None,0,0
"""

_ACME: Final = """\
job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time
5778432,u5907,1,8,128,Other,FAILED,2023-03-01 00:18:22+08:00,2023-03-01 00:18:54+08:00,\
2023-03-01 00:20:51+08:00,117,32,936.0
5778469,u5907,1,8,128,Eval,COMPLETED,2023-03-01 00:23:58+08:00,2023-03-01 00:24:11+08:00,\
2023-03-01 01:09:04+08:00,2693,13,21544.0
"""

_PAI_JOBS: Final = """\
j1,i1,u1,Terminated,1000.0,5000.0
j2,i2,u2,Failed,900.0,1900.0
j3,i3,u2,Running,1200.0,
j4,i4,u1,Terminated,1300.0,1400.0
j5,i5,u1,Waiting,1400.0,
"""

_PAI_TASKS: Final = """\
j1,ps,1.0,Terminated,1010.0,5000.0,600.0,30.0,,
j1,worker,4.0,Terminated,1020.0,5000.0,600.0,30.0,50.0,V100
j2,tensorflow,1.0,Failed,900.0,1900.0,100.0,10.0,25.0,MISC
j3,tensorflow,1.0,Running,1300.0,,100.0,10.0,100.0,T4
j4,worker,1.0,Terminated,1300.0,1400.0,100.0,10.0,,
"""

_OPENB: Final = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
openb-pod-0000,12000,16384,1,1000,,LS,Running,0,12537496,0
openb-pod-0001,6000,12288,1,460,V100M32|T4,BE,Succeeded,427061,12902960,427071
openb-pod-0002,12000,24576,0,0,,LS,Running,1558381,12902960,1558381
openb-pod-0003,12000,24576,8,1000,,LS,Pending,1558382,12902960,
"""

_ITP: Final = """\
job_id,submission_time,num_iteration,model_name,deadline,batch_size,num_gpu,duration
6b2d9ccc-6279-403c-e1a2-cfe7810d5c57,16566,40285,bert,21347,64,4,3890
7b2d9ccc-6279-403c-e1a2-cfe7810d5c57,16000,100,vgg16,17000,256,1,500
"""

_GAVEL: Final = (
    "ResNet-50 (batch size 32)\tcd %s/imagenet && python3 main.py\t--batches\t1\t557447\t7858722.000000\t1\n"
    "LM (batch size 80)\tcd %s/lm && python main.py\t--steps\t1\t442767\t7858000.500000\t2\n"
    "A3C\tcd %s/rl && python3 main.py\t--max-steps\t0\t307\t7874425.000000\t0\n"
)

_MURI: Final = """\
job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time,\
resource_time_0,resource_time_1,resource_time_2,priority
0,8,0,10956,gpt2,4,5095000,91000,437,0.6,419,49,0
1,32,1534500,1463,vgg16,16,281000,28000,214,82,75,66,1
"""

_CHRONUS: Final = """\
job_id,user,num_gpu,submit_time,iterations,model_name,duration,interval,expect_time_list,expect_value_list,\
best_effort,job_type
0,vc_6214e9,1,8555,5049,vgg16,747,14,1105,10,0,strict
26780,vc_11cb48,1,3893,1136,vgg16,72,19,3893,10,1,best
26781,vc_6214e9,4,17640,9081,resnet101,30,9,60-80-130-190,10-8-5-2,0,soft
195,vc_0e4a51,0,12134,8081,inception_v3,65,8,166,10,0,strict
"""

_TIRESIAS: Final = """\
job_id,num_gpu,submit_time,iterations,model_name,duration,interval
1,1,0,606,vgg19,164,0
2,8,30,133,vgg11,147,30
"""

_SLURM: Final = """\
JobID|User|Account|Partition|Submit|Start|End|State|Timelimit|ReqTRES|AllocTRES|ElapsedRaw|NNodes
4711|ann|vision|gpu|2024-03-05T10:00:00|2024-03-05T10:10:00|2024-03-05T12:10:00|COMPLETED|1-00:00:00|\
billing=8,cpu=8,gres/gpu:a100=2,gres/gpu=2,mem=64G,node=1|billing=8,cpu=8,gres/gpu=2,gres/gpu:a100=2,node=1|7200|1
4711.batch|||gpu|2024-03-05T10:10:00|2024-03-05T10:10:00|2024-03-05T12:10:00|COMPLETED|||cpu=8,gres/gpu=2|7200|1
4712_3|bob|speech|gpu|2024-03-05T09:00:00|2024-03-05T09:00:00|2024-03-05T09:30:30|CANCELLED by 1001|\
UNLIMITED|cpu=8,gres/gpu=16,node=2||1830|2
4713|bob|speech|gpu|2024-03-05T11:00:00|Unknown|Unknown|PENDING|Partition_Limit|gres/gpu=1||0|1
4714|bob|speech|cpu|2024-03-05T11:00:00|2024-03-05T11:00:00|2024-03-05T11:00:30|COMPLETED|01:30:00|cpu=4||30|1
4715|ann|vision|gpu|2024-03-05T11:00:00|2024-03-05T11:00:01|Unknown|RUNNING|30:00||gres/gpu:h100=4|600|1
4716|ann|vision|gpu|2024-03-05T11:00:00|2024-03-05T11:00:01|2024-03-05T11:00:02|FAILED|45|gres/gpu=1||1|1
"""

_SWF: Final = """\
; Version: 2.2
; Computer: made up
; MaxProcs: 64

  1  100  10  3600  16 3500.0 -1  16  7200  -1  1  3  7  1  2  1  -1  -1
  2  160  -1  60  8  -1  -1  -1  -1  -1  5  4  7  1  2  1  1  30
  3  161  0  -1  8  -1  -1  8  600  -1  0  4  7  1  2  1  -1  -1
"""

SAMPLES: Final[dict[str, Sample]] = {
    "csv": Sample("week.csv", _NORMALIZED, 4),
    "philly": Sample("cluster_job_log", _PHILLY, 4, {"cluster_machine_list": _MACHINES}),
    "helios": Sample("cluster_log.csv", _HELIOS, 4),
    "acme": Sample("trace_seren.csv", _ACME, 2),
    "pai": Sample("pai_job_table.csv", _PAI_JOBS, 5, {"pai_task_table.csv": _PAI_TASKS}),
    "openb": Sample("openb_pod_list_default.csv", _OPENB, 4),
    "itp": Sample("cluster02.csv", _ITP, 2),
    "gavel": Sample("103959.trace", _GAVEL, 3),
    "muri": Sample("cluster_trace.csv", _MURI, 2),
    "chronus": Sample("trace_job_Philly_MIX2.csv", _CHRONUS, 4),
    "tiresias": Sample("60_job.csv", _TIRESIAS, 2),
    "slurm": Sample("sacct.txt", _SLURM, 6),
    "swf": Sample("made_up.swf", _SWF, 3),
}
"""A sample of each built-in format, by its name."""
