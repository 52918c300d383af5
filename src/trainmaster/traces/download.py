"""Fetch published traces: public addresses, checksums, resumed where a connection broke."""

from __future__ import annotations

import hashlib
import http.client
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from trainmaster._version import __version__
from trainmaster.model.errors import InputError, OutputError, TrainmasterError, nearest

TIMEOUT_S: Final = 30.0
"""A server that says nothing for so long has failed once."""

TRIES: Final = 5
"""Failures in a row, without one new byte between them, after which we give up."""

_BLOCK: Final = 1 << 18
_BUSY: Final = frozenset((408, 425, 429, 500, 502, 503, 504))
"""Statuses that may pass; every other error status is final."""

Progress = Callable[[str, int, int | None], None]
"""Told the file's name, the bytes that are there, and how many there will be (None = unknown)."""


class DownloadError(TrainmasterError):
    """A file could not be fetched, or what came is not what was published (exit code 1)."""


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """One file to fetch.

    Args:
        url: its public address; the last part is its name here.
        size: bytes, where published.
        sha256: checksum as 64 hexadecimal digits, where published.
    """

    url: str
    size: int | None = None
    sha256: str | None = None

    @property
    def name(self) -> str:
        """Name of the local file."""
        return self.url.rsplit("/", 1)[-1]


@dataclass(frozen=True, slots=True)
class Dataset:
    """A published trace.

    Args:
        name: as on the command line.
        about: what it is, in one line.
        terms: licence or terms of use, as the publisher states them.
        files: what belongs to it.
        then: commands that unpack and replay it, run in the folder it was fetched to.
    """

    name: str
    about: str
    terms: str
    files: tuple[RemoteFile, ...]
    then: tuple[str, ...]


_PAI: Final = "https://aliopentrace.oss-cn-beijing.aliyuncs.com/v2020GPUTraces/"
_ALIBABA: Final = "https://raw.githubusercontent.com/alibaba/clusterdata/master/"
_ACME: Final = "https://huggingface.co/datasets/Qinghao/AcmeTrace/resolve/main/data/job_trace/"

_ALL: Final = (
    Dataset(
        name="philly",
        about="Microsoft Philly 2017: 117,325 jobs, 137 days, 2,490 GPUs",
        terms="given as is; cite Jeon et al., ATC '19",
        files=(
            RemoteFile(
                "https://github.com/msr-fiddle/philly-traces/raw/master/trace-data.tar.gz",
                1_055_988_361,
                "2037ccf63a725a02be718b0e1aeee6142c90b7f62d0d849295120e9f6ba13d2c",
            ),
        ),
        then=(
            "tar -xzf trace-data.tar.gz",
            "trainmaster simulate trace-data/cluster_job_log --nodes 310 --gpus-per-node 8 --policy srtf",
        ),
    ),
    Dataset(
        name="helios",
        about="SenseTime Helios 2020: clusters Earth, Saturn, Uranus, Venus, 6 months",
        terms="CC BY 4.0; cite Hu et al., SC '21",
        files=(
            RemoteFile(
                "https://raw.githubusercontent.com/S-Lab-System-Group/HeliosData/master/data.zip",
                36_437_672,
                "3d22a5f6c0ae669e2fcbfe4200fa9c48664507bc397c677bad8f085222c032ac",
            ),
        ),
        then=(
            "unzip data.zip",
            "trainmaster simulate data/Venus/cluster_log.csv --nodes 133 --gpus-per-node 8 --policy srtf",
        ),
    ),
    Dataset(
        name="pai",
        about="Alibaba PAI 2020: 1.3 million jobs, 2 months, 6,500 GPUs, GPU fractions",
        terms="for research and study; cite Weng et al., NSDI '22",
        files=(
            RemoteFile(
                _PAI + "pai_job_table.tar.gz",
                sha256="5aad7f7caac501136d14ed6a48e40546f825d7b0617a3a4f337e2348fe0a6cb0",
            ),
            RemoteFile(
                _PAI + "pai_task_table.tar.gz",
                sha256="cd1d6dc3215d2a8607ccf6b6dd952b5db776df86926c73259fea7c1499ac40e5",
            ),
        ),
        then=(
            "tar -xzf pai_job_table.tar.gz && tar -xzf pai_task_table.tar.gz",
            "trainmaster simulate . --format pai --nodes 812 --gpus-per-node 8 --limit 100000 --policy fifo",
        ),
    ),
    Dataset(
        name="openb",
        about="Alibaba 2023: 8,152 pods on a cluster with GPU sharing and 7 GPU types",
        terms="for research and study; cite Weng et al., ATC '23",
        files=(
            RemoteFile(
                _ALIBABA + "cluster-trace-gpu-v2023/csv/openb_pod_list_default.csv",
                sha256="1ee7ed79c27a3b0861cda8ddba86a004c6aba904caafa329a76ae93ca63834a8",
            ),
        ),
        then=("trainmaster simulate openb_pod_list_default.csv --nodes 100 --gpus-per-node 8 --policy fifo",),
    ),
    Dataset(
        name="acme",
        about="Shanghai AI Laboratory Acme 2023: clusters Seren and Kalos, large language models, 6 months",
        terms="CC BY 4.0; cite Hu et al., NSDI '24",
        files=(RemoteFile(_ACME + "trace_seren.csv"), RemoteFile(_ACME + "trace_kalos.csv")),
        then=("trainmaster simulate trace_seren.csv --nodes 286 --gpus-per-node 8 --policy srtf",),
    ),
    Dataset(
        name="itp",
        about="Microsoft ITP 2021: 69,351 jobs of 10 clusters, 2 months",
        terms="see the publisher's README; cite Gu et al., ASPLOS '23",
        files=(
            RemoteFile(
                "https://github.com/microsoft/elasticflow-traces/raw/main/data/elasticflow-traces.tar.gz"
            ),
        ),
        then=(
            "tar -xzf elasticflow-traces.tar.gz",
            "trainmaster trace info FILE.csv    (one file a cluster)",
        ),
    ),
    Dataset(
        name="swf",
        about="SDSC SP2 1998, from the Parallel Workloads Archive: 73,496 CPU jobs, 2 years, 128 processors",
        terms="credit Victor Hazlewood, SDSC, and the Parallel Workloads Archive",
        files=(
            RemoteFile(
                "https://www.cs.huji.ac.il/labs/parallel/workload/l_sdsc_sp2/SDSC-SP2-1998-4.2-cln.swf.gz"
            ),
        ),
        then=(
            "trainmaster simulate SDSC-SP2-1998-4.2-cln.swf.gz --nodes 128 --gpus-per-node 1 --policy fifo",
        ),
    ),
)

