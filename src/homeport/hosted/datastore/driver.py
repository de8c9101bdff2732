"""Whether control planes can use a DataStore where they run."""

from __future__ import annotations

from collections.abc import Callable

from homeport.api.steward.v1alpha1 import AnyDataStore
from homeport.hosted.etcd.dial import DatastoreError
from homeport.hosted.tenant.storage import KINE_IMAGE

CanRun = Callable[[str], bool]  # whether Pods with this image start


def check_driver(datastore: AnyDataStore, can_run: CanRun) -> None:
    """API servers speak to databases through kine, a container beside them. Raises DatastoreError."""
    driver = datastore.spec.driver
    if driver != "etcd" and not can_run(KINE_IMAGE):
        raise DatastoreError(
            "DriverNotSupported",
            f"DataStore {datastore.metadata.name}: driver {driver} needs kine ({KINE_IMAGE}), which this plane can't "
            "run: use a DataStore of driver etcd, or run the controllers on a cluster (`homeport up --kubeconfig`)",
        )
