# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Safety profiles: the guarantees of a host, checked before use."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from .host import printable

#: The fix for a value if the accepted ones are the whole fix.
CORRECT = "correct this value, then run again"
#: Between the errors of one message.
ALSO = ". Also: "


class Refusal(str):
    """One error of the input as one text.

    `problem`: the observed value and the accepted ones; `fix`: the remedy, with the nearest accepted value.
    """

    problem: str
    fix: str

    def __new__(cls, problem: str, fix: str = "", question: str = "") -> Refusal:
        """Return the error; `question`: as `near` returns it."""
        found = super().__new__(cls, f"{problem}; {fix}{question}" if fix else f"{problem}{question}")
        found.problem, found.fix = problem, f"{fix or CORRECT}{question}"
        return found


class BadInput(ValueError):
    """Input that cannot be used, with all its errors."""

    def __init__(self, *errors: str) -> None:
        found = (each if isinstance(each, Refusal) else Refusal(each) for each in errors)
        self.errors = tuple(dict.fromkeys(found))
        super().__init__(ALSO.join(self.errors))


def gathered(calls: Iterable[Callable[[], Any]]) -> list[Any]:
    """Return what calls return. Raises BadInput with the errors of all of them."""
    found: list[Any] = []
    errors: list[str] = []
    for call in calls:
        try:
            found.append(call())
        except BadInput as error:
            errors += error.errors
    if errors:
        raise BadInput(*errors)
    return found


def near(value: Any, known: Iterable[str]) -> str:
    """Return the end of a message: a question for the known value that is nearest to another one, '' if none is near."""
    found = difflib.get_close_matches(str(value), sorted(known), 1)
    return f". Did you mean {printable.name(found[0])}?" if found else ""


def absolute(path: Any) -> str:
    """Return the end of a message: a question for the absolute path, '' for a value that is no text."""
    return f". Did you mean {printable.name(f'/{path}')}?" if isinstance(path, str) and path else ""


def as_list(where: str, value: Any) -> str:
    """Return the fix of one text in place of a list, '' for other values."""
    return f"write a list: {where}: [{printable.name(value)}]" if isinstance(value, str) and value else ""


#: Leaves a setting unchanged. A setting of safety is assessed by its observed value.
KEEP = "keep"
_SCHEDULERS = (KEEP, "none", "mq-deadline", "kyber", "bfq")
#: Setting -> its values, weakest first; the settings of performance have no order of safety.
VALUES = {
    "write_cache": ("enabled", KEEP, "disabled"),
    "barrier": ("off", KEEP, "on"),
    "data_mode": ("writeback", KEEP, "ordered", "journal"),
    "atime": (KEEP, "noatime", "relatime", "strictatime"),
    "sync": ("async", KEEP, "sync"),
    "engines": ("relaxed", KEEP, "full"),
    "scheduler_rotational": _SCHEDULERS,
    "scheduler_solid_state": _SCHEDULERS,
    "scheduler_virtual": _SCHEDULERS,
}
#: Settings of performance that are numbers, or one of a few names.
_NUMBERS = ("readahead", "commit_delay")
_SETTINGS = (*VALUES, *_NUMBERS)
#: Settings that a profile may leave out.
_OPTIONAL = (
    "engines",
    "scheduler_rotational",
    "scheduler_solid_state",
    "scheduler_virtual",
    "sync",
    *_NUMBERS,
)
#: KiB of readahead that the kernel accepts: pages of 4 KiB.
_READAHEADS = range(0, 1024 * 1024, 4)
#: Any delay that groups commits without a noticeable wait; and milliseconds, -1 for none.
SHORT = "short"
_COMMIT_DELAYS = range(-1, 60_001)
#: The bases of a guarantee, that with the fewest assumptions first; `nothing`: no guarantee.
RESTS_ON = ("device", "flush", "non_volatile_cache", "ups", "nothing")
#: The bases of a guarantee in the order of their requirements for a disk, the fewest first.
_PROMISES = ("nothing", "ups", "flush", "non_volatile_cache", "device")
_SAFETY = ("write_cache", "barrier", "data_mode", "engines")
#: The value that a guarantee requires of a setting that its profile leaves unchanged. Only one that rests on the device
#: requires a value of the cache.
_NEEDED = {"barrier": "on", "data_mode": "ordered", "engines": "full"}