DATASETS: Final[Mapping[str, Dataset]] = {dataset.name: dataset for dataset in _ALL}
"""The published traces by name."""


def find_dataset(name: str) -> Dataset:
    """The dataset of that name; `InputError` with the nearest name otherwise.

    >>> find_dataset("philly").files[0].name
    'trace-data.tar.gz'
    """
    if name not in DATASETS:
        raise InputError(f"unknown dataset '{name}'", mend=nearest(name, DATASETS))
    return DATASETS[name]


def download(
    dataset: Dataset,
    folder: str | Path,
    *,
    progress: Progress | None = None,
    timeout_s: float = TIMEOUT_S,
    sleep: Callable[[float], None] = time.sleep,
) -> list[Path]:
    """Fetch all files of a dataset into `folder` (made if absent); returns their paths.

    A file grows under its name with `.part` and gets its own name only when it is complete
    and its size and checksum are right. A `.part` that a broken run left is continued where
    the server can and the file is provably still the same; else it starts again.

    Args:
        progress: called as bytes arrive.
        timeout_s: seconds without a byte after which a try counts as failed.
        sleep: how to wait between tries (1, 2, 4, … s).

    Raises:
        InputError: a file of that name is a different one.
        OutputError: the folder can't be written.
        DownloadError: the server refuses, stays silent, or sent something else.
    """
    folder = Path(folder)
    new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            return [_Fetch(file, folder, progress, timeout_s, sleep).run() for file in dataset.files]
        finally:
            if new and not any(folder.iterdir()):
                folder.rmdir()
    except OSError as error:
        raise OutputError(f"{folder}: cannot be written: {error.strerror or error}") from error


class _Cut(Exception):  # noqa: N818 (not an error yet: the next try goes on)
    """A try ended before the file was complete."""


def _broken(error: Exception) -> _Cut:
    reason = getattr(error, "reason", None) or str(error) or type(error).__name__
    return _Cut(f"the connection failed: {reason}")


def _block(response: http.client.HTTPResponse) -> bytes:
    """The next bytes; a fault of the network is told from one of the disk by where it happens."""
    try:
        return response.read(_BLOCK)
    except (OSError, http.client.HTTPException) as error:
        raise _broken(error) from error


