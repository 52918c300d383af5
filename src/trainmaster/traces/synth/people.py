"""Tenants, their users and the habits of each user."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainmaster.traces.synth.curves import Floats, Ints
from trainmaster.traces.synth.preset import People


@dataclass(frozen=True, slots=True)
class Users:
    """One entry for each user.

    Args:
        tenant: index of the user's tenant.
        activity: share of all sessions, sums to 1.
        size, length: leaning to large and to long jobs, standard scores.
        factor: declared time / longest time expected.
    """

    tenant: Ints
    activity: Floats
    size: Floats
    length: Floats
    factor: Floats


def users_of(people: People, demand_gpus: float, rng: np.random.Generator) -> Users:
    """As many users as the demand needs, split over the tenants by their shares (at least one each)."""
    shares = np.array(people.tenant_shares) / sum(people.tenant_shares)
    counts = np.maximum(1, np.round(shares * demand_gpus / people.gpus_per_user)).astype(np.int64)
    tenant = np.repeat(np.arange(len(shares)), counts)
    rank = np.concatenate([np.arange(1, count + 1) for count in counts])
    zipf = rank.astype(np.float64) ** -people.user_skew
    activity = shares[tenant] * zipf / np.bincount(tenant, zipf)[tenant]
    habits = rng.standard_normal((len(tenant), 3))
    return Users(
        tenant=tenant,
        activity=activity / activity.sum(),
        size=habits[:, 0],
        length=habits[:, 1],
        factor=1 + (people.declared_factor - 1) * np.exp(0.8 * habits[:, 2]),
    )