class Profile(NamedTuple):
    """A safety profile.

    `write_cache`, `barrier`, `data_mode` (the weakest allowed; ext4), `atime`, how engines commit, `sync`, the
    I/O scheduler of each kind of disk, `readahead` (KiB) and FairCom DB's `commit_delay` (ms) are the settings;
    `rests_on` names the evidence of the guarantee.
    """

    name: str
    summary: str
    write_cache: str
    barrier: str
    data_mode: str
    atime: str
    rests_on: str
    engines: str = "full"
    sync: str = KEEP
    scheduler_rotational: str = KEEP
    scheduler_solid_state: str = KEEP
    scheduler_virtual: str = KEEP
    readahead: Any = KEEP
    commit_delay: Any = KEEP

    @property
    def promises_durability(self) -> bool:
        """Return whether the profile guarantees that acknowledged commits survive."""
        return self.rests_on != "nothing"

    def keeps(self, setting: str) -> bool:
        """Return whether a setting is left unchanged."""
        return bool(getattr(self, setting) == KEEP)

    def wanted(self, setting: str) -> str:
        """Return the value that a setting of safety is compared with: for one that is left unchanged, the value that the
        guarantee requires, and KEEP if any value is accepted."""
        if not self.keeps(setting) or not self.promises_durability:
            return str(getattr(self, setting))
        if setting == "write_cache":
            return "disabled" if self.rests_on == "device" else KEEP
        return _NEEDED[setting]


def choose(
    name: str,
    shipped: Any,
    own: Any,
    overrides: Any,
    where: str = "durable_profile",
    overriding: str = "durable_overrides",
) -> tuple[Profile, Profile]:
    """Return the named profile, with overrides applied and as pinned. Raises BadInput.

    `where` and `overriding` are where the two are written.
    """
    _known, pinned, _changes = gathered(
        (
            functools.partial(known, shipped, own),
            functools.partial(_named, where, name, shipped, own),
            functools.partial(changes, overriding, overrides),
        )
    )
    return overridden(overriding, pinned, overrides), pinned


def _named(where: str, name: Any, shipped: Any, own: Any) -> Profile:
    profiles = {**_mapping("durable_profiles", own), **_mapping("the shipped profiles", shipped)}
    if not isinstance(name, str) or name not in profiles:
        names = sorted(map(str, profiles))
        raise BadInput(
            Refusal(
                f"{where}: observed {name!r}; expected one of {', '.join(names)}",
                "pin one of these, or add yours to durable_profiles",
                near(name, names),
            )
        )
    return _read(name, _mapping(f"profile {name}", profiles[name]))


def known(shipped: Any, own: Any) -> dict[str, Any]:
    """Return all profiles by name, as written. Raises BadInput."""
    return {**_mapping("the shipped profiles", shipped), **_own(shipped, own)}


def _own(shipped: Any, own: Any) -> dict[str, Any]:
    found = _mapping("durable_profiles", own)
    for name in found:
        if not isinstance(name, str):
            raise BadInput(
                Refusal(
                    f"durable_profiles: observed the name {name!r}; expected text",
                    "write the name in quotes",
                )
            )
    used = sorted(set(found) & set(shipped))
    if used:
        raise BadInput(
            Refusal(
                f"durable_profiles: observed {', '.join(used)}, which this collection ships; expected a name of your own",
                "give your profile another name, so that a shipped name always means the same",
            )
        )
    return found


def _read(name: str, fields: dict[str, Any]) -> Profile:
    where = f"profile {name}"
    checks = [functools.partial(_check, where, each, fields[each]) for each in _SETTINGS if each in fields]
    if "rests_on" in fields:
        checks.append(functools.partial(_check_promise, where, fields["rests_on"]))
    gathered([functools.partial(_check_keys, where, fields), *checks])
    profile = Profile(name=name, **fields)
    _consistent(where, profile)
    if profile.rests_on == "device" and profile.write_cache == "enabled":
        raise BadInput(
            Refusal(
                f"{where}: rests_on 'device' says that no volatile cache is in use; expected write_cache 'disabled'",
                "set write_cache 'disabled', or rests_on 'flush'",
            )
        )
    return profile


def _check_keys(where: str, fields: dict[str, Any]) -> None:
    needed = sorted(set(Profile._fields) - {"name", *_OPTIONAL})
    missing = [name for name in needed if name not in fields]
    expected = f"{', '.join(needed)}, optional: {', '.join(_OPTIONAL)}"
    wrong: list[str] = []
    if missing:
        add = f"add {', '.join(missing)}"
        wrong.append(Refusal(f"{where}: observed no {', '.join(missing)}; expected {expected}", add))
    for name in sorted(map(str, set(fields) - {*needed, *_OPTIONAL})):
        question = near(name, (*needed, *_OPTIONAL))
        wrong.append(Refusal(f"{where}: observed {name!r}; expected only {expected}", "", question))
    if wrong:
        raise BadInput(*wrong)


def overridden(where: str, profile: Profile, overrides: Any) -> Profile:
    """Return a profile with single settings of it changed; `where` they are written. Raises BadInput."""
    changed = profile._replace(**changes(where, overrides))
    _consistent(where, changed)
    return changed


def changes(where: str, overrides: Any) -> dict[str, Any]:
    """Return overrides as written, if each is one of a setting and valid alone. Raises BadInput."""
    found = _mapping(where, overrides, f" of {', '.join(_SETTINGS)} to values")
    gathered(functools.partial(_override, where, *each) for each in found.items())
    return found


def _override(where: str, setting: Any, value: Any) -> None:
    if setting not in _SETTINGS:
        raise BadInput(
            Refusal(
                f"{where}: observed {setting!r}; expected one of {', '.join(_SETTINGS)}",
                "",
                near(setting, _SETTINGS),
            )
        )
    _check(where, setting, value)


