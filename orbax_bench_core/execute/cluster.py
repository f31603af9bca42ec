"""Place of this process among the hosts of a cluster, as the variables of its launcher tell it.

A launcher starts the same command on every host, and tells each of them by its variables which one
it is. JAX reads them too, but only a process that imports JAX can ask it.
"""

import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cluster:
    """Place of this process among the hosts of a run."""

    found: str  # whose variables told it, for people
    rank: int  # index of this host; 0 is the one that orchestrates
    size: int  # how many hosts there are, at least 2
    head: str  # name or address of host 0
    port: int  # port at which host 0 listens for the others
    # how many hosts have the TPUs of a slice, which must be used together; 0 where no TPUs are told
    # of
    tpu_hosts: int = 0

    @property
    def address(self) -> str:
        """Address of host 0, as `host:port`."""
        return f"[{self.head}]:{self.port}" if ":" in self.head else f"{self.head}:{self.port}"

    @property
    def said(self) -> str:
        """One line for people."""
        return f"cluster: {self.found}, host {self.rank} of {self.size}, head {self.address}"