class _Fetch:
    """One file on its way."""

    def __init__(
        self,
        file: RemoteFile,
        folder: Path,
        progress: Progress | None,
        timeout_s: float,
        sleep: Callable[[float], None],
    ) -> None:
        self.file = file
        self.target = folder / file.name
        self.part = folder / f"{file.name}.part"
        self.validator = folder / f"{file.name}.part.version"
        self.progress = progress
        self.timeout_s = timeout_s
        self.sleep = sleep

    def run(self) -> Path:
        if self.target.exists():
            fault = self._fault(self.target)
            if fault:
                raise InputError(
                    f"is there, but {fault}", file=self.target, mend="remove it or choose another --out"
                )
            return self.target
        failures, most = 0, self._have()
        while True:
            try:
                self._go_on()
                break
            except _Cut as cut:
                failures = 1 if self._have() > most else failures + 1
                most = max(most, self._have())
                if failures >= TRIES:
                    have = self._have()
                    mend = f"{have:,} bytes are kept; run it again to go on" if have else "nothing arrived"
                    raise DownloadError(f"{self.file.url}: {cut} ({mend})") from cut
                self.sleep(2.0 ** (failures - 1))
        fault = self._fault(self.part)
        if fault:
            self._discard()
            raise DownloadError(f"{self.file.url}: {fault}; what came was removed (try again later)")
        self.part.replace(self.target)
        self.validator.unlink(missing_ok=True)
        return self.target

    def _have(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0

    def _discard(self) -> None:
        self.part.unlink(missing_ok=True)
        self.validator.unlink(missing_ok=True)

    def _fault(self, path: Path) -> str:
        """What tells `path` from the published file; "" = nothing."""
        size = path.stat().st_size
        if self.file.size is not None and size != self.file.size:
            return f"its size is {size:,} bytes, not {self.file.size:,}"
        if self.file.sha256 is not None:
            with path.open("rb") as binary:
                found = hashlib.file_digest(binary, "sha256").hexdigest()
            if found != self.file.sha256:
                return f"its sha256 is {found[:12]}…, not {self.file.sha256[:12]}…"
        return ""

    def _go_on(self) -> None:
        """Fetch what is missing; raises `_Cut` when the rest has to wait for the next try."""
        request = Request(
            self.file.url,
            headers={"User-Agent": f"trainmaster/{__version__}", "Accept-Encoding": "identity"},
        )
        have = self._have()
        version = self.validator.read_text() if self.validator.exists() else ""
        if have and (version or self.file.sha256):
            request.add_header("Range", f"bytes={have}-")
            if version:
                request.add_header("If-Range", version)
        try:
            response = urlopen(request, timeout=self.timeout_s)
        except HTTPError as error:
            with error:
                self._refused(error, have)
            return
        except (OSError, http.client.HTTPException) as error:
            raise _broken(error) from error
        with response:
            self._receive(response, have)

    def _refused(self, error: HTTPError, have: int) -> None:
        """Returns when there is nothing left to fetch."""
        if error.code == 416 and have:  # the range starts at or behind the end
            if error.headers.get("Content-Range", "") != f"bytes */{have}":
                self._discard()
                raise _Cut("what was there was no part of the file") from error
        elif error.code in _BUSY:
            raise _Cut(f"the server answers {error.code} {error.reason}") from error
        else:
            raise DownloadError(
                f"{self.file.url}: the server answers {error.code} {error.reason} (see the publisher's page)"
            ) from error

    def _receive(self, response: http.client.HTTPResponse, have: int) -> None:
        goes_on = response.status == 206 and response.headers.get("Content-Range", "").startswith(
            f"bytes {have}-"
        )
        if not goes_on:
            have = 0
            self._remember_version(response)
        length = response.headers.get("Content-Length", "")
        total = have + int(length) if length.isdigit() else self.file.size
        with self.part.open("ab" if goes_on else "wb") as binary:
            while block := _block(response):
                binary.write(block)
                have += len(block)
                if self.progress:
                    self.progress(self.file.name, have, total)
        if total is not None and have < total:
            raise _Cut(f"the connection ended after {have:,} of {total:,} bytes")

    def _remember_version(self, response: http.client.HTTPResponse) -> None:
        """Keep what lets a later run ask for the rest of this very version."""
        tag = response.headers.get("ETag", "")
        version = tag if tag and not tag.startswith("W/") else response.headers.get("Last-Modified", "")
        if version:
            self.validator.write_text(version)
        else:
            self.validator.unlink(missing_ok=True)