def strictest(profiles: Iterable[Profile], setting: str) -> Profile:
    """Return the profile that is strictest in a setting of safety; of equal ones that whose guarantee requires more."""
    return max(
        profiles,
        key=lambda each: (rank(setting, each.wanted(setting)), _PROMISES.index(each.rests_on)),
    )


def loosened_by(profile: Profile, base: Profile) -> list[str]:
    """Return the safety settings in which `profile` is weaker than `base`."""
    return [name for name in _SAFETY if rank(name, profile.wanted(name)) < rank(name, base.wanted(name))]


def rank(setting: str, value: str) -> int:
    """Return how strict a value is, 0 for the weakest. Raises ValueError for an unknown value."""
    return VALUES[setting].index(value)


def _check(where: str, setting: str, value: Any) -> None:
    if setting == "readahead":
        if value != KEEP and not _is_of(_READAHEADS, value):
            expected = f"expected {KEEP!r}, or KiB as a number: a multiple of 4"
            problem = f"{where}: readahead: observed {value!r}; {expected}"
            raise BadInput(Refusal(problem, "", near(value, (KEEP,))))
        return
    if setting == "commit_delay":
        if value not in (KEEP, SHORT) and not _is_of(_COMMIT_DELAYS, value):
            expected = f"expected {KEEP!r}, {SHORT!r}, or ms as a number, -1 to {_COMMIT_DELAYS[-1]}"
            problem = f"{where}: commit_delay: observed {value!r}; {expected}"
            raise BadInput(Refusal(problem, "", near(value, (KEEP, SHORT))))
        return
    if isinstance(value, bool):
        raise BadInput(
            Refusal(
                f"{where}: {setting}: observed the boolean {value} (YAML reads an unquoted on or off as one);"
                f" expected one of {', '.join(VALUES[setting])}",
                "write the value in quotes",
            )
        )
    if value not in VALUES[setting]:
        raise BadInput(_not_one_of(f"{where}: {setting}", value, VALUES[setting]))


def _check_promise(where: str, value: Any) -> None:
    if value not in RESTS_ON:
        raise BadInput(_not_one_of(f"{where}: rests_on", value, RESTS_ON))


def _not_one_of(where: str, value: Any, accepted: Iterable[str]) -> Refusal:
    accepted = tuple(accepted)
    return Refusal(
        f"{where}: observed {value!r}; expected one of {', '.join(accepted)}", "", near(value, accepted)
    )


def _is_of(numbers: range, value: Any) -> bool:
    # True is 1 to Python, and 128.0 is 128.
    return isinstance(value, int) and not isinstance(value, bool) and value in numbers


def _consistent(where: str, profile: Profile) -> None:
    """Refuse settings that contradict each other. Raises BadInput."""
    rests_on, loses = profile.rests_on, "or pin disposable if losing data is accepted"
    for is_wrong, problem, fix in (
        (
            profile.barrier == "off" and profile.write_cache == "disabled",
            "barrier 'off' with write_cache 'disabled' contradict each other: a device reset turns the cache on again,"
            " and then nothing flushes it",
            "set barrier 'on'",
        ),
        (
            rests_on == "ups" and profile.write_cache == "disabled",
            "write_cache 'disabled' with rests_on 'ups' contradict each other: the guard disables barriers, and a device"
            " reset turns the cache on again",
            "pin strict, or set write_cache 'enabled'",
        ),
        (
            rests_on == "ups" and (profile.keeps("write_cache") or profile.keeps("barrier")),
            "'keep' with rests_on 'ups': the guard disables barriers over an enabled cache",
            "set write_cache 'enabled' and barrier 'on'",
        ),
        (
            rests_on == "ups" and profile.barrier == "off",
            "barrier 'off' with rests_on 'ups': the next boot would have no barriers before the UPS is checked",
            "set barrier 'on': the guard disables barriers while it runs",
        ),
        (
            rests_on != "nothing" and profile.barrier == "off",
            f"barrier 'off' breaks the guarantee of rests_on {rests_on!r}",
            f"set barrier 'on', {loses}",
        ),
        (
            profile.promises_durability and profile.data_mode == "writeback",
            f"data_mode 'writeback' breaks the guarantee of rests_on {rests_on!r}",
            f"set data_mode 'ordered', {loses}",
        ),
        (
            profile.promises_durability and profile.engines == "relaxed",
            f"engines 'relaxed' breaks the guarantee of rests_on {rests_on!r}",
            f"set engines 'full', {loses}",
        ),
    ):
        if is_wrong:
            raise BadInput(Refusal(f"{where}: {problem}", fix))


def _mapping(where: str, value: Any, of: str = "") -> dict[str, Any]:
    if value is None:
        return {}  # a variable without a value
    if not isinstance(value, dict):
        raise BadInput(f"{where}: observed {value!r}; expected a mapping{of}")
    return value
